/** What a run or a check gave, below the editor: what it printed, its error, warnings, the report. */

import { wordsOf } from "./words.mjs"

/** @typedef {{message: string, texts?: {zh: string, en: string} | null}} Text message: in English, or as Triton says it */
/** @typedef {Text & {kind: string, line: number | null}} RunError */
/** @typedef {Text & {line: number}} Warning */
/** @typedef {{ok: boolean, stdout: string, ms: number, error: RunError | null, warnings: Warning[]}} RunResult */
/** @typedef {{ok: boolean, text: string}} Report */

const LONGEST = 100_000 // characters that are shown

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Partial<HTMLElementTagNameMap[Tag]>} properties @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}

export class Output {
  /** @param {"zh" | "en"} lang @param {(line: number) => void} goTo */
  constructor(lang, goTo) {
    this.lang = lang
    this.words = wordsOf(lang)
    const { words } = this
    this.goTo = goTo
    this.printed = make("pre", { className: "runner-printed", tabIndex: 0, hidden: true, ariaLabel: words.output })
    this.printed.setAttribute("role", "region")
    this.found = make("div", { className: "runner-found" })
    this.element = make("div", { className: "runner-output" }, this.found, this.printed)
  }

  clear() {
    this.printed.hidden = true
    this.printed.textContent = ""
    this.found.replaceChildren()
  }

  /** More of what the program prints. @param {string} text */
  print(text) {
    const length = this.printed.textContent.length
    if (length > LONGEST) return
    this.printed.hidden = false
    this.printed.append(length + text.length > LONGEST ? text.slice(0, LONGEST - length) + this.words.cut : text)
  }

  /** @param {RunResult} result */
  showRun({ ok, stdout, error, warnings }) {
    this.printed.textContent = "" // all of it stands in the result, whatever was streamed
    this.print(stdout || (ok ? this.words.nothing : ""))
    this.printed.hidden = !this.printed.textContent
    if (error) this.found.append(this.error(error))
    if (warnings?.length) this.found.append(this.warnings(warnings))
  }

  /** @param {Report} report */
  showReport({ ok, text }) {
    const box = make("div", { className: ok ? "runner-report passed" : "runner-report" }, text.trim())
    box.setAttribute("role", ok ? "status" : "alert")
    this.found.append(box)
  }

  /** @param {RunError} error @returns {HTMLElement} */
  error({ kind, line, ...text }) {
    const head = make("p", {}, make("strong", {}, kind))
    if (line) head.append(" ", this.lineButton(line))
    const box = make("div", { className: "runner-error" }, head, make("p", { className: "runner-message" }, this.textOf(text)))
    box.setAttribute("role", "alert")
    return box
  }

  /** @param {Warning[]} warnings @returns {HTMLElement} */
  warnings(warnings) {
    const rows = warnings.map(({ line, ...text }) => make("li", {}, this.lineButton(line), " ", this.textOf(text)))
    return make("div", { className: "runner-warnings" }, make("p", {}, make("strong", {}, this.words.warnings)), make("ul", {}, ...rows))
  }

  /** @param {Text} text */
  textOf({ message, texts }) {
    return texts?.[this.lang] ?? message
  }

  /** @param {number} line @returns {HTMLButtonElement} a button that leads to it */
  lineButton(line) {
    const button = make("button", { type: "button", className: "runner-line" }, this.words.line(line))
    button.addEventListener("click", () => this.goTo(line))
    return button
  }
}
