/**
 * Draws the formulas that arithmatex marked: \( ... \) in the line, \[ ... \] as a block. KaTeX weighs more than a
 * page's text, so it is fetched when a formula is in the window, or at the first sign of a reader.
 */

import { reader } from "./wake.mjs"

const SLICE = 12 // ms: longer at one stretch, and the page would not answer a finger
const vendor = new URL("../vendor/katex/", import.meta.url)
const rest = [...document.querySelectorAll(".arithmatex")]

/** @param {Element} element */
function draw(element) {
  const text = element.textContent.trim()
  window.katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: true })
  if (element.scrollWidth > element.clientWidth) element.tabIndex = 0 // wider than the page: scrolled by keys too
}

/** From the top, with a pause for whatever else is to be done. */
function drawSome() {
  const end = performance.now() + SLICE
  while (rest.length > 0 && performance.now() < end) draw(rest.shift())
  if (rest.length > 0) setTimeout(drawSome)
}

/** @param {"link" | "script"} tag @param {Record<string, string>} attributes */
function load(tag, attributes) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(tag), attributes)
    element.onload = resolve
    element.onerror = () => reject(new Error(`cannot load ${attributes.href ?? attributes.src}`))
    document.head.append(element)
  })
}

let begun = false

async function begin() {
  if (begun) return
  begun = true
  near.disconnect()
  await Promise.all([
    load("link", { rel: "stylesheet", href: new URL("katex.min.css", vendor).href }),
    load("script", { src: new URL("katex.min.js", vendor).href }),
  ])
  drawSome()
}

const near = new IntersectionObserver(seen => {
  if (seen.some(({ isIntersecting }) => isIntersecting)) begin()
})
for (const element of rest) near.observe(element)
reader.then(begin)
