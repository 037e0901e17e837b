// The page's side of the runner: one worker a page, started when it is first wanted, replaced when it is stopped.

/** @typedef {import("./messages.mjs").ToWorker} ToWorker */
/** @typedef {import("./messages.mjs").FromWorker} FromWorker */
/** @typedef {import("./messages.mjs").Progress} Progress */
/** @typedef {import("./messages.mjs").RunOptions} RunOptions */

/**
 * @typedef {object} Listeners
 * @property {(progress: Progress) => void} [onProgress]  while the runner loads
 * @property {() => void} [onReady]  when it has loaded
 * @property {(text: string) => void} [onStdout]  what the reader's code prints, as it prints it
 * @property {(text: string) => void} [onStage]  the case that a check begins
 */

/** @typedef {{resolve: (result: any) => void, reject: (error: Error) => void, listeners: Listeners}} Pending */

const SPARE_AFTER_MS = 1500; // of one run: then Stop is likely, and a second worker starts to be ready for it

/** The reader pressed Stop. */
export class Stopped extends Error {
  constructor() {
    super("stopped");
    this.name = "Stopped";
  }
}

export class Runner {
  /** @type {Worker | null} */ #worker = null;
  /** @type {Worker | null} */ #spare = null;
  /** @type {Map<number, Pending>} */ #pending = new Map();
  #last = 0;
  #ready = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #base;
  #newWorker;

  /**
   * @param {string | URL} base  the folder of manifest.json
   * @param {(url: URL) => Worker} [newWorker]
   */
  constructor(base, newWorker = (url) => new Worker(url, { type: "module" })) {
    this.#base = new URL(base, document.baseURI);
    this.#newWorker = newWorker;
  }

  /** Whether something runs, or waits to. */
  get busy() {
    return this.#pending.size > 0;
  }

  /**
   * @param {string} source
   * @param {RunOptions} options
   * @param {Listeners} [listeners]
   * @returns {Promise<any>} what scripts/runner/session.py says of the run
   */
  run(source, options, listeners = {}) {
    return this.#ask({ type: "run", source, options }, listeners);
  }

  /**
   * @param {string} lesson
   * @param {string} level
   * @param {string} source
   * @param {string} lang
   * @param {Listeners} [listeners]
   * @returns {Promise<any>} the drill's report
   */
  check(lesson, level, source, lang, listeners = {}) {
    return this.#ask({ type: "check", lesson, level, source, lang }, listeners);
  }

  /**
   * @param {string} name
   * @param {Record<string, unknown>} values
   * @param {string} lang
   * @param {Listeners} [listeners]
   * @returns {Promise<any>} svg and text of an explorer
   */
  explore(name, values, lang, listeners = {}) {
    return this.#ask({ type: "explore", name, values, lang }, listeners);
  }

  /** End what runs, even a loop without end. A worker that is already starting takes over. */
  stop() {
    this.#worker?.terminate();
    this.#worker = this.#spare;
    this.#spare = null;
    this.#ready = false; // the spare says so itself, or has said so: then the next spare comes a little late
    this.#fail(new Stopped());
  }

  /**
   * @param {any} message
   * @param {Listeners} listeners
   */
  #ask(message, listeners) {
    const id = ++this.#last;
    const asked = new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject, listeners }));
    this.#worker ??= this.#start();
    this.#worker.postMessage({ ...message, id });
    if (this.#ready) this.#watch();
    return asked;
  }

  #start() {
    const url = new URL("./worker.mjs", import.meta.url);
    url.searchParams.set("base", this.#base.href);
    const worker = this.#newWorker(url);
    worker.onmessage = ({ data }) => this.#hear(worker, data);
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.#worker) this.#lost(event.message || "the worker did not start");
    };
    return worker;
  }

  /**
   * @param {Worker} worker
   * @param {FromWorker} message
   */
  #hear(worker, message) {
    if (worker !== this.#worker) return; // the spare, starting
    if (message.type === "progress") {
      for (const { listeners } of this.#pending.values()) listeners.onProgress?.(message);
    } else if (message.type === "failed" && message.id === null) {
      this.#lost(message.message);
    } else if (message.type === "ready") {
      this.#ready = true;
      for (const { listeners } of this.#pending.values()) listeners.onReady?.();
      if (this.busy) this.#watch();
    } else {
      const pending = this.#pending.get(message.id ?? 0);
      if (message.type === "stdout") pending?.listeners.onStdout?.(message.text);
      else if (message.type === "stage") pending?.listeners.onStage?.(message.text);
      else {
        this.#pending.delete(message.id ?? 0);
        if (message.type === "result") pending?.resolve(message.result);
        else pending?.reject(new Error(message.message));
      }
    }
  }

  /** Start a spare worker if what runs now goes on for long. */
  #watch() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.busy && this.#worker && !this.#spare) this.#spare = this.#start();
    }, SPARE_AFTER_MS);
  }

  /** @param {string} message */
  #lost(message) {
    this.#worker?.terminate();
    this.#worker = null;
    this.#ready = false;
    this.#fail(new Error(message));
  }

  /** @param {Error} error */
  #fail(error) {
    clearTimeout(this.#timer);
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }
}

/** @type {Runner | null} */
let runner = null;

/** The page's runner; nothing is downloaded before the first request. `<meta name="runner">` says from where. */
export function getRunner() {
  const meta = document.querySelector('meta[name="runner"]');
  if (!(meta instanceof HTMLMetaElement)) throw new Error('this page has no <meta name="runner">');
  runner ??= new Runner(meta.content);
  return runner;
}
