/**
 * Which program read which physical pages, in what order: a table of programs by order, and the pool of pages.
 *
 * Both light every cell of the page that the reader points at or chooses. mountPageMap(container, page_map, { lang })
 * fills the container; onProgram, if there is one, is asked to step through a program.
 */

import { bytesText } from "./numbers.mjs"
import { make } from "./output.mjs"
import { kindOf, LaunchFacts } from "./page_map_facts.mjs"
import { wantStyle } from "./views_style.mjs"
import { wordsOf } from "./views_words.mjs"

/** @typedef {import("./page_map_facts.mjs").PageMap} PageMap */
/** @typedef {{kernel: string, program: [number, number, number], launch?: number}} StepsOf */
/** @typedef {{lang: string, onProgram?: (of: StepsOf) => void}} Options */

const MOST_ROWS = 256
const MOST_COLUMNS = 128
const MOVES = new Map([["ArrowLeft", [0, -1]], ["ArrowRight", [0, 1]], ["ArrowUp", [-1, 0]], ["ArrowDown", [1, 0]]])

/** @param {HTMLElement} container @param {PageMap | null} data @param {Options} options */
export function mountPageMap(container, data, options) {
  wantStyle()
  const words = wordsOf(options.lang)
  const section = make("section", { className: "run-view page-map", ariaLabel: words.map })
  section.append(make("p", { className: "run-view-title" }, words.map))
  container.append(section)
  if (!data?.launches.length) {
    section.append(make("p", { className: "run-view-hint" }, words.none))
    return
  }
  const place = make("div", {})
  const last = data.launches.length - 1 // what a program comes to in the end
  const show = (/** @type {number} */ index) => place.replaceChildren(new LaunchView(data.launches[index], options).element)
  if (data.launches.length > 1) {
    const select = make("select", {}, ...data.launches.map(({ kernel, grid, launch }, index) =>
      make("option", { value: String(index) }, `${launch}: ${kernel}, grid ${grid.join(" × ")}`)))
    select.value = String(last)
    select.addEventListener("change", () => show(Number(select.value)))
    section.append(make("label", { className: "run-view-choice" }, `${words.launch} `, select))
  }
  section.append(place)
  show(last)
}

class LaunchView {
  /** @param {import("./page_map_facts.mjs").LaunchMap} map @param {Options} options */
  constructor(map, options) {
    this.facts = new LaunchFacts(map)
    this.options = options
    this.words = wordsOf(options.lang)
    this.said = make("p", { className: "page-map-said" }, this.words.mapHint)
    this.said.setAttribute("role", "status")
    this.stepButton = make("button", { type: "button", hidden: true }, this.words.stepThis)
    this.stepButton.addEventListener("click", () => this.askForSteps())
    /** @type {HTMLElement[][]} */
    this.rows = []
    this.chosenRow = -1
    this.element = make("div", {}, this.figures(), this.pool(), this.legend(), this.table(), make("div", { className: "page-map-foot" }, this.said, this.stepButton), this.text())
    this.cells = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll("[data-page]")])
    this.heads = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll("th[data-program]")])
    this.listen()
  }

  figures() {
    const { words, facts, facts: { map } } = this
    const ratio = facts.ratio
    const rows = [
      [words.readBytes, facts.roles.length > 1 ? `${bytesText(map.bytes.total)} = ${facts.roles.map(role => `${role.toUpperCase()} ${bytesText(map.bytes[role] ?? 0)}`).join(" + ")}` : bytesText(map.bytes.total)],
      [words.least, bytesText(map.bytes.least)],
      [words.ratio, ratio === undefined ? "–" : `${ratio.toFixed(2)}×`],
      [words.shared, String(facts.shared)],
      [words.unread, String(facts.unread)],
    ]
    const list = make("dl", { className: "page-map-figures" }, ...rows.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))))
    return make("div", {}, list, make("p", { className: "page-map-verdict" }, words.verdict(map.bytes, map.missed)), make("p", { className: "run-view-hint" }, words.counted))
  }

  pool() {
    const { words, facts: { map } } = this
    const label = words.pool(map.num_pages)
    const list = make("div", { className: "page-map-pool", ariaLabel: label })
    list.setAttribute("role", "listbox")
    list.append(...map.pages.map((page, i) => {
      const cell = make("div", { className: `page-cell page-${kindOf(page)}`, tabIndex: i ? -1 : 0 }, String(page.page))
      cell.setAttribute("role", "option")
      cell.setAttribute("aria-selected", "false")
      cell.ariaLabel = this.sayPage(page.page)
      cell.dataset.page = String(page.page)
      return cell
    }))
    this.poolList = list
    return make("div", {}, make("p", { className: "page-map-caption" }, label), list)
  }

  legend() {
    const { words, facts: { map } } = this
    const kinds = new Set(map.pages.map(kindOf))
    return make("ul", { className: "page-map-legend" }, ...Object.entries(words.legend).filter(([kind]) => kinds.has(/** @type {any} */ (kind)))
      .map(([kind, text]) => make("li", {}, make("span", { className: `page-cell page-${kind}`, ariaHidden: "true" }), text)))
  }

  table() {
    const { words, facts, facts: { map, roles } } = this
    const columns = Math.min(Math.max(1, facts.most), MOST_COLUMNS)
    const numbers = Array.from({ length: columns }, (_, i) => make("th", { scope: "col" }, String(i + 1)))
    const head = make("tr", {}, make("th", { scope: "col" }, words.program), ...numbers, ...roles.map(role => make("th", { scope: "col" }, words.bytesOf(role.toUpperCase()))))
    const rows = map.programs.slice(0, MOST_ROWS).map((_, row) => this.row(row, columns))
    const table = make("table", { className: "page-map-table" }, make("caption", {}, words.order(map.kernel, map.grid.join(" × "))), make("thead", {}, head), make("tbody", {}, ...rows))
    table.setAttribute("role", "grid")
    const first = this.rows.find(cells => cells.length)
    if (first) first[0].tabIndex = 0
    this.grid = table
    const rest = map.programs.length - rows.length
    return make("div", {}, make("div", { className: "page-map-scroll" }, table), ...(rest > 0 ? [make("p", { className: "run-view-hint" }, words.more(rest))] : []))
  }

  /** @param {number} row @param {number} columns */
  row(row, columns) {
    const { words, facts, facts: { map, roles } } = this
    const { reads, ...bytes } = map.programs[row]
    const head = make("th", { scope: "row" }, facts.name(row))
    head.dataset.program = String(row)
    const cells = reads.slice(0, columns).map((read, place) => {
      const kind = kindOf(facts.byPage.get(read.page) ?? { ...read, programs: [row], tokens: null, bytes: 0, distinct: 0, times: 1 })
      const cell = make("td", { className: `page-cell page-${kind}`, tabIndex: -1, ariaLabel: words.read(facts.read(row, place)) }, String(read.page))
      cell.style.setProperty("--part", String(read.slots / map.page_size))
      cell.setAttribute("aria-selected", "false")
      Object.assign(cell.dataset, { page: read.page, row, place })
      return cell
    })
    this.rows.push(cells)
    const beyond = reads.length > columns ? [words.more(reads.length - columns)] : reads.length ? [] : [words.nothing]
    const rest = columns - cells.length
    const filler = rest || beyond.length ? [make("td", { className: "page-map-rest", colSpan: Math.max(1, rest) }, ...beyond)] : []
    return make("tr", {}, head, ...cells, ...filler, ...roles.map(role => make("td", { className: "page-map-bytes" }, (bytes[role] ?? 0).toLocaleString("en"))))
  }

  text() {
    const { words, facts, facts: { map, roles } } = this
    const programs = map.programs.slice(0, MOST_ROWS).map(({ reads, ...bytes }, row) =>
      make("li", {}, words.programReads(facts.name(row), reads.map(({ page }) => page), roles.map(role => `${role.toUpperCase()} ${bytesText(bytes[role] ?? 0)}`).join(" + "))))
    const pages = map.pages.map(({ page }) => make("li", {}, this.sayPage(page)))
    return make("details", { className: "page-map-text" }, make("summary", {}, words.asText), make("ul", {}, ...programs), make("ul", {}, ...pages))
  }

  /** @param {number} page */
  sayPage(page) {
    const facts = this.facts.page(page)
    return facts ? this.words.page(facts) : ""
  }

  listen() {
    const { element } = this
    element.addEventListener("pointerover", event => this.point(cellOf(event)))
    element.addEventListener("pointerleave", () => this.light(this.chosen?.dataset.page))
    element.addEventListener("click", event => cellOf(event)?.focus())
    element.addEventListener("focusin", event => {
      const cell = cellOf(event)
      if (cell) this.choose(cell)
    })
    element.addEventListener("keydown", event => this.key(event))
  }

  /** @param {HTMLElement | null} cell */
  point(cell) {
    this.light(cell?.dataset.page ?? this.chosen?.dataset.page)
  }

  /** @param {HTMLElement} cell */
  choose(cell) {
    const inPool = cell.parentElement === this.poolList
    for (const each of inPool ? this.poolList?.children ?? [] : this.rows.flat()) /** @type {HTMLElement} */ (each).tabIndex = -1
    cell.tabIndex = 0
    this.chosen = cell
    const page = Number(cell.dataset.page)
    for (const each of this.cells) each.setAttribute("aria-selected", String(each.dataset.page === cell.dataset.page))
    this.light(cell.dataset.page)
    this.chosenRow = cell.dataset.row === undefined ? -1 : Number(cell.dataset.row)
    const read = cell.dataset.row === undefined ? "" : this.words.read(this.facts.read(this.chosenRow, Number(cell.dataset.place)))
    this.said.textContent = [read, this.sayPage(page)].filter(Boolean).join(" ")
    this.stepButton.hidden = this.chosenRow < 0 || !this.options.onProgram
  }

  letGo() {
    this.chosen = undefined
    for (const each of this.cells) each.setAttribute("aria-selected", "false")
    this.light(undefined)
    this.said.textContent = this.words.mapHint
    this.stepButton.hidden = true
  }

  /** Light every cell of a page, and the programs that read it. @param {string | undefined} page */
  light(page) {
    for (const cell of this.cells) cell.classList.toggle("lit", page !== undefined && cell.dataset.page === page)
    const programs = new Set(page === undefined ? [] : this.facts.byPage.get(Number(page))?.programs ?? [])
    for (const head of this.heads) head.classList.toggle("lit", programs.has(Number(head.dataset.program)))
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const cell = cellOf(event)
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === "Escape") this.letGo()
    else if (!this.move(cell, event.key)) return
    event.preventDefault()
  }

  /** @param {HTMLElement} cell @param {string} key @returns {boolean} whether the key means anything here */
  move(cell, key) {
    const [down, right] = MOVES.get(key) ?? [0, 0]
    if (!down && !right && key !== "Home" && key !== "End") return false
    if (cell.dataset.row === undefined) {
      const all = /** @type {HTMLElement[]} */ ([...this.poolList?.children ?? []])
      const at = all.indexOf(cell) + right + down * perLine(all)
      all[key === "Home" ? 0 : key === "End" ? all.length - 1 : at]?.focus()
      return true
    }
    const row = Number(cell.dataset.row)
    const column = key === "Home" ? 0 : key === "End" ? Infinity : Number(cell.dataset.place) + right
    let to = row + down
    while (down && this.rows[to] && !this.rows[to].length) to += down // programs that read nothing have no cell
    const cells = this.rows[to]
    if (cells && column >= 0) cells[Math.min(column, cells.length - 1)].focus()
    return true
  }

  askForSteps() {
    const { kernel, launch, programs } = this.facts.map
    const [x, y, z] = programs[this.chosenRow].program
    this.options.onProgram?.({ kernel, program: [x, y, z], launch })
  }
}

/** @param {Event} event @returns {HTMLElement | null} */
const cellOf = event => (event.target instanceof Element ? event.target.closest("[data-page]") : null)

/** How many cells stand in the first line of a box that wraps. @param {HTMLElement[]} cells */
function perLine(cells) {
  const below = cells.findIndex(cell => cell.offsetTop > cells[0].offsetTop)
  return below < 0 ? cells.length : below
}
