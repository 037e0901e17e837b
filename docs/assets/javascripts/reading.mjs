/**
 * Lights the lines of a listing while the prose beside it speaks of them.
 *
 * A step is a paragraph (or list item, row, ...) of a reading block that names lines. The step being read is the last
 * one whose top has passed the eye line, as long as the block itself has not; at the foot of the page, where nothing more can scroll up, the eye line moves
 * down to the window's bottom. Pointing at a reference, or focusing it, lights that one alone.
 */

const STEP = "li, p, dd, td, th, pre, blockquote, .admonition"
const EYE = 0.4 // share of the window's height

const calm = matchMedia("(prefers-reduced-motion: reduce)")

/** @typedef {{element: Element, rows: Element[]}} Step */

class Reading {
  /** @param {Element} block */
  constructor(block) {
    this.block = block
    this.code = block.querySelector(".reading-code .listing code")
    this.box = block.querySelector(".reading-code")
    this.prefix = this.code.querySelector(".row").id.replace(/L\d+$/, "")
    /** @type {Step[]} */
    this.steps = []
    /** @type {Step | undefined} */
    this.step = undefined
    /** @type {Element[] | undefined} */
    this.pointed = undefined
    for (const ref of block.querySelectorAll("a[data-lines]")) {
      const element = ref.closest(STEP)
      const rows = this.rowsOf(ref)
      const known = this.steps.find(step => step.element === element)
      if (known) known.rows.push(...rows)
      else this.steps.push({ element, rows })
      for (const type of ["pointerenter", "focus"]) ref.addEventListener(type, () => this.point(rows))
      for (const type of ["pointerleave", "blur"]) ref.addEventListener(type, () => this.point(undefined))
      ref.addEventListener("click", event => {
        if (!this.beside || event.ctrlKey || event.metaKey || event.shiftKey) return
        event.preventDefault()
        this.point(rows)
      })
    }
  }

  /** Whether the listing stands beside the prose and stays in view; on a narrow page it stands above. */
  get beside() {
    return getComputedStyle(this.box).position === "sticky"
  }

  /** @param {Element} ref @returns {Element[]} the rows that a reference names; lines that are not shown have none */
  rowsOf(ref) {
    const [first, last] = ref.dataset.lines.split("-").map(Number)
    const ids = Array.from({ length: last - first + 1 }, (_, i) => `${this.prefix}L${first + i}`)
    return ids.map(id => document.getElementById(id)).filter(row => row !== null)
  }

  /** @param {number} eye y of the eye line in the window */
  read(eye) {
    const left = this.block.getBoundingClientRect().bottom < eye
    const step = left ? undefined : this.steps.findLast(({ element }) => element.getBoundingClientRect().top <= eye)
    if (step === this.step) return
    this.step?.element.classList.remove("being-read")
    step?.element.classList.add("being-read")
    this.step = step
    this.light()
  }

  /** @param {Element[] | undefined} rows what the reader points at, if anything; it goes before the step */
  point(rows) {
    this.pointed = rows
    this.light()
  }

  light() {
    const rows = this.pointed ?? this.step?.rows ?? []
    for (const row of this.code.querySelectorAll(".row.lit")) if (!rows.includes(row)) row.classList.remove("lit")
    for (const row of rows) row.classList.add("lit")
    if (rows.length && this.beside) this.show(rows)
  }

  /** Scroll the listing within itself, never the page, until the rows are in view. @param {Element[]} rows */
  show(rows) {
    const box = this.code.getBoundingClientRect()
    const seen = { top: box.top, bottom: Math.min(box.bottom, innerHeight) }
    const margin = (seen.bottom - seen.top) / 8
    const first = Math.min(...rows.map(row => row.getBoundingClientRect().top))
    const last = Math.max(...rows.map(row => row.getBoundingClientRect().bottom))
    if (first >= seen.top + margin && last <= seen.bottom - margin) return
    const centred = (first + last - seen.top - seen.bottom) / 2
    const top = Math.min(centred, first - seen.top - margin) // where they do not fit, the first ones are shown
    this.code.scrollBy({ top, behavior: calm.matches ? "auto" : "smooth" })
  }
}

/** @type {Map<Element, Reading>} */
const readings = new Map()
/** @type {Set<Reading>} */
const inView = new Set()
let waiting = false

function update() {
  waiting = false
  const page = document.documentElement
  const left = page.scrollHeight - innerHeight - scrollY // how far the page can still scroll
  const eye = innerHeight * EYE
  const low = Math.max(eye, innerHeight - left)
  for (const reading of inView) reading.read(low)
}

function schedule() {
  if (waiting) return
  waiting = true
  requestAnimationFrame(update)
}

const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) inView[isIntersecting ? "add" : "delete"](readings.get(target))
  schedule()
})

for (const block of document.querySelectorAll(".reading")) {
  readings.set(block, new Reading(block))
  watcher.observe(block)
}
addEventListener("scroll", schedule, { passive: true })
addEventListener("resize", schedule)
