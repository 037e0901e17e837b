/** Names the search, keeps the place when the language is switched, and loads what the page at hand needs. */

import { awake, reader } from "./wake.mjs"

const TOP = 120 // px: the header, and what a jump to a heading leaves free below it

/** What a page may have, and the module that brings it to life. */
const PARTS = {
  ".reading a[data-lines]": "reading.mjs",
  ".gpu-set": "gpu.mjs",
  ".compiled": "compiled.mjs",
  "figure.chart": "chart.mjs",
  ".runner": "runner/panel.mjs",
  ".explorer": "explorer.mjs",
  ".drawing [data-node]": "diagram_links.mjs",
}

// The theme gives its search dialog no name.
const search = document.querySelector(".md-search")
search?.setAttribute("aria-label", search.querySelector("input").placeholder)

/**
 * The heading being read: the last one that reached the top of the window. Both languages share their anchors.
 * @returns {string} its id, or "" at the top of the page
 */
function currentHeading() {
  const headings = [...document.querySelectorAll(".md-content :is(h2, h3)[id]")]
  return headings.findLast(heading => heading.getBoundingClientRect().top < TOP)?.id ?? ""
}

for (const link of document.querySelectorAll("a.language-switch")) {
  link.addEventListener("click", () => { link.hash = currentHeading() })
}

// At once, for it may be in the first window.
if (document.querySelector(".interview-clock")) import("./interview.mjs")

await reader
const wanted = Object.entries(PARTS).filter(([selector]) => document.querySelector(selector))
await Promise.all(wanted.map(([, module]) => import(`./${module}`)))

// What scrolls sideways can be scrolled by keys too; the theme has wrapped its tables by then.
await awake
const SIDEWAYS = ".drawing, .gpu-panel, .table-scroll, .md-typeset__scrollwrap, .highlight pre > code, div.arithmatex"
const widths = new ResizeObserver(entries => {
  for (const { target } of entries) if (target.scrollWidth > target.clientWidth) target.tabIndex = 0
})
for (const box of document.querySelectorAll(SIDEWAYS)) widths.observe(box)
