/** Loads what the page at hand needs, names the search, and keeps the place when the language is switched. */

const TOP = 120 // px: the header, and what a jump to a heading leaves free below it

if (document.querySelector(".reading a[data-lines]")) import("./reading.mjs")
if (document.querySelector(".gpu-set")) import("./gpu.mjs")
if (document.querySelector(".compiled")) import("./compiled.mjs")
if (document.querySelector(".arithmatex")) import("./math.mjs")
if (document.querySelector("figure.chart")) import("./chart.mjs")
if (document.querySelector(".interview-clock")) import("./interview.mjs")

// What scrolls sideways can be scrolled by keys too; the theme has wrapped its tables when the page has loaded.
const SIDEWAYS = ".drawing, .gpu-panel, .table-scroll, .md-typeset__scrollwrap"
const widths = new ResizeObserver(entries => {
  for (const { target } of entries) if (target.scrollWidth > target.clientWidth) target.tabIndex = 0
})
addEventListener("load", () => { for (const box of document.querySelectorAll(SIDEWAYS)) widths.observe(box) })

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
