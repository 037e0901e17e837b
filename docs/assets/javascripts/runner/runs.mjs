/** Runs and checks of a workbench: how far loading is, Stop, and what came of it. */

import { make } from "./output.mjs"

/** @typedef {import("./client.mjs").Runner} Runner */
/** @typedef {import("./messages.mjs").Progress} Progress */
/** @typedef {import("./messages.mjs").StepsOf} StepsOf */
/** @typedef {import("./editor.mjs").Editor} Editor */
/** @typedef {import("./workbench.mjs").Workbench} Workbench */

const SLOW = 10_000 // ms without news: long for what a page runs, so the reader is told of Stop

export class Runs {
  /** @param {Workbench} bench */
  constructor(bench) {
    this.bench = bench
    this.running = false
    this.stage = ""
    const { words, block } = bench
    this.bar = make("progress", {})
    this.amount = make("span", {})
    this.loading = make("div", { className: "runner-loading", hidden: true }, this.bar, this.amount)
    this.views = make("div", { className: "runner-views" })
    this.runButton = /** @type {HTMLButtonElement} */ (block.querySelector("[data-act=run]"))
    this.checkButton = /** @type {HTMLButtonElement} */ (block.querySelector("[data-act=check]"))
    this.stopButton = make("button", { type: "button", className: "runner-stop", hidden: true }, words.stop)
    this.stopButton.addEventListener("click", () => this.runner?.stop())
    this.runButton.after(this.stopButton)
  }

  /** @param {"run" | "check"} kind @param {StepsOf | null} steps whose steps are wanted */
  async start(kind, steps = null) {
    if (this.running) return
    const { bench } = this
    const { words } = bench
    this.busy(true)
    bench.say(words.preparing)
    const opening = bench.ready() // meanwhile; a run does not wait for the editor
    opening.catch(() => {}) // said below
    try {
      const source = await bench.source()
      bench.save()
      bench.output.clear()
      this.views.replaceChildren()
      bench.editor?.mark("error", null)
      bench.editor?.mark("step", null)
      const { getRunner } = await import("./client.mjs").catch(() => { throw new Error(words.unread("client.mjs")) })
      this.runner = getRunner()
      this.now(kind === "run" ? words.running : words.checking)
      await this[kind](this.runner, source, steps)
      await opening
    } catch (error) {
      if (error instanceof Error && error.name === "Stopped") bench.say(words.stopped)
      else bench.complain(error)
    } finally {
      this.busy(false)
    }
  }

  /** @param {Runner} runner @param {string} source @param {StepsOf | null} steps */
  async run(runner, source, steps) {
    const { bench } = this
    const result = await runner.run(source, { trace: true, steps, lang: bench.lang }, {
      onProgress: progress => this.showProgress(progress),
      onReady: () => this.loaded(bench.words.running),
      onStdout: text => {
        this.loaded(bench.words.running)
        bench.output.print(text)
      },
    }).catch(error => this.failed(error))
    bench.output.showRun(result)
    bench.say(result.ok ? bench.words.done(result.ms) : bench.words.raised)
    const editor = await bench.ready()
    if (result.error?.line) editor.mark("error", result.error.line)
    if (result.launches?.length) await this.showViews(result, editor)
  }

  /** Which program read which pages, and its steps. @param {any} result @param {Editor} editor */
  async showViews(result, editor) {
    const { lang } = this.bench
    const [{ mountPageMap }, { mountStepper }] = await Promise.all([import("./page_map.mjs"), import("./stepper.mjs")])
    const again = (/** @type {StepsOf} */ of) => this.start("run", of)
    if (result.page_map) mountPageMap(this.views, result.page_map, { lang, onProgram: again })
    const stepper = mountStepper(this.views, result, { lang, onWant: again, onLine: line => editor.mark("step", line) })
    if (result.steps) stepper.focus()
  }

  /** @param {Runner} runner @param {string} source */
  async check(runner, source) {
    const { bench } = this
    const report = await runner.check(bench.lesson, bench.program.checkedAs, source, bench.lang, {
      onProgress: progress => this.showProgress(progress),
      onReady: () => this.loaded(bench.words.checking),
      onStage: text => this.loaded(`${bench.words.checking} ${text}`),
    }).catch(error => this.failed(error))
    bench.output.showReport(report)
    bench.say(report.ok ? bench.words.passed : bench.words.refused)
  }

  /** The runner could not do it; what the reader's code raises is a result. @param {Error} error @returns {never} */
  failed(error) {
    if (error.name === "Stopped") throw error
    const last = error.message.trim().split("\n").at(-1) ?? "" // of a traceback: what was raised
    throw new Error(this.bench.words.failed(last))
  }

  /** @param {Progress} progress */
  showProgress({ stage, done, total }) {
    const { bench } = this
    clearTimeout(this.slow)
    if (stage !== this.stage) bench.say(bench.words.stages[stage])
    this.stage = stage
    this.loading.hidden = false
    this.bar.ariaLabel = bench.words.stages[stage]
    if (total) Object.assign(this.bar, { max: total, value: done })
    else this.bar.removeAttribute("value")
    this.amount.textContent = stage === "download" ? bench.words.download(done, total) : ""
  }

  /** What was to be loaded is there. @param {string} now what happens instead */
  loaded(now) {
    this.loading.hidden = true
    this.stage = ""
    this.now(now)
  }

  /** Say what goes on; and, if there is no news of it for long, how to end it. @param {string} text */
  now(text) {
    const { bench } = this
    bench.say(text)
    clearTimeout(this.slow)
    this.slow = setTimeout(() => bench.say(`${text} ${bench.words.slow}`), SLOW)
  }

  /** Run and Stop share a place; whichever goes away hands the focus on. @param {boolean} running */
  busy(running) {
    this.running = running
    clearTimeout(this.slow)
    this.bench.block.ariaBusy = String(running)
    const [shown, hidden] = running ? [this.stopButton, this.runButton] : [this.runButton, this.stopButton]
    const focused = document.activeElement === hidden
    shown.hidden = false
    hidden.hidden = true
    if (focused) shown.focus()
    this.checkButton.ariaDisabled = String(running)
    if (!running) {
      this.loading.hidden = true
      this.stage = ""
    }
  }
}
