/**
 * Charts that answer: what a point is (pointer, touch, arrow keys, spoken), which series show, linear or log.
 *
 * The page holds the whole chart without this module; scripts/chart_svg.py says how it is laid out. The figures of a
 * point stand in the chart's table, and its mark names the row. What moves with the scale holds its place under each
 * of them: data-log, data-linear, data-near.
 */

const NEAR = 36 // px from a point within which the pointer means it
const GAP = 14 // px between a point and its figures

/** @param {string} tag @param {string} className @param {string} [text] @returns {HTMLElement} */
function create(tag, className, text = "") {
  const element = document.createElement(tag)
  element.className = className
  element.textContent = text
  return element
}

/** @param {Element} mark @returns {{x: number, y: number}} its place, in the units of its SVG */
function placeOf(mark) {
  const { e, f } = mark.transform.baseVal.consolidate().matrix
  return { x: e, y: f }
}

class Chart {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.figure = figure
    this.plot = figure.querySelector(".chart-plot")
    this.svgs = [...this.plot.querySelectorAll("svg")]
    this.columns = [...figure.querySelectorAll(".chart-data th")].map(cell => cell.textContent)
    this.rows = [...figure.querySelectorAll(".chart-data tbody tr")]
    this.alongX = figure.dataset.along === "x"
    /** @type {number | undefined} the row of the point that is shown */
    this.row = undefined
    this.tip = create("div", "chart-tip")
    this.tip.hidden = true
    this.spoken = create("p", "chart-spoken")
    this.spoken.setAttribute("aria-live", "polite")
    this.plot.append(this.tip)
    figure.append(this.spoken)
    this.cursors = this.svgs.map(svg => {
      const cursor = document.createElementNS(svg.namespaceURI, "circle")
      cursor.setAttribute("class", "chart-cursor")
      cursor.setAttribute("r", "9")
      svg.append(cursor)
      return cursor
    })
    this.makeLegend()
    this.makeScales()
    this.listen()
  }

  /** The SVG that shows: the wide one or the one for a phone. */
  get svg() {
    return this.svgs.find(svg => svg.getClientRects().length) ?? this.svgs[0]
  }

  /** @returns {{row: number, series: string, x: number, y: number}[]} the points of the series that show */
  get points() {
    return [...this.svg.querySelectorAll("g[data-series]:not([display]) > [data-row]")].map(mark => ({
      row: Number(mark.dataset.row), series: mark.parentNode.dataset.series, ...placeOf(mark),
    }))
  }

  makeLegend() {
    for (const item of this.figure.querySelectorAll(".chart-legend > li")) {
      const button = create("button", "")
      button.type = "button"
      button.setAttribute("aria-pressed", "true")
      button.append(...item.childNodes)
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") === "false"
        button.setAttribute("aria-pressed", String(on))
        for (const group of this.plot.querySelectorAll(`g[data-series="${item.dataset.series}"]`)) {
          if (on) group.removeAttribute("display")
          else group.setAttribute("display", "none")
        }
        this.show(undefined)
      })
      item.append(button)
    }
  }

  makeScales() {
    const box = this.figure.querySelector(".chart-scales")
    if (!box) return
    const buttons = [...box.querySelectorAll("button")]
    for (const button of buttons) {
      button.addEventListener("click", () => {
        if (button.getAttribute("aria-pressed") === "true") return
        for (const each of buttons) each.setAttribute("aria-pressed", String(each === button))
        this.rescale(button.dataset.scale)
        this.show(undefined)
      })
    }
    box.hidden = false
  }

  /** Lay the chart out by another scale. @param {string} scale its name */
  rescale(scale) {
    for (const element of this.plot.querySelectorAll(`[data-${scale}]`)) {
      element.setAttribute(element.hasAttribute("transform") ? "transform" : "d", element.dataset[scale])
    }
    for (const group of this.plot.querySelectorAll("g[data-scale]")) {
      if (group.dataset.scale === scale) group.removeAttribute("display")
      else group.setAttribute("display", "none")
    }
  }

  listen() {
    const { plot } = this
    plot.tabIndex = 0
    plot.setAttribute("role", "application") // so that screen readers hand over the arrow keys
    plot.setAttribute("aria-label", `${this.svgs[0].querySelector("title").textContent}. ${plot.dataset.help}`)
    plot.addEventListener("pointermove", event => {
      if (event.pointerType !== "touch") this.show(this.nearest(event)?.row)
    })
    plot.addEventListener("pointerleave", event => {
      if (event.pointerType !== "touch") this.show(undefined)
    })
    plot.addEventListener("click", event => this.show(this.nearest(event)?.row))
    plot.addEventListener("blur", () => this.show(undefined))
    plot.addEventListener("focus", () => {
      if (plot.matches(":focus-visible") && this.row === undefined) this.speak(this.points[0]?.row)
    })
    plot.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === "Escape") this.show(undefined)
      else if (!this.step(event.key)) return
      event.preventDefault()
    })
    document.addEventListener("pointerdown", event => {
      if (!this.figure.contains(event.target)) this.show(undefined)
    })
  }

  /** @param {MouseEvent} event @returns {{row: number} | undefined} the point next to the pointer */
  nearest({ clientX, clientY }) {
    const toScreen = this.svg.getScreenCTM()
    const distances = this.points.map(point => {
      const at = new DOMPoint(point.x, point.y).matrixTransform(toScreen)
      return { row: point.row, distance: Math.hypot(at.x - clientX, at.y - clientY) }
    })
    const near = distances.filter(({ distance }) => distance < NEAR)
    return near.sort((a, b) => a.distance - b.distance)[0]
  }

  /** Go to another point by a key. @param {string} key @returns {boolean} whether the key is one of ours */
  step(key) {
    const [back, on, before, after] = this.alongX
      ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]
      : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]
    if (![back, on, before, after, "Home", "End"].includes(key)) return false
    const { points } = this
    const here = points.find(({ row }) => row === this.row)
    if (!here) {
      this.speak(points[0]?.row)
      return true
    }
    const own = points.filter(({ series }) => series === here.series)
    const at = own.indexOf(here)
    if (key === "Home") this.speak(own[0].row)
    else if (key === "End") this.speak(own.at(-1).row)
    else if (key === back || key === on) this.speak((own[at + (key === on ? 1 : -1)] ?? here).row)
    else {
      const all = [...new Set(points.map(({ series }) => series))]
      const next = all[all.indexOf(here.series) + (key === after ? 1 : -1)] ?? here.series
      const away = point => Math.abs(this.alongX ? point.x - here.x : point.y - here.y)
      const others = points.filter(({ series }) => series === next)
      this.speak(others.reduce((best, point) => (away(point) < away(best) ? point : best)).row)
    }
    return true
  }

  /** Show a point, or none, for the eye. @param {number | undefined} row */
  show(row) {
    if (row === this.row) return
    this.row = row
    this.tip.hidden = row === undefined
    for (const [i, svg] of this.svgs.entries()) {
      const mark = row === undefined ? null : svg.querySelector(`[data-row="${row}"]`)
      this.cursors[i].classList.toggle("on", mark !== null)
      if (mark) this.cursors[i].setAttribute("transform", mark.getAttribute("transform"))
    }
    if (row === undefined) return
    const list = create("dl", "")
    for (const [name, value] of this.figures(row)) list.append(create("dt", "", name), create("dd", "", value))
    this.tip.replaceChildren(create("strong", "", this.rows[row].cells[0].textContent), list)
    this.putTip(row)
  }

  /** Show a point and say it. @param {number | undefined} row */
  speak(row) {
    if (row === undefined) return
    this.show(row)
    const told = this.figures(row).map(([name, value]) => `${name} ${value}`)
    this.spoken.textContent = [this.rows[row].cells[0].textContent, ...told].join("; ")
  }

  /** @param {number} row @returns {[string, string][]} what the table says of a point */
  figures(row) {
    const cells = [...this.rows[row].cells].map((cell, i) => [this.columns[i], cell.textContent])
    return cells.slice(1).filter(([, value]) => value !== "–")
  }

  /** Put the figures beside the point, within the plot. @param {number} row */
  putTip(row) {
    const { svg, plot, tip } = this
    const place = placeOf(svg.querySelector(`[data-row="${row}"]`))
    const at = new DOMPoint(place.x, place.y).matrixTransform(svg.getScreenCTM())
    const box = plot.getBoundingClientRect()
    const right = at.x - box.left + GAP
    const left = at.x - box.left - GAP - tip.offsetWidth
    tip.style.left = `${right + tip.offsetWidth <= box.width ? right : Math.max(0, left)}px`
    const top = at.y - box.top - tip.offsetHeight / 2
    tip.style.top = `${Math.max(0, Math.min(top, box.height - tip.offsetHeight))}px`
  }
}

for (const figure of document.querySelectorAll("figure.chart")) new Chart(figure)
