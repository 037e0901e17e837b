/** What scripts/runner/steps.py recorded, and how to walk through it; no part of the page. */

/** @typedef {import("./numbers.mjs").Num} Num */
/** @typedef {Num | any[]} Nested  numbers, nested as the axes of a tile are */
/**
 * @typedef {object} Value
 * @property {string} [dtype] @property {number[]} [shape] @property {number[]} [shown] how much of each axis is there
 * @property {Nested} [data] @property {Num} [min] @property {Num} [max] @property {number} [nan] @property {number} [true]
 * @property {boolean} [constant] @property {string} [base] of a pointer: whose elements it counts
 * @property {string} [text] what is no number @property {Value[]} [items] a tuple
 */
/** @typedef {Record<string, number>} Variables name -> index of a value */
/**
 * @typedef {object} Steps
 * @property {string} kernel @property {[number, number, number]} program
 * @property {number | null} launch @property {number[] | null} grid @property {{launch: number, grid: number[]}[]} launches
 * @property {{name: string, own: boolean}[]} files own: what the reader wrote
 * @property {{name: string, file: number, line: number}[]} functions
 * @property {{function: number, line: number, end: number, text: string}[]} places
 * @property {{function: number, parent: number | null, line: number | null, arguments: Variables}[]} calls
 * @property {{call: number, place: number, variable: string, parent: number | null, count: number}[]} loops
 * @property {{loop: number, number: number, value: number | null, first: number, last: number}[]} iterations
 * @property {{place: number, call: number, at: number | null, changed: Variables}[]} steps
 * @property {Value[]} values
 * @property {{limit: "steps" | "values", most: number} | null} cut @property {number | null} failed
 */
/** @typedef {"new" | "changed" | "same" | "kept"} Change assigned for the first time, otherwise, the same, not at all */
/** @typedef {{name: string, value: Value, before: Value | undefined, change: Change, given: boolean}} Variable given: as the caller gave it */
/** @typedef {{call: number, name: string, file: string, line: number | null, variables: Variable[]}} Frame */

export class Replay {
  /** @param {Steps} steps */
  constructor(steps) {
    this.steps = steps
    this.length = steps.steps.length
    this.last = Math.max(0, this.length - 1)
  }

  /** Where to begin: the first line of the first loop that repeats something. */
  get start() {
    return this.steps.iterations[0]?.first ?? 0
  }

  /** @param {number} step */
  placeOf(step) {
    return this.steps.places[this.steps.steps[step].place]
  }

  /** @param {number} step */
  fileOf(step) {
    const { files, functions } = this.steps
    return files[functions[this.placeOf(step).function].file]
  }

  /**
   * The iterations that a step is part of, from the outermost in.
   * @param {number} step @returns {{variable: string, value: Value | undefined, number: number, count: number, index: number}[]}
   */
  iterationsOf(step) {
    const { iterations, loops, values } = this.steps
    const found = []
    for (let index = this.steps.steps[step].at; index !== null; index = loops[iterations[index].loop].parent) {
      const { loop, number, value } = iterations[index]
      const { variable, count } = loops[loop]
      found.unshift({ variable, value: value === null ? undefined : values[value], number, count, index })
    }
    return found
  }

  /** The step that begins the next iteration; past the last one, what follows the loops. @param {number} step */
  nextIteration(step) {
    const { iterations } = this.steps
    const next = iterations.filter(({ first }) => first > step).map(({ first }) => first)
    if (next.length) return Math.min(...next)
    const end = Math.max(-1, ...iterations.map(({ last }) => last))
    return step <= end ? Math.min(end + 1, this.last) : this.last
  }

  /** The step that begins this iteration; from there, the one before. @param {number} step */
  previousIteration(step) {
    const before = this.steps.iterations.filter(({ first }) => first < step).map(({ first }) => first)
    return before.length ? Math.max(...before) : 0
  }

  /** The functions at work, the innermost first, with their variables once the step is done. @param {number} step @returns {Frame[]} */
  frames(step) {
    const { calls, functions, files } = this.steps
    const frames = []
    let line = null // of the innermost function, the step itself says it
    for (let call = /** @type {number | null} */ (this.steps.steps[step].call); call !== null; call = calls[call].parent) {
      const { name, file } = functions[calls[call].function]
      frames.push({ call, name, file: files[file].name, line, variables: this.variables(call, step) })
      line = calls[call].line
    }
    return frames
  }

  /** @param {number} call @param {number} step @returns {Variable[]} in the order in which they were first assigned */
  variables(call, step) {
    const { steps, values, calls } = this.steps
    /** @type {Map<string, number>} */
    const now = new Map(Object.entries(calls[call].arguments))
    for (let i = 0; i < step; i++) {
      if (steps[i].call === call) for (const [name, index] of Object.entries(steps[i].changed)) now.set(name, index)
    }
    const changed = steps[step].call === call ? steps[step].changed : {}
    const names = [...new Set([...now.keys(), ...Object.keys(changed)])]
    return names.map(name => {
      const index = changed[name] ?? now.get(name)
      const before = now.has(name) ? values[/** @type {number} */ (now.get(name))] : undefined
      const value = values[/** @type {number} */ (index)]
      const given = index === calls[call].arguments[name]
      return { name, value, before, change: name in changed ? changeOf(value, before) : "kept", given }
    })
  }
}

/** @param {Value} value @param {Value | undefined} before @returns {Change} */
function changeOf(value, before) {
  if (!before) return "new"
  return JSON.stringify(value) === JSON.stringify(before) ? "same" : "changed"
}

/** A value's rows: none for what is no tile; of three axes and more, one block a leading index. @param {Value} value */
export function blocksOf({ data, shown }) {
  if (!shown?.length || !Array.isArray(data)) return []
  if (shown.length === 1) return [{ index: /** @type {number[]} */ ([]), rows: [/** @type {Num[]} */ (data)] }]
  /** @type {{index: number[], rows: Num[][]}[]} */
  const blocks = []
  /** @param {Nested[]} part @param {number[]} index */
  const walk = (part, index) => {
    if (index.length === shown.length - 2) blocks.push({ index, rows: /** @type {Num[][]} */ (part) })
    else part.forEach((inner, i) => walk(/** @type {Nested[]} */ (inner), [...index, i]))
  }
  walk(data, [])
  return blocks
}

/** How many of the elements that are there differ, and how many there are. @param {Value} value @param {Value | undefined} before */
export function difference(value, before) {
  const [now, then] = [value, before].map(each => flat(each?.data ?? []))
  const comparable = before && String(value.shape) === String(before.shape)
  return { of: now.length, differ: comparable ? now.filter((each, i) => !Object.is(each, then[i])).length : now.length }
}

/** @param {Nested} data @returns {Num[]} */
function flat(data) {
  return Array.isArray(data) ? data.flatMap(flat) : [data]
}
