/** The lines of both sides, as elements. */

import { runs } from "./compiled_pane.mjs"
import { words } from "./compiled_words.mjs"

const OPCODE = { // what stands before the opcode, and the opcode
  ttgir: /^(\s*(?:%[\w:, %#]+ = )?"?)([a-z]\w*\.[\w.]+)/, ptx: /^(\s*(?:@!?%p\d+\s+)?)([a-z][\w.:]*)/,
  sass: /^(\s+(?:@!?U?P\w+\s+)?)([A-Z][\w.]*)/, amdgcn: /^(\s+)([a-z]\w*)/,
}

/** @param {string} tag @param {object} properties @param {(Node | string)[]} children @returns {HTMLElement} */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}

/** @param {string} text */
const escape = text => text.replace(/[&<]/g, character => ({ "&": "&amp;", "<": "&lt;" })[character])

/**
 * @param {DocumentFragment} template the source, as the page holds it
 * @param {Map<string, number[]>} rowsOf rows of the output by place (file:line)
 * @param {string[][]} chainOf places of each row of the output, innermost first
 * @param {string[]} files @returns {{lines: HTMLElement, rows: HTMLElement[]}}
 */
export function sourceLines(template, rowsOf, chainOf, files) {
  const lines = make("div", { className: "rows highlight", role: "presentation" }, template.cloneNode(true))
  const own = new Map() // rows of a place itself; rowsOf also has those of what it calls
  for (const [place] of chainOf) if (place) own.set(place, (own.get(place) ?? 0) + 1)
  const most = Math.max(1, ...own.values())
  const rows = [...lines.querySelectorAll("[data-no]")]
  for (const row of rows) {
    const { no } = row.dataset
    row.dataset.place = `${files.indexOf(row.closest("[data-file]").dataset.file)}:${no}`
    const became = rowsOf.get(row.dataset.place) ?? []
    const count = make("span", { className: "count" }, became.length ? String(became.length) : "")
    if (became.length) count.title = words.became(`L${no}`, became.length, 1, runs(became).length)
    count.style.setProperty("--share", Math.sqrt((own.get(row.dataset.place) ?? 0) / most))
    row.classList.toggle("none", !became.length)
    row.prepend(count, make("span", { className: "no" }, no))
  }
  for (const file of lines.querySelectorAll("[data-file]")) Object.assign(file, { role: "group", ariaLabel: file.dataset.file })
  return { lines, rows }
}

/**
 * @param {string} stage @param {{classes: string, loops: [number, number][]}} content @param {string[]} texts
 * @returns {HTMLElement} its children are the rows
 */
export function outputLines(stage, { classes, loops }, texts) {
  const lines = make("div", { className: "rows", role: "presentation" })
  lines.style.setProperty("--digits", String(texts.length).length)
  lines.innerHTML = texts.map((text, i) => {
    const code = classes[i]
    const [, before, name] = (code !== "-" && OPCODE[stage].exec(text)) || []
    const after = name && escape(text.slice(before.length + name.length))
    const shown = name ? `${escape(before)}<b class="code-${code}">${name}</b>${after}` : escape(text)
    const looped = loops.some(([first, last]) => first <= i && i <= last)
    return `<div class="${looped ? "looped" : ""}"><span class="no">${i + 1}</span>${shown}</div>`
  }).join("")
  return lines
}
