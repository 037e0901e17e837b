/**
 * Step by step through what one program did: the line, the iteration, what it changed, every variable.
 *
 * mountStepper(container, result, { lang, onLine, onWant }) fills the container. result: of a run, with its steps, or null
 * where none were recorded. onLine(line) is told the reader's line that is being looked at, null where there is none;
 * onWant({ kernel, program, launch }) shall run the program again, with the steps of that program recorded.
 */

import { programText } from "./numbers.mjs"
import { make } from "./output.mjs"
import { Replay } from "./replay.mjs"
import { StepForm } from "./stepper_form.mjs"
import { changeText, isTile, shortText, tileOf, typeText } from "./tile.mjs"
import { wantStyle } from "./views_style.mjs"
import { wordsOf } from "./views_words.mjs"

/** @typedef {import("./replay.mjs").Steps} Steps */
/** @typedef {import("./replay.mjs").Variable} Variable */
/** @typedef {import("./stepper_form.mjs").Launch} Launch */
/** @typedef {{kernel: string, program: [number, number, number], launch?: number}} StepsOf */
/** @typedef {{lang: string, onLine?: (line: number | null) => void, onWant?: (of: StepsOf) => void}} Options */

const WATCHED = /^(m|l|acc|p|s)(_i|_new|_s)?$/ // open without being asked for: the state, the scores, the weights
/** @type {Map<string, boolean>} by function and variable: what the reader opened or closed, kept from run to run */
const opened = new Map()

/** @typedef {{launches: Launch[], steps: Steps | null, page_map?: import("./page_map_facts.mjs").PageMap | null}} Result */

/**
 * @param {HTMLElement} container @param {Result} result @param {Options} options
 * @returns {{focus: () => void}} focus puts the keyboard where stepping begins
 */
export function mountStepper(container, { launches, steps, page_map }, options) {
  wantStyle()
  const words = wordsOf(options.lang)
  const likely = page_map?.launches.at(-1)?.launch ?? launches.length - 1 // the last that read a cache
  const form = new StepForm(launches, steps, likely, options, words)
  const section = make("section", { className: "run-view stepper", ariaLabel: words.stepper }, make("p", { className: "run-view-title" }, words.stepper), form.element)
  container.append(section)
  if (!launches.length) section.append(make("p", { className: "run-view-hint" }, words.noLaunch))
  if (!steps) return form
  const program = programText(steps.program, steps.grid ?? [])
  if (steps.launch === null || !steps.steps.length) {
    const grids = steps.launches.map(({ grid }) => grid.join(" × ")).join(", ")
    section.append(make("p", { className: "stepper-note", role: "status" }, steps.launch === null ? words.missingProgram(program, steps.kernel, grids) : words.noSteps))
    return form
  }
  const player = new Player(steps, options)
  section.append(make("p", { className: "stepper-of" }, words.of(program, steps.kernel)), player.element)
  player.show(player.replay.start)
  return player
}

class Player {
  /** @param {Steps} steps @param {Options} options */
  constructor(steps, options) {
    this.replay = new Replay(steps)
    this.options = options
    this.words = wordsOf(options.lang)
    this.step = 0
    this.allDigits = false
    const { words, replay } = this
    this.slider = make("input", { type: "range", min: "0", max: String(replay.last), step: "1", ariaLabel: words.slider, title: words.keys })
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)))
    /** @type {[string, string, () => number][]} */
    const moves = [
      ["⇤", words.first, () => 0], ["«", words.previousIteration, () => replay.previousIteration(this.step)], ["‹", words.back, () => this.step - 1],
      ["›", words.forward, () => this.step + 1], ["»", words.nextIteration, () => replay.nextIteration(this.step)], ["⇥", words.lastStep, () => replay.last],
    ]
    this.buttons = moves.map(([sign, label, to]) => {
      const button = make("button", { type: "button", ariaLabel: label, title: label }, sign)
      button.addEventListener("click", () => this.show(to()))
      return button
    })
    this.jump = this.iterations()
    this.controls = make("div", { className: "stepper-controls" }, make("div", { className: "stepper-buttons" }, ...this.buttons), this.slider, ...(this.jump ? [this.jump] : []))
    this.controls.addEventListener("keydown", event => this.key(event))
    this.where = make("p", { className: "stepper-where" })
    this.code = make("pre", { className: "stepper-code", tabIndex: 0, ariaLabel: words.now })
    this.code.setAttribute("role", "group")
    this.changes = make("div", { className: "stepper-changes" })
    this.now = make("div", {}, this.where, this.code)
    this.digits = make("input", { type: "checkbox" })
    this.digits.addEventListener("change", () => {
      this.allDigits = this.digits.checked
      this.show(this.step)
    })
    this.variables = make("div", { className: "stepper-variables" })
    this.element = make("div", {}, make("div", { className: "stepper-head" }, this.controls, this.now), this.changes,
      make("p", { className: "run-view-hint stepper-keys" }, words.keys), make("label", { className: "run-view-choice" }, this.digits, ` ${words.allDigits}`), this.variables)
  }

  focus() {
    this.slider.focus()
  }

  /** A list of the iterations, to go straight to one; none where there is nothing to choose. */
  iterations() {
    const { iterations } = this.replay.steps
    if (iterations.length < 2) return undefined
    const select = make("select", { ariaLabel: this.words.jump }, make("option", { value: "" }, this.words.outside),
      ...iterations.map(({ first }, index) => make("option", { value: String(index) }, this.iterationText(first))))
    select.addEventListener("change", () => {
      if (select.value) this.show(iterations[Number(select.value)].first)
    })
    return select
  }

  /** @param {number} step @returns {string} the iterations that it is part of */
  iterationText(step) {
    return this.replay.iterationsOf(step).map(({ variable, value, number, count }) =>
      this.words.iteration(variable, value ? shortText(value, this.words) : "", number + 1, count)).join(", ")
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.target === this.jump || event.ctrlKey || event.metaKey || event.altKey) return
    const { replay, step } = this
    const forward = ["ArrowRight", "ArrowUp"].includes(event.key)
    if (forward || ["ArrowLeft", "ArrowDown"].includes(event.key)) {
      if (event.shiftKey) this.show(forward ? replay.nextIteration(step) : replay.previousIteration(step))
      else this.show(step + (forward ? 1 : -1))
    } else if (event.key === "PageUp") this.show(replay.nextIteration(step))
    else if (event.key === "PageDown") this.show(replay.previousIteration(step))
    else if (event.key === "Home") this.show(0)
    else if (event.key === "End") this.show(replay.last)
    else return
    event.preventDefault()
  }

  /** @param {number} step */
  show(step) {
    const { words, replay, replay: { steps } } = this
    this.step = step = Math.min(Math.max(step, 0), replay.last)
    const place = replay.placeOf(step)
    const file = replay.fileOf(step)
    const position = [words.step(step + 1, replay.length), this.iterationText(step) || words.outside].join(" · ")
    const line = words.line(place.line, place.end)
    this.slider.value = String(step)
    this.slider.setAttribute("aria-valuetext", `${position}, ${line}`)
    for (const [i, button] of this.buttons.entries()) button.ariaDisabled = String(i < 3 ? step === 0 : step === replay.last)
    if (this.jump) this.jump.value = String(steps.steps[step].at ?? "")
    // The slider speaks for itself; the buttons need somebody to say where they led.
    this.now.ariaLive = this.changes.ariaLive = document.activeElement === this.slider ? "off" : "polite"
    this.where.textContent = position
    const frames = replay.frames(step)
    const callers = frames.slice(1).reverse().map(frame => `${words.called(frame.name, frame.line)} › `).join("")
    this.code.replaceChildren(make("span", { className: "stepper-file" }, `${callers}${words.here(frames[0].name, file.own ? "" : file.name, line)}\n`), ...this.lines(place))
    this.showChanges(frames[0].variables)
    this.variables.replaceChildren(...frames.map((frame, depth) => this.frame(frame, depth)))
    this.options.onLine?.(file.own ? place.line : null)
  }

  /** @param {{line: number, text: string}} place @returns {HTMLElement[]} */
  lines({ line, text }) {
    return text.split("\n").map((code, i) => make("span", { className: "stepper-line" }, make("span", { className: "no", ariaHidden: "true" }, String(line + i)), `${code}\n`))
  }

  /** @param {Variable[]} variables */
  showChanges(variables) {
    const { words, replay: { steps, last } } = this
    const changed = variables.filter(({ change }) => change !== "kept")
    const notes = []
    if (steps.failed === this.step) notes.push(words.failed)
    if (steps.cut && this.step === last) notes.push(words.cut[steps.cut.limit](steps.cut.most))
    const list = changed.map(variable => make("li", {}, make("code", {}, variable.name), " ", isTile(variable.value) ? "" : `= ${shortText(variable.value, words)} `, make("small", {}, changeText(variable, words))))
    this.changes.replaceChildren(
      ...notes.map(note => make("p", { className: "stepper-note" }, note)),
      changed.length ? make("ul", { ariaLabel: words.changedHead }, ...list) : make("p", { className: "run-view-hint" }, words.nothingChanged),
    )
  }

  /** @param {import("./replay.mjs").Frame} frame @param {number} depth 0: the innermost */
  frame({ name, variables }, depth) {
    const tiles = variables.filter(({ value }) => isTile(value)).sort((a, b) => Number(WATCHED.test(b.name)) - Number(WATCHED.test(a.name)))
    const scalars = variables.filter(({ value, given }) => !isTile(value) && !given)
    const given = variables.filter(variable => !isTile(variable.value) && variable.given)
    const rows = [this.scalars(scalars), ...tiles.map(variable => this.tile(name, variable))]
    if (given.length) rows.push(this.details(`arguments of ${name}`, false, make("summary", {}, this.words.given), this.scalars(given)))
    return this.details(`variables of ${name}`, depth < 2, make("summary", {}, this.words.variables(name)), ...rows)
  }

  /** A part that opens and closes, and stays as the reader left it. @param {string} key @param {boolean} open @param {HTMLElement} summary @param {...Node} rest */
  details(key, open, summary, ...rest) {
    const box = make("details", { open: opened.get(key) ?? open }, summary, ...rest)
    summary.addEventListener("click", () => opened.set(key, !box.open)) // which the click is about to change
    return box
  }

  /** @param {Variable[]} variables */
  scalars(variables) {
    return make("dl", { className: "stepper-scalars" }, ...variables.map(({ name, value, change }) => make("div", { className: change === "kept" ? "" : "differs" },
      make("dt", {}, name), make("dd", { title: typeText(value) }, shortText(value, this.words)))))
  }

  /** @param {string} owner @param {Variable} variable */
  tile(owner, variable) {
    const { name, value, before, change } = variable
    const { words } = this
    const summary = make("summary", {}, make("code", {}, name), " ", make("small", {}, typeText(value)), " ", make("span", { className: "tile-range" }, shortText(value, words)))
    if (change !== "kept") summary.append(" ", make("small", { className: "differs" }, changeText(variable, words)))
    const box = this.details(`${owner}.${name}`, WATCHED.test(name) || change !== "kept", summary)
    const fill = () => {
      if (box.open && box.children.length === 1) box.append(tileOf(name, value, change === "kept" ? undefined : before, this.allDigits, words))
    }
    box.className = "stepper-tile"
    fill()
    box.addEventListener("toggle", fill)
    return box
  }
}
