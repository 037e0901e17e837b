/** Loads what the page at hand needs, names the search, and keeps the place when the language is switched. */

const TOP = 120 // px: the header, and what a jump to a heading leaves free below it

if (document.querySelector(".reading a[data-lines]")) import("./reading.mjs")
if (document.querySelector(".gpu-set")) import("./gpu.mjs")
if (document.querySelector(".arithmatex")) import("./math.mjs")

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
