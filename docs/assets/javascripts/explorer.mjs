/**
 * Figures of the reader's own numbers. A page has an explorer's still figure and its text; this module puts a form
 * before them. The first change, or the button, loads the runner; from then on each change is drawn by Python in the
 * page (scripts/runner/explore.py), by the function that drew the still figure.
 */

import { applies, Latest, stepped } from "./explorer_parts.mjs"

/** @typedef {import("./explorer_parts.mjs").Field} Field */
/** @typedef {import("./explorer_parts.mjs").Values} Values */
/** @typedef {Record<"legend" | "open" | "reset" | "loading" | "once" | "drawing" | "failed", string>} Words */
/** @typedef {{name: string, lang: string, fields: Field[], words: Words}} About */
/** @typedef {{svg: string | null, text: string, error: null | {field: string, message: string}}} Drawn */
/** @typedef {HTMLInputElement | HTMLSelectElement} Control */

const PAUSE_MS = 250 // of typing, before it is drawn
const LONG = 12 // characters of an option, from which it takes two columns
const SLOW_MS = 400 // after which the reader is told that it takes a while

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Partial<HTMLElementTagNameMap[K]>} properties @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}

class Explorer {
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #pause
  #loaded = false

  /** @param {HTMLElement} block */
  constructor(block) {
    this.block = block
    /** @type {About} */
    this.about = JSON.parse(block.dataset.explorer ?? "{}")
    this.figure = /** @type {HTMLElement} */ (block.querySelector("figure"))
    this.text = /** @type {HTMLElement} */ (block.querySelector(".explorer-text"))
    this.still = { svg: this.figure.innerHTML, text: this.text.textContent ?? "" }
    this.text.setAttribute("aria-live", "polite")
    this.id = `explore-${this.about.name}`
    this.status = make("p", { className: "explorer-status", id: `${this.id}-status` })
    this.status.setAttribute("role", "status")
    this.bar = make("progress", { hidden: true, ariaHidden: "true" })
    this.open = make("button", { type: "submit", className: "explorer-open" }, this.about.words.open)
    this.once = make("small", {}, this.about.words.once)
    this.form = make("form", { noValidate: true, autocomplete: "off" })
    /** @type {Map<string, Control>} */
    this.controls = new Map()
    this.latest = new Latest(
      /** @param {Values} values */ values => this.ask(values),
      /** @param {Drawn} drawn */ drawn => this.show(drawn),
      error => this.failed(error),
    )
    this.build()
  }

  build() {
    const { fields, words } = this.about
    const actions = make("div", { className: "explorer-actions" },
      this.open, make("button", { type: "reset" }, words.reset), this.once, this.bar)
    const boxes = make("div", { className: "explorer-fields" }, ...fields.map(field => this.field(field)))
    this.form.append(make("fieldset", {}, make("legend", {}, words.legend), boxes, actions), this.status)
    this.block.prepend(this.form)
    this.form.addEventListener("input", () => { if (this.#loaded) this.soon(PAUSE_MS) })
    this.form.addEventListener("change", () => this.soon(0))
    this.form.addEventListener("submit", event => {
      event.preventDefault()
      this.soon(0)
    })
    // After the event the fields have their defaults again, and those are drawn already.
    this.form.addEventListener("reset", () => setTimeout(() => {
      clearTimeout(this.#pause)
      this.latest.drop()
      this.show({ ...this.still, error: null })
      this.hide()
    }))
    this.hide()
  }

  /** @param {Field} field @returns {HTMLElement} */
  field(field) {
    const list = ["integers", "numbers", "requests"].includes(field.kind)
    const wide = list || field.options?.some(([, text]) => text.length > LONG)
    /** @type {Control} */
    let control
    if (field.kind === "choice") {
      control = make("select", {}, ...(field.options ?? []).map(([value, text]) =>
        new Option(text, value, value === field.value, value === field.value)))
    } else {
      control = make("input", { type: "text", defaultValue: field.value, placeholder: field.placeholder ?? "", spellcheck: false })
      if (!list) control.inputMode = field.kind === "integer" ? "numeric" : "decimal"
      control.addEventListener("keydown", event => this.step(/** @type {KeyboardEvent} */ (event), field))
    }
    control.name = field.name
    control.id = `${this.id}-${field.name}`
    this.controls.set(field.name, control)
    return make("div", { className: wide ? "wide" : "" }, make("label", { htmlFor: control.id }, field.label), control)
  }

  /** Up and down arrows change a number. @param {KeyboardEvent} event @param {Field} field */
  step(event, field) {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return
    const control = /** @type {HTMLInputElement} */ (event.target)
    const value = stepped(field, control.value, event.key === "ArrowUp" ? 1 : -1)
    if (value === control.value) return
    event.preventDefault()
    control.value = value
    this.soon(PAUSE_MS)
  }

  /** @returns {Values} what stands in the fields that apply */
  get values() {
    const all = Object.fromEntries([...this.controls].map(([name, control]) => [name, control.value]))
    return Object.fromEntries(this.about.fields.filter(field => applies(field, all)).map(({ name }) => [name, all[name]]))
  }

  /** Show the fields that apply. */
  hide() {
    const { values } = this
    for (const [name, control] of this.controls) {
      const box = control.parentElement
      if (box) box.hidden = !(name in values)
    }
  }

  /** @param {number} pause ms */
  soon(pause) {
    this.hide()
    clearTimeout(this.#pause)
    this.#pause = setTimeout(() => this.latest.want(this.values), pause)
  }

  /** @param {Values} values @returns {Promise<Drawn>} */
  async ask(values) {
    const { about, bar } = this
    const slow = setTimeout(() => this.say(this.#loaded ? about.words.drawing : about.words.loading), this.#loaded ? SLOW_MS : 0)
    this.block.ariaBusy = "true"
    try {
      const { getRunner } = await import("./runner/client.mjs")
      const onProgress = /** @param {import("./runner/messages.mjs").Progress} progress */ ({ done, total }) => {
        bar.hidden = false
        if (total) Object.assign(bar, { value: done, max: total })
        else bar.removeAttribute("value")
      }
      const drawn = await getRunner().explore(about.name, values, about.lang, { onProgress })
      this.#loaded = true
      this.open.hidden = this.once.hidden = true
      return drawn
    } finally {
      clearTimeout(slow)
      bar.hidden = true
      this.block.ariaBusy = "false"
    }
  }

  /** @param {Drawn} drawn */
  show({ svg, text, error }) {
    this.say(error?.message ?? "")
    this.block.classList.toggle("refused", Boolean(error))
    for (const [name, control] of this.controls) {
      const wrong = name === error?.field
      control.ariaInvalid = wrong ? "true" : null
      if (wrong) control.setAttribute("aria-describedby", this.status.id)
      else control.removeAttribute("aria-describedby")
    }
    if (error) return // the last figure that could be drawn stays, faded
    this.figure.innerHTML = svg ?? ""
    if (this.text.textContent !== text) this.text.textContent = text
  }

  /** @param {unknown} error of the runner, not of the form */
  failed(error) {
    // A program of the reader's was stopped while this waited for its turn: its turn is now.
    if (error instanceof Error && error.name === "Stopped") this.soon(0)
    else {
      this.open.hidden = false
      // Of a traceback the line that says what happened is enough.
      const lines = (error instanceof Error ? error.message : String(error)).trim().split("\n")
      this.say(this.about.words.failed.replace("{}", lines.findLast(line => /^\w+: /.test(line)) ?? lines[0]))
    }
  }

  /** @param {string} text */
  say(text) {
    if (this.status.textContent !== text) this.status.textContent = text
  }
}

for (const block of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".explorer"))) new Explorer(block)
