/** Which program shall be recorded: the kernel of a launch, and a place in its grid. */

import { make } from "./output.mjs"

/** @typedef {{kernel: string, grid: number[]}} Launch */
/** @typedef {import("./replay.mjs").Steps} Steps */

const AXES = ["x", "y", "z"]

export class StepForm {
  /** @param {Launch[]} launches @param {Steps | null} steps what is recorded @param {number} likely a launch, where none is @param {import("./stepper.mjs").Options} options @param {import("./views_words.mjs").Words} words */
  constructor(launches, steps, likely, options, words) {
    this.launches = launches
    this.kernel = make("select", {}, ...launches.map(({ kernel, grid }, number) =>
      make("option", { value: String(number) }, `${launches.length > 1 ? `${number}: ` : ""}${kernel}, grid ${grid.join(" × ")}`)))
    const recorded = launches.findIndex(({ kernel }, number) => number === steps?.launch || (steps?.launch === null && kernel === steps.kernel))
    this.kernel.value = String(recorded < 0 ? likely : recorded)
    this.axes = AXES.map((axis, i) => make("input", { type: "number", min: "0", step: "1", required: true, value: String(steps?.program[i] ?? 0), ariaLabel: `program ${axis}` }))
    this.kernel.addEventListener("change", () => this.bound())
    this.element = make("form", { className: "stepper-form", hidden: !launches.length || !options.onWant },
      make("label", {}, `${words.kernel} `, this.kernel), make("span", { className: "stepper-program" }, "program (", ...this.axes, ")"),
      make("button", { type: "submit" }, words.record))
    if (!steps) this.element.append(make("p", { className: "run-view-hint" }, words.wantHint))
    this.element.addEventListener("submit", event => {
      event.preventDefault()
      const launch = Number(this.kernel.value)
      const [x, y, z] = this.axes.map(axis => axis.valueAsNumber)
      options.onWant?.({ kernel: this.launches[launch].kernel, program: [x, y, z], launch })
    })
    this.bound()
  }

  focus() {
    this.kernel.focus()
  }

  /** The grid of the launch bounds the program. */
  bound() {
    const grid = this.launches[Number(this.kernel.value)]?.grid ?? []
    for (const [i, axis] of this.axes.entries()) {
      const size = grid[i] ?? 1
      axis.max = String(size - 1)
      axis.hidden = i > 0 && grid.slice(i).every(n => n === 1)
      if (axis.valueAsNumber >= size) axis.value = String(size - 1)
    }
  }
}
