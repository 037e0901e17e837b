/** A list of code lines to walk by keys and to point at; what is chosen, and what is lit, is its owner's business. */

const calm = matchMedia("(prefers-reduced-motion: reduce)")
let panes = 0

export class Pane {
  /** @param {string} label what a screen reader calls it */
  constructor(label) {
    this.id = `compiled-pane-${panes++}`
    this.element = document.createElement("div")
    this.element.className = "compiled-pane"
    this.box = document.createElement("div")
    Object.assign(this.box, { className: "compiled-lines", role: "listbox", tabIndex: 0, ariaLabel: label })
    this.ruler = document.createElement("div") // where the lit lines are, the whole text at a glance
    Object.assign(this.ruler, { className: "compiled-ruler", ariaHidden: "true" })
    this.element.append(this.box, this.ruler)
    /** @type {HTMLElement[]} */
    this.rows = []
    this.active = -1
    this.pointed = -1
    /** @type {(row: number) => void} */
    this.onChoose = () => {}
    /** @type {(row: number) => void} -1 where the pointer leaves */
    this.onPoint = () => {}
    this.box.addEventListener("click", event => this.at(event, row => this.choose(row)))
    // Moves, not "over": where the text scrolls under a pointer at rest, nobody points at anything.
    this.box.addEventListener("pointermove", event => {
      if (event.pointerType === "mouse") this.at(event, row => this.point(row))
    })
    this.box.addEventListener("pointerleave", () => this.point(-1))
    this.box.addEventListener("keydown", event => this.key(event))
  }

  /** @param {Event} event @param {(row: number) => void} act on the row that it met, if any */
  at(event, act) {
    const row = this.rows.indexOf(event.target.closest("[role=option]"))
    if (row >= 0) act(row)
  }

  /** @param {number} row */
  point(row) {
    if (row === this.pointed) return
    this.pointed = row
    this.onPoint(row)
  }

  /** @param {HTMLElement} lines all that is shown @param {HTMLElement[]} rows those that can be chosen, in order */
  fill(lines, rows) {
    this.rows = rows
    this.active = this.pointed = -1
    rows.forEach((row, i) => {
      row.id = `${this.id}-${i}`
      row.role = "option"
      row.ariaSelected = "false"
    })
    this.box.removeAttribute("aria-activedescendant")
    this.box.replaceChildren(lines)
    this.box.scrollTo(0, 0)
    this.ruler.replaceChildren()
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.floor(this.box.clientHeight / (this.rows[0]?.offsetHeight || 1)) - 1)
    const last = this.rows.length - 1
    const to = {
      ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page,
      Home: 0, End: last, Enter: this.active, " ": this.active,
    }[event.key]
    if (to === undefined) return
    event.preventDefault()
    this.choose(Math.min(last, Math.max(0, to)))
  }

  /** @param {number} row */
  choose(row) {
    this.activate(row)
    this.show(row)
    this.onChoose(row)
  }

  /** Make a row the one that keys start from; -1: none. @param {number} row */
  activate(row) {
    if (this.rows[this.active]) this.rows[this.active].ariaSelected = "false"
    this.active = row
    if (!this.rows[row]) return this.box.removeAttribute("aria-activedescendant")
    this.rows[row].ariaSelected = "true"
    this.box.setAttribute("aria-activedescendant", this.rows[row].id)
  }

  /** @param {Iterable<number>} rows lit @param {Iterable<number>} around lit faintly */
  light(rows, around = []) {
    for (const [name, wanted] of [["lit", new Set(rows)], ["lit-around", new Set(around)]]) {
      this.rows.forEach((row, i) => row.classList.toggle(name, wanted.has(i)))
    }
    const height = 100 / Math.max(1, this.rows.length)
    this.ruler.replaceChildren(...runs(rows).map(([first, last]) => {
      const mark = document.createElement("i")
      mark.style.top = `${first * height}%`
      mark.style.height = `${(last - first + 1) * height}%`
      return mark
    }))
  }

  /** Scroll within the pane, never the page, until a row is in view. @param {number} row */
  show(row) {
    const box = this.box.getBoundingClientRect()
    const { top, bottom, height } = this.rows[row].getBoundingClientRect()
    if (top >= box.top + height && bottom <= box.bottom - height) return
    const by = (top + bottom - box.top - box.bottom) / 2
    this.box.scrollBy({ top: by, behavior: calm.matches || Math.abs(by) > 4 * box.height ? "auto" : "smooth" })
  }
}

/** @param {Iterable<number>} rows in order @returns {[number, number][]} first and last of each unbroken run */
export function runs(rows) {
  const found = []
  for (const row of rows) {
    const run = found.at(-1)
    if (run && row === run[1] + 1) run[1] = row
    else found.push([row, row])
  }
  return found
}
