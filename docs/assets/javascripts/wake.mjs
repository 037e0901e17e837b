/**
 * A page is light until it is read. It shows its text at once; what else it can do waits for the first sign of a
 * reader, or for a quiet moment. Then the theme's script runs, site.mjs brings what the page has, and the blocks that
 * main.html marked data-later, which the browser left out below the window (site.css), are laid out.
 */

const QUIET = 8000 // ms after the page has loaded
const SLICE = 8 // ms of layout at one stretch: more, and a phone would not answer a finger
const SIGNS = ["scroll", "pointerover", "pointerdown", "keydown", "focusin"]
const HELD = ["click", "keydown"]
const KEYS = ["f", "s", "/"] // the theme's, for the search

const blocks = [...document.querySelectorAll("[data-later]")]
/** @type {HTMLScriptElement | null} */
const theme = document.querySelector("script[type='text/theme']")

/** All blocks that are left, at once: for who asks for a place on the page, or for paper. */
function joinAll() {
  for (const block of blocks.splice(0)) block.removeAttribute("data-later")
}

/** All blocks that are left, from the top, with pauses. @returns {Promise<void>} */
async function join() {
  while (blocks.length > 0) {
    for (const end = performance.now() + SLICE; blocks.length > 0 && performance.now() < end;) {
      const [block] = blocks.splice(0, 1)
      block.removeAttribute("data-later")
      block.getBoundingClientRect() // laid out now, and not with all the others
    }
    await new Promise(resolve => setTimeout(resolve))
  }
}

/**
 * Run the theme's script. It begins when the document has been read, which by now has been: that is said again.
 * @returns {Promise<void>}
 */
function runTheme() {
  return new Promise(resolve => {
    if (!theme) return resolve()
    const script = document.createElement("script")
    script.onload = () => setTimeout(() => {
      document.dispatchEvent(new Event("DOMContentLoaded"))
      resolve()
    })
    script.onerror = () => resolve() // the text is read without it
    script.src = theme.src
    document.head.append(script)
  })
}

let sign = () => {}

/** The first sign of a reader, or of quiet. @type {Promise<void>} */
export const reader = new Promise(resolve => { sign = resolve })

/** The theme has run, and the page is laid out. @type {Promise<void>} */
export const awake = reader.then(async () => {
  for (const type of SIGNS) removeEventListener(type, sign)
  await runTheme()
  for (const type of HELD) removeEventListener(type, hold, true)
  held?.()
  await join()
})

/** As at the first sign of a reader. */
export function wake() {
  sign()
  return awake
}

/** @type {(() => void) | undefined} */
let held

/** What was meant, if it is such a thing. @param {Event} event @param {string} selector @returns {HTMLElement | null} */
function meant(event, selector) {
  return event.target instanceof Element ? event.target.closest(selector) : null
}

/** @param {KeyboardEvent} event */
function isItsKey({ key, ctrlKey, metaKey, altKey }) {
  return KEYS.includes(key) && !ctrlKey && !metaKey && !altKey
}

/** The theme is told of a colour scheme or a key of its own that came before it ran. @param {Event} event */
function hold(event) {
  const choice = meant(event, "[data-md-component=palette] label")
  if (choice) held = () => choice.click()
  else if (event instanceof KeyboardEvent && event.target === document.body && isItsKey(event)) {
    held = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, bubbles: true }))
  } else return
  event.preventDefault()
}

for (const type of SIGNS) addEventListener(type, sign, { passive: true })
addEventListener("load", () => setTimeout(sign, QUIET))
for (const type of HELD) addEventListener(type, hold, true)
addEventListener("click", event => { if (meant(event, "a[href*='#']")) joinAll() }, true)
// The theme shows what was searched for, and the panel a program that came by a link.
if (/[?&][hq]=/.test(location.search) || location.hash.startsWith("#code=")) sign()
for (const type of ["hashchange", "beforeprint"]) addEventListener(type, () => { joinAll(); sign() })
