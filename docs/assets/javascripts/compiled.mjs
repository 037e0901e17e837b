/**
 * A kernel's source beside what the compiler made of it: Triton's IR, PTX and SASS, or AMDGCN.
 *
 * Choosing a line on either side lights the lines that belong to it on the other, by the compiler's own line tables.
 * A line of an inlined function belongs to its own source line and to those that called it. The texts are fetched when
 * the reader opens the view. `#compiled=l2_packed.sm_90.sass:L125` opens it there; `:412` is a line of the other side.
 * Links with data-compiled do the same.
 */

import { make, outputLines, sourceLines } from "./compiled_lines.mjs"
import { Pane, runs } from "./compiled_pane.mjs"
import { STAGES, words } from "./compiled_words.mjs"

const KEY = "compiled-target"
const HASH = /^#compiled=(\w+)\.(\w+)\.(\w+)(?::(?:(\w+):)?L(\d+)|:(\d+))?$/

/** @type {Map<string, Promise<object>>} */
const records = new Map()

/** @param {string} url @returns {Promise<object>} */
function fetchRecord(url) {
  if (!records.has(url)) {
    const record = fetch(url).then(answer => answer.ok ? answer.json() : Promise.reject(new Error(answer.status)))
    record.catch(() => records.delete(url)) // the next choice tries again
    records.set(url, record)
  }
  return records.get(url)
}

let groups = 0

class View {
  /** @param {HTMLElement} block */
  constructor(block) {
    this.block = block
    /** @type {Record<string, {function: string, targets: Record<string, {gpu: string, url: string, stages: string[]}>}>} */
    this.about = JSON.parse(block.dataset.compiled)
    this.kernel = Object.keys(this.about)[0]
    const { targets } = this.about[this.kernel]
    const kept = localStorage.getItem(KEY)
    this.target = [kept, "sm_90", Object.keys(targets)[0]].find(target => target in targets)
    this.stage = targets[this.target].stages.at(-1)
    /** @type {{place?: string, row?: number} | undefined} a source line (file:line) or a row of the output */
    this.chosen = undefined
    this.part = 0
    this.query = { text: "", code: "" }
    this.button = make("button", { className: "compiled-open", type: "button", onclick: () => this.open() }, words.open)
    block.prepend(this.button)
  }

  open() {
    if (!this.view) this.build()
    return this.load()
  }

  build() {
    this.source = new Pane(words.source)
    this.output = new Pane("")
    this.figures = make("p", { className: "compiled-figures" })
    this.status = make("p", { className: "compiled-status", role: "status" }, words.hint)
    this.kernels = make("fieldset")
    this.targets = make("fieldset")
    this.stages = make("fieldset")
    this.input = make("input", { type: "search", spellcheck: false, autocapitalize: "none", ariaLabel: words.find, placeholder: words.find })
    this.hitCount = make("output", { ariaLive: "polite" })
    this.codes = make("div", { className: "compiled-codes", role: "group", ariaLabel: words.find })
    const step = (text, label, by) =>
      make("button", { type: "button", ariaLabel: label, title: label, onclick: () => this.step(by, true) }, text)
    const full = make("button", { type: "button", className: "compiled-full", onclick: () => this.view.requestFullscreen() }, words.full)
    full.hidden = !document.fullscreenEnabled
    const find = make("div", { className: "compiled-find", role: "search" }, this.input, step("↑", words.previous, -1), step("↓", words.next, 1), this.hitCount)
    this.view = make("div", { className: "compiled-view" },
      make("div", { className: "compiled-choices" }, this.kernels, this.targets, this.stages),
      make("div", { className: "compiled-head" }, this.figures, full), make("div", { className: "compiled-search" }, find, this.codes),
      make("div", { className: "compiled-panes" }, this.source.element, this.output.element), this.status)
    this.button.replaceWith(this.view)
    this.input.addEventListener("input", () => this.search({ text: this.input.value, code: "" }))
    this.input.addEventListener("keydown", event => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1, true)
    })
    this.source.onChoose = row => this.choose({ place: this.places[row] })
    this.source.onPoint = row => this.light(row < 0 ? this.chosen : { place: this.places[row] })
    this.output.onChoose = row => this.choose({ row })
    this.output.onPoint = row => this.light(row < 0 ? this.chosen : { row })
  }

  /** A row of radio buttons. @param {HTMLElement} set @param {string} legend @param {[string, string, string?][]} options */
  radios(set, legend, options, chosen, act) {
    const name = `compiled-${groups++}`
    set.replaceChildren(make("legend", {}, legend), ...options.map(([value, label, more]) => {
      const input = make("input", { type: "radio", name, value, checked: value === chosen, onchange: () => act(value) })
      return make("label", {}, input, make("span", {}, label, ...more ? [" ", make("small", {}, more)] : []))
    }))
    set.hidden = options.length < 2
  }

  /** Show what is chosen: fetch it, then fill both sides. */
  async load() {
    const { targets } = this.about[this.kernel]
    const { url, stages } = targets[this.target]
    if (!stages.includes(this.stage)) this.stage = stages.at(-1)
    const focused = document.activeElement?.closest(".compiled-choices input")?.value
    const set = change => { Object.assign(this, change); this.load() }
    this.radios(this.kernels, words.kernel, Object.entries(this.about).map(([name, { function: text }]) => [name, text]), this.kernel,
      kernel => set({ kernel, chosen: undefined }))
    this.radios(this.targets, words.target, Object.entries(targets).map(([name, { gpu }]) => [name, name, gpu]), this.target,
      target => { localStorage.setItem(KEY, target); set({ target, chosen: this.chosen?.place && this.chosen }) })
    this.radios(this.stages, words.stage, stages.map(stage => [stage, STAGES[stage]]), this.stage,
      stage => set({ stage, chosen: this.chosen?.place && this.chosen }))
    if (focused) this.view.querySelector(`input[type=radio][value="${focused}"]`)?.focus()
    this.figures.textContent = words.loading
    try {
      this.record = await fetchRecord(url)
    } catch {
      this.figures.textContent = words.failed(url)
      return
    }
    if (url !== this.about[this.kernel].targets[this.target].url) return // another was chosen meanwhile
    this.figures.textContent = words.figures(this.record)
    this.content = this.record.stages[this.stage]
    this.files = [...new Set(this.record.functions.map(([path]) => path))]
    this.index()
    this.fillSource()
    this.fillOutput()
    this.search(this.query, false)
    if (this.chosen) this.choose(this.chosen)
    else this.status.textContent = words.hint
  }

  /** The places of each row, innermost first, and the rows of each place. */
  index() {
    const chains = this.content.chains.map(chain =>
      Array.from({ length: chain.length / 2 }, (_, i) => `${chain[2 * i]}:${chain[2 * i + 1]}`))
    /** @type {string[][]} */
    this.chainOf = []
    for (let i = 0; i < this.content.runs.length; i += 2) {
      const chain = chains[this.content.runs[i]] ?? []
      for (let n = this.content.runs[i + 1]; n > 0; n--) this.chainOf.push(chain)
    }
    /** @type {Map<string, number[]>} */
    this.rowsOf = new Map()
    this.chainOf.forEach((chain, row) => {
      for (const place of new Set(chain)) this.rowsOf.set(place, [...this.rowsOf.get(place) ?? [], row])
    })
  }

  fillSource() {
    const { content } = this.block.querySelector(`template[data-kernel="${this.kernel}"]`)
    const { lines, rows } = sourceLines(content, this.rowsOf, this.chainOf, this.files)
    this.places = rows.map(row => row.dataset.place)
    this.source.fill(lines, rows)
  }

  fillOutput() {
    this.texts = this.content.text.split("\n")
    const lines = outputLines(this.stage, this.content, this.texts)
    this.output.fill(lines, [...lines.children])
    this.output.box.ariaLabel = `${STAGES[this.stage]}, ${this.target}`
    const count = code => this.content.classes.split(code).length - 1
    const press = code => this.search({ text: "", code: this.query.code === code ? "" : code }, true)
    this.codes.replaceChildren(...Object.entries(words.classes).filter(([code]) => count(code)).map(([code, name]) =>
      make("button", { type: "button", className: `code-${code}`, value: code, onclick: () => press(code) }, `${name} ${count(code)}`)))
  }

  /** @param {{place?: string, row?: number}} what chosen; a source line again: its next part */
  choose(what) {
    const again = what.place && what.place === this.chosen?.place && this.lastLoad === this.content
    this.part = again ? this.part + 1 : 0
    this.lastLoad = this.content
    this.chosen = what
    this.light(what)
    if (what.place) {
      const rows = this.rowsOf.get(what.place) ?? []
      const parts = runs(rows)
      this.part %= parts.length || 1
      const row = this.places.indexOf(what.place)
      this.source.activate(row)
      if (row >= 0) this.source.show(row)
      if (rows.length) this.output.show(parts[this.part][0])
      this.status.textContent = words.became(this.name(what.place), rows.length, this.part + 1, parts.length)
    } else {
      const [place, ...calls] = this.chainOf[what.row]
      this.output.activate(what.row)
      this.output.show(what.row)
      if (place) this.source.show(this.places.indexOf(place))
      this.status.textContent = words.from(what.row + 1, place && this.name(place), calls.map(call => this.name(call)))
    }
    history.replaceState(null, "", this.hash())
  }

  /** Light what belongs to a line, on both sides. @param {{place?: string, row?: number} | undefined} what */
  light(what) {
    if (what?.place) {
      this.source.light([this.places.indexOf(what.place)])
      this.output.light(this.rowsOf.get(what.place) ?? [])
    } else if (what) {
      const [place, ...calls] = this.chainOf[what.row]
      this.source.light([this.places.indexOf(place)], calls.map(call => this.places.indexOf(call)))
      this.output.light([what.row])
    } else for (const pane of [this.source, this.output]) pane.light([])
  }

  /** @param {string} place @returns {string} as in print; the file too where there are several */
  name(place) {
    const [file, line] = place.split(":")
    return this.files.length > 1 ? `${this.files[file].split("/").at(-1)} L${line}` : `L${line}`
  }

  hash() {
    const head = `#compiled=${this.kernel}.${this.target}.${this.stage}`
    if (!this.chosen?.place) return this.chosen ? `${head}:${this.chosen.row + 1}` : head
    const [file, line] = this.chosen.place.split(":")
    return `${head}:${file === "0" ? "" : `${this.files[file].split("/").at(-1).replace(".py", "")}:`}L${line}`
  }

  /** @param {{text: string, code: string}} query words, or a class of instructions @param {boolean} go to the first */
  search(query, go = Boolean(query.text)) {
    this.query = query
    const text = query.text.trim().toLowerCase()
    if (query.code) this.input.value = ""
    const fits = query.code ? row => this.content.classes[row] === query.code : row => text && this.texts[row].toLowerCase().includes(text)
    this.hits = [...this.texts.keys()].filter(fits)
    this.hit = -1
    this.output.rows.forEach(row => row.classList.remove("hit", "hit-now"))
    for (const row of this.hits) this.output.rows[row].classList.add("hit")
    for (const button of this.codes.children) button.ariaPressed = String(button.value === query.code)
    this.hitCount.value = text || query.code ? words.hits(0, this.hits.length) : ""
    if (go && this.hits.length) this.step(1)
  }

  /** @param {number} by 1: to the next hit, -1: to the one before @param {boolean} page scroll to the pane as well */
  step(by, page = false) {
    if (!this.hits?.length) return
    if (page) this.output.element.scrollIntoView({ block: "nearest" })
    this.output.rows[this.hits[this.hit]]?.classList.remove("hit-now")
    this.hit = (Math.max(this.hit, by < 0 ? 0 : -1) + by + this.hits.length) % this.hits.length
    const row = this.hits[this.hit]
    this.output.rows[row].classList.add("hit-now")
    this.hitCount.value = words.hits(this.hit + 1, this.hits.length)
    this.choose({ row })
  }

  /** Open what the address names, if it names one of these kernels. @param {RegExpMatchArray | null} link */
  async follow(link) {
    const [, kernel, target, stage, file, line, row] = link ?? []
    if (!this.about[kernel]?.targets[target]?.stages.includes(stage)) return
    Object.assign(this, { kernel, target, stage, chosen: undefined })
    await this.open()
    this.view.scrollIntoView({ block: "start" })
    if (!this.record) return
    const index = file ? this.files.findIndex(path => path.endsWith(`/${file}.py`)) : 0
    if (line && this.places.includes(`${index}:${line}`)) this.choose({ place: `${index}:${line}` })
    if (row && Number(row) <= this.texts.length) this.choose({ row: Number(row) - 1 })
  }
}

const views = [...document.querySelectorAll(".compiled")].map(block => new View(block))
const follow = hash => views.forEach(view => view.follow(HASH.exec(hash)))
addEventListener("hashchange", () => follow(location.hash))
follow(location.hash)
for (const link of document.querySelectorAll("a[data-compiled]")) {
  link.addEventListener("click", event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    follow(`#compiled=${link.dataset.compiled}`)
  })
}
