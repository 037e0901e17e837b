/** Draws the formulas that arithmatex marked: \( ... \) in the line, \[ ... \] as a block. */

for (const element of document.querySelectorAll(".arithmatex")) {
  const text = element.textContent.trim()
  window.katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: true })
  if (element.scrollWidth > element.clientWidth) element.tabIndex = 0 // wider than the page: scrolled by keys too
}
