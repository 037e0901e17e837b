/**
 * A program of the page at work: its editor, its buttons, and what its runs gave. Made by panel.mjs when the reader
 * first presses one of the buttons that the page has; the program, the editor and the runner are fetched then.
 */

import { createEditor } from "./editor.mjs"
import { copyLink, openLink } from "./links.mjs"
import { make, Output } from "./output.mjs"
import { Runs } from "./runs.mjs"
import { Store } from "./store.mjs"
import { wordsOf } from "./words.mjs"

/** @typedef {import("./editor.mjs").Editor} Editor */
/** @typedef {{level: string, checkedAs: string, url: string}} Program level: "" for the solution, on a lesson's page */

const SAVE_AFTER = 500 // ms without a change
const SESSION = Date.now()
let count = 0

/** @param {string} text @param {() => unknown} act */
function button(text, act) {
  const element = make("button", { type: "button" }, text)
  element.addEventListener("click", act)
  return element
}

export class Workbench {
  /** @param {HTMLElement} block */
  constructor(block) {
    this.block = block
    /** @type {"zh" | "en"} */
    this.lang = document.documentElement.lang.startsWith("zh") ? "zh" : "en"
    this.words = wordsOf(this.lang)
    /** @type {{lesson: string, programs: Program[]}} */
    const { lesson, programs } = JSON.parse(block.dataset.runner ?? "")
    this.lesson = lesson
    this.programs = programs
    this.levels = /** @type {HTMLSelectElement | null} */ (block.querySelector("select"))
    /** @type {Editor | undefined} */
    this.editor = undefined
    /** @type {Promise<Editor> | undefined} */
    this.opening = undefined
    /** @type {Promise<string> | undefined} what the editor will begin with */
    this.first = undefined
    /** @type {Promise<unknown>} until the text that the reader asked for last is there */
    this.coming = Promise.resolve()
    this.given = "" // what the editor was given last; the reader has changed it if it holds anything else

    const { words } = this
    this.status = this.part(".runner-status")
    this.notice = make("p", { className: "runner-notice", hidden: true })
    this.help = make("p", { className: "runner-help", id: `runner-help-${++count}`, hidden: true }, words.help)
    this.place = make("div", { className: "runner-editor" })
    this.output = new Output(this.lang, line => this.editor?.goTo(line))
    this.runs = new Runs(this)
    this.lastButton = button(words.last, () => this.loadLast())
    this.part("[data-act=edit]").replaceWith(
      button(words.reset, () => this.reset()), this.lastButton, button(words.share, () => copyLink(this)),
    )
    this.status.after(this.runs.loading, this.notice)
    this.part(".listing").after(this.place, this.help, this.output.element, this.runs.views)

    this.program = programs.find(({ level }) => level === this.levels?.value) ?? programs[0]
    this.store = this.storeOf(this.program)
    this.offerLast()
    this.listen()
  }

  /** @param {string} selector @returns {HTMLElement} */
  part(selector) {
    return /** @type {HTMLElement} */ (this.block.querySelector(selector))
  }

  listen() {
    this.levels?.addEventListener("change", () => this.toLevel(this.levels?.value ?? ""))
    // Before the editor sees the key, to which it has another meaning.
    this.block.addEventListener("keydown", event => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      event.stopPropagation()
      this.run()
    }, true)
    addEventListener("pagehide", () => this.save())
  }

  /** @param {string} text of the status, which is spoken too */
  say(text) {
    this.status.textContent = text
  }

  /** Say why something did not work. @param {unknown} error */
  complain(error) {
    this.say(error instanceof Error ? error.message : String(error))
  }

  /** @param {Program} program */
  storeOf({ level }) {
    return new Store(() => localStorage, level ? `${this.lesson}/${level}` : this.lesson, SESSION)
  }

  /** Go over to another program; the editor still holds the old one. @param {Program} program */
  choose(program) {
    this.save() // under the level that it belongs to
    this.program = program
    this.store = this.storeOf(program)
    if (this.levels) this.levels.value = program.level
  }

  /** The page's own program. @param {Program} program @returns {Promise<string>} */
  async original({ url }) {
    const answer = await fetch(url).catch(() => undefined)
    if (!answer?.ok) throw new Error(this.words.unread(url))
    return answer.text()
  }

  /** What is to be run: what the editor holds, or will hold. @returns {Promise<string>} */
  async source() {
    await this.coming
    if (this.editor) return this.editor.text
    this.first ??= this.original(this.program)
    this.first.catch(() => { this.first = undefined }) // the next press tries again
    return this.first
  }

  /** The editor, which takes the listing's place. @returns {Promise<Editor>} */
  ready() {
    this.opening ??= this.open().catch(error => {
      this.opening = undefined
      throw error
    })
    return this.opening
  }

  async open() {
    const source = await this.source()
    const editor = await createEditor({
      source, label: `${this.words.code}: ${this.lesson}.py`, describedBy: this.help.id, onChange: () => this.changed(),
    }).catch(() => { throw new Error(this.words.unread("codemirror.mjs")) })
    this.place.append(editor.element)
    this.part(".listing").hidden = true
    this.help.hidden = false
    this.editor = editor
    this.given = source
    this.offerLast()
    return editor
  }

  async edit() {
    this.say(this.words.preparing)
    try {
      const editor = await this.ready()
      this.say("")
      editor.focus()
    } catch (error) {
      this.complain(error)
    }
  }

  run() {
    return this.runs.start("run")
  }

  check() {
    return this.runs.start("check")
  }

  /** Put another text into the editor; undo brings back what was there. @param {string} source */
  give(source) {
    this.save()
    this.given = source
    if (this.editor) this.editor.text = source
    else this.first = Promise.resolve(source)
    this.notify("")
    this.offerLast()
  }

  /**
   * Exchange the program for another: after the exchanges that were asked for before, and a run waits for it.
   * @param {() => Promise<unknown>} exchange
   */
  async exchange(exchange) {
    this.coming = this.coming.then(exchange).catch(error => this.complain(error))
    await this.coming
    await this.ready().catch(error => this.complain(error))
  }

  /** A notice above the code, or none. @param {string} text */
  notify(text) {
    this.notice.textContent = text
    this.notice.hidden = !text
  }

  changed() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.save(), SAVE_AFTER)
  }

  /** Keep the reader's text, if it is the reader's. */
  save() {
    clearTimeout(this.timer)
    const text = this.editor?.text
    if (text === undefined || text === this.given) return
    if (!this.store.save(text, Date.now())) this.say(this.words.notKept)
    this.offerLast()
  }

  offerLast() {
    this.lastButton.ariaDisabled = String(!this.store.last(this.editor?.text ?? ""))
  }

  loadLast() {
    return this.exchange(async () => {
      this.save()
      const version = this.store.last(this.editor?.text ?? "")
      if (!version) return
      this.give(version.source)
      this.say(this.words.loaded(new Date(version.time).toLocaleString(this.lang, { dateStyle: "medium", timeStyle: "short" })))
    })
  }

  reset() {
    return this.exchange(async () => {
      this.give(await this.original(this.program))
      this.output.clear()
      this.say(this.words.restored)
    })
  }

  /** @param {string} level */
  toLevel(level) {
    const program = this.programs.find(each => each.level === level) ?? this.programs[0]
    return this.exchange(async () => {
      try {
        const source = await this.original(program)
        this.choose(program)
        this.give(source)
        this.output.clear()
        this.say(this.words.level(program.level))
      } catch (error) {
        if (this.levels) this.levels.value = this.program.level
        throw error
      }
    })
  }

  /** @param {string} hash of an address that holds a program */
  openLink(hash) {
    return openLink(this, hash)
  }
}
