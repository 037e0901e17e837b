// The worker: starts Python and answers one request after the other. See messages.mjs.

import { backtrace } from "./backtrace.mjs";

/** @typedef {import("./messages.mjs").ToWorker} ToWorker */
/** @typedef {import("./messages.mjs").FromWorker} FromWorker */
/** @typedef {import("./messages.mjs").Manifest} Manifest */

const CACHE = "decode-attention-runner";
const base = new URL(new URL(self.location.href).searchParams.get("base") ?? "./", self.location.href);
const download = self.fetch.bind(self);
const began = performance.now();

/** @param {FromWorker} message */
const tell = (message) => self.postMessage(message);

/** The manifest, past every cache: all else has a name that tells its content. @returns {Promise<Manifest>} */
async function readManifest() {
  const response = await download(new URL("manifest.json", base), { cache: "no-cache" });
  if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
  return response.json();
}

/**
 * Take files of the bundle from the browser's cache, or download them, count the bytes and keep them. They are
 * compressed, under names that end in .bin; Pyodide asks for its own through `fetch`, so it gets this one.
 * @param {Manifest} manifest
 */
async function keepAndCount(manifest) {
  const total = Object.values(manifest.sizes).reduce((sum, size) => sum + size, 0);
  const cache = await self.caches?.open(CACHE).catch(() => undefined); // blocked, or no secure context
  let done = 0;
  const files = new Set(Object.keys(manifest.sizes).map((name) => new URL(name, base).href));
  for (const request of (await cache?.keys()) ?? []) if (!files.has(request.url)) cache?.delete(request);

  /** @param {string} url */
  const get = async (url) => {
    const kept = await cache?.match(url);
    const response = kept ?? (await download(url));
    if (!response.ok || !response.body) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    if (!kept) cache?.put(url, response.clone()).catch(() => undefined); // the disk is full, say
    const counter = new TransformStream({
      transform(chunk, controller) {
        done += chunk.byteLength;
        tell({ type: "progress", stage: "download", done, total });
        controller.enqueue(chunk);
      },
    });
    const body = response.body.pipeThrough(counter).pipeThrough(new DecompressionStream("gzip"));
    const type = url.endsWith(".wasm.bin") ? "application/wasm" : "application/octet-stream";
    return new Response(body, { headers: { "Content-Type": type } });
  };
  // All at once, before anybody asks.
  const coming = new Map([...files].filter((url) => url.endsWith(".bin")).map((url) => [url, get(url)]));
  /** @type {typeof fetch} */
  self.fetch = (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input, base).href + ".bin";
    const response = coming.get(url) ?? download(input, init);
    coming.delete(url);
    return response;
  };
}

/** @param {string} name */
async function bytesOf(name) {
  return new Uint8Array(await (await self.fetch(new URL(name, base))).arrayBuffer());
}

/** Pyodide with our files in place and Triton imported. @returns {Promise<any>} */
async function start() {
  const manifest = await readManifest();
  await keepAndCount(manifest);
  const folder = new URL(`${manifest.folder}/`, base).href;
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  // Pyodide would load its other script by name; it does not where the function is there already.
  const script = new Blob([await bytesOf(`${manifest.folder}/pyodide.asm.js`)], { type: "text/javascript" });
  await import(URL.createObjectURL(script));
  const extensions = Object.entries(manifest.extensions);
  const [python, project, packages, ...compiled] = await Promise.all([
    loadPyodide({ indexURL: folder, env: { HOME: "/home", TRITON_INTERPRET: "1" } }),
    bytesOf(manifest.project.replace(/\.bin$/, "")),
    bytesOf(`${manifest.folder}/packages.zip`),
    ...extensions.map(([, file]) => bytesOf(`${manifest.folder}/${file}`)),
  ]);
  tell({ type: "progress", stage: "triton", done: 0, total: 0 });
  python.FS.writeFile("/packages.zip", packages);
  extensions.forEach(([name], at) => {
    const path = `/packages/${name}`;
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, compiled[at]);
  });
  python.FS.writeFile("/backtrace.so", backtrace);
  const options = { loadAsync: true, global: true, nodelete: true, fs: python.FS };
  await python._module.loadDynamicLibrary("/backtrace.so", options);
  python.unpackArchive(project, "zip", { extractDir: "/project" });
  python.runPython(`
import sys
sys.path[:0] = ["/project/scripts/runner/standins", "/project", "/packages.zip"]
sys.dont_write_bytecode = True
from scripts.runner import boot, extensions
extensions.install("/packages")
boot.boot()
from scripts.runner.answer import answer
`);
  return python;
}

const starting = start();
starting.then(
  () => tell({ type: "ready", ms: Math.round(performance.now() - began) }),
  (error) => tell({ type: "failed", id: null, message: String(error) }),
);

/** @param {any} python */
function lives(python) {
  try {
    return Boolean(python.globals);
  } catch {
    return false;
  }
}

/** @param {MessageEvent<ToWorker>} event */
self.onmessage = async ({ data }) => {
  if (data.type === "boot") return;
  const python = await starting;
  /** @param {"stdout" | "stage"} type @param {string} text */
  const say = (type, text) => tell({ type, id: data.id, text });
  /** @type {any} */
  let answer;
  try {
    answer = python.globals.get("answer");
    tell({ type: "result", id: data.id, result: JSON.parse(answer(JSON.stringify(data), say)) });
  } catch (error) {
    // After an exit or a stack that overflowed this Python answers nothing more: the page starts another worker.
    tell({ type: "failed", id: lives(python) ? data.id : null, message: String(error) });
  } finally {
    if (lives(python)) answer?.destroy();
  }
};
