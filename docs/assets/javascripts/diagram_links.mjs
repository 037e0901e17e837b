/**
 * Diagrams that show what a node is connected to. scripts/svg.py gives nodes data-node and edges data-from, data-to.
 *
 * Pointing at a node, or moving to it by keys, lights its edges and what they lead to; a click, a tap or Enter keeps
 * it lit, the same again or Escape lets it go. One stop of the Tab key a diagram: arrow keys go from node to node.
 */

import { linksOf, told } from "./diagram_graph.mjs"

/** @typedef {import("./diagram_graph.mjs").Edge} Edge */

const NEXT = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }

class Diagram {
  /** @type {string | undefined} the node that is kept lit */ #kept

  /** @param {SVGSVGElement} svg */
  constructor(svg) {
    this.svg = svg
    /** @type {Map<string, SVGGElement>} */
    this.nodes = new Map()
    for (const node of /** @type {NodeListOf<SVGGElement>} */ (svg.querySelectorAll("[data-node]"))) {
      this.nodes.set(node.dataset.node ?? "", node)
    }
    this.lines = /** @type {SVGGElement[]} */ ([...svg.querySelectorAll("[data-from]")])
    /** @type {Edge[]} */
    this.edges = this.lines.map(({ dataset }) =>
      ({ from: (dataset.from ?? "").split(" "), to: (dataset.to ?? "").split(" ") }))
    svg.classList.add("links")
    svg.setAttribute("role", "group") // an image has no parts that could be reached
    const label = /** @param {string} name */ name => this.nodes.get(name)?.dataset.label ?? name
    let first = true
    for (const [name, node] of this.nodes) {
      const { before, after } = linksOf(name, this.edges)
      node.setAttribute("role", "button")
      node.setAttribute("aria-pressed", "false")
      node.setAttribute("aria-label", told(label(name), before.map(label), after.map(label), document.documentElement.lang))
      node.setAttribute("tabindex", first ? "0" : "-1")
      first = false
      node.addEventListener("pointerenter", event => { if (event.pointerType !== "touch") this.light(name) })
      node.addEventListener("pointerleave", event => { if (event.pointerType !== "touch") this.rest() })
      node.addEventListener("focus", () => this.focused(name))
      node.addEventListener("blur", () => this.rest())
      node.addEventListener("click", () => this.keep(name))
      node.addEventListener("keydown", event => this.key(event, name))
    }
    // A tap beside the nodes, or Escape wherever the focus is, lets go.
    svg.addEventListener("click", event => {
      if (!(/** @type {Element} */ (event.target).closest("[data-node]"))) this.keep(undefined)
    })
    addEventListener("keydown", event => { if (event.key === "Escape") this.keep(undefined) })
  }

  /** @param {string | undefined} name whose links are lit; undefined: none */
  light(name) {
    const links = name === undefined ? undefined : linksOf(name, this.edges)
    this.svg.classList.toggle("lighting", Boolean(links))
    for (const [other, node] of this.nodes) {
      node.classList.toggle("lit", Boolean(links?.nodes.has(other)))
      node.classList.toggle("source", other === name)
    }
    this.lines.forEach((line, index) => line.classList.toggle("lit", Boolean(links?.edges.has(index))))
  }

  /** Light what is kept, or nothing. */
  rest() {
    this.light(this.#kept)
  }

  /** @param {string | undefined} name to keep; the same again or undefined: let go */
  keep(name) {
    this.#kept = name === this.#kept ? undefined : name
    for (const [other, node] of this.nodes) node.setAttribute("aria-pressed", String(other === this.#kept))
    this.rest()
  }

  /** @param {string} name */
  focused(name) {
    for (const [other, node] of this.nodes) node.setAttribute("tabindex", other === name ? "0" : "-1")
    // A click focuses first, and then keeps: lighting it here as well does no harm.
    this.light(name)
  }

  /** @param {KeyboardEvent} event @param {string} name of the node that has the focus */
  key(event, name) {
    const step = NEXT[/** @type {keyof typeof NEXT} */ (event.key)]
    if (event.key === "Enter" || event.key === " ") this.keep(name)
    else if (step) {
      const names = [...this.nodes.keys()]
      this.nodes.get(names[(names.indexOf(name) + step + names.length) % names.length])?.focus()
    } else return
    event.preventDefault()
  }
}

for (const svg of /** @type {NodeListOf<SVGSVGElement>} */ (document.querySelectorAll(".drawing svg:has([data-node])"))) {
  new Diagram(svg)
}
