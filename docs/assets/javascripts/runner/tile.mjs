/** A variable of a kernel, shown: a number, or a table of the numbers of a tile with those that changed marked. */

import { numberText } from "./numbers.mjs"
import { make } from "./output.mjs"
import { blocksOf, difference } from "./replay.mjs"

/** @typedef {import("./numbers.mjs").Num} Num */
/** @typedef {import("./replay.mjs").Value} Value */
/** @typedef {import("./views_words.mjs").Words} Words */

/** @param {Value} value @returns {boolean} */
export const isTile = ({ shape }) => Boolean(shape?.length)

/** @param {Value} value @returns {string} the dtype, and the shape of a tile: "fp32 [16, 64]" */
export function typeText({ dtype = "", shape }) {
  return shape?.length ? `${dtype} [${shape.join(", ")}]` : dtype
}

/** A value in one line: the number, or how far those of a tile reach. @param {Value} value @param {Words} words @returns {string} */
export function shortText(value, words) {
  const { text, items, data, dtype = "", shape, base } = value
  if (text !== undefined) return text
  if (items) return `(${items.map(item => shortText(item, words)).join(", ")})`
  if (!shape?.length) return `${base ? `${base} + ` : ""}${numberText(/** @type {Num} */ (data), dtype)}`
  if (value.true !== undefined) return words.truths(value.true, shape.reduce((a, b) => a * b, 1))
  if (value.min === undefined || value.max === undefined) return ""
  const range = words.range(numberText(value.min, dtype, false), numberText(value.max, dtype, false))
  return value.nan ? `${range} · ${words.nans(value.nan)}` : range
}

/** What became of a variable, in one line. @param {import("./replay.mjs").Variable} variable @param {Words} words @returns {string} */
export function changeText({ value, before, change }, words) {
  if (change === "new") return words.fresh
  if (change === "same") return words.same
  if (change === "kept" || !before) return ""
  if (!isTile(value) || !isTile(before)) return `${shortText(before, words)} → ${shortText(value, words)}`
  const { differ, of } = difference(value, before)
  return words.differ(differ, of, String(value.shown) !== String(value.shape))
}

/**
 * The table of a tile, one for each leading index where it has three axes or more.
 * @param {string} name @param {Value} value @param {Value | undefined} before the same variable, a step earlier
 * @param {boolean} whole every digit @param {Words} words @returns {HTMLElement}
 */
export function tileOf(name, value, before, whole, words) {
  const box = make("div", { className: "tile" })
  const same = before && String(before.shape) === String(value.shape)
  const earlier = same ? blocksOf(before) : []
  for (const [b, { index, rows }] of blocksOf(value).entries()) {
    const lead = index.map(i => `${i}, `).join("")
    const one = value.shape?.length === 1
    const head = make("tr", {}, make("td", {}), ...rows[0].map((_, column) => make("th", { scope: "col" }, String(column))))
    const body = rows.map((row, r) => make("tr", {}, one ? make("td", {}) : make("th", { scope: "row" }, String(r)), ...row.map((number, column) => {
      const cell = make("td", { title: `${name}[${lead}${one ? "" : `${r}, `}${column}] = ${numberText(number, value.dtype ?? "")}` }, numberText(number, value.dtype ?? "", whole))
      if (before && !Object.is(earlier[b]?.rows[r]?.[column], number)) cell.className = "differs"
      return cell
    })))
    const table = make("table", { className: "tile-table", ariaLabel: name }, make("thead", {}, head), make("tbody", {}, ...body))
    if (lead) table.prepend(make("caption", {}, `${name}[${lead}:, :]`))
    box.append(table)
  }
  const notes = []
  if (value.base) notes.push(words.pointer(value.base))
  if (String(value.shown) !== String(value.shape)) notes.push(words.corner(value.shown?.join(" × ") ?? ""))
  const scroll = make("div", { className: "tile-scroll", tabIndex: 0, ariaLabel: name }, box)
  scroll.setAttribute("role", "group")
  return make("div", {}, scroll, ...(notes.length ? [make("p", { className: "run-view-hint" }, notes.join("; "))] : []))
}
