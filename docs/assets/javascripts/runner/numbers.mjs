/** Numbers of a kernel as text. A float is a JSON number that its dtype holds exactly, or "nan", "inf", "-inf". */

/** @typedef {number | string | boolean} Num */

/** Bits of the fraction, the leading one included. @type {Record<string, number>} */
const PRECISION = { fp64: 53, float: 53, fp32: 24, fp16: 11, bf16: 8, fp8e4nv: 4, fp8e5: 3 }
const SPECIAL = new Map([["nan", "NaN"], ["inf", "∞"], ["-inf", "−∞"]])
const SHORT = 4 // significant digits

/** @param {string} text a number as JavaScript writes it @returns {string} with a true minus sign */
const minus = text => text.replaceAll("-", "−")

/**
 * The shortest decimal that the dtype rounds back to this very number.
 * @param {number} value @param {string} dtype
 */
function shortest(value, dtype) {
  const bits = PRECISION[dtype]
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0"
  const half = 2 ** (Math.floor(Math.log2(Math.abs(value))) - bits) // of the gap to the next number
  /** @param {number} near */
  const rounds = near => (dtype === "fp32" ? Math.fround(near) === value : Math.abs(near - value) < half)
  for (let digits = 1; digits < 17; digits++) {
    const near = Number(value.toPrecision(digits))
    if (rounds(near)) return plain(near)
  }
  return plain(value)
}

/** @param {number} value @returns {string} always with a point or an exponent: it is a float */
function plain(value) {
  const text = String(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}

/**
 * @param {Num} value @param {string} dtype as Triton names it @param {boolean} [whole] every digit, not the first four
 * @returns {string}
 */
export function numberText(value, dtype, whole = true) {
  if (typeof value === "string") return SPECIAL.get(value) ?? minus(value)
  if (typeof value === "boolean") return dtype === "bool" ? (value ? "True" : "False") : value ? "1" : "0"
  if (!(dtype in PRECISION)) return minus(String(value))
  const exact = shortest(value, dtype)
  if (whole || exact.length <= SHORT + 2) return minus(exact)
  const rounded = Number(value.toPrecision(SHORT))
  const far = Math.abs(rounded) >= 1e5 || Math.abs(rounded) < 1e-3
  return minus(far ? value.toExponential(2) : plain(rounded))
}

/** @param {number} count bytes @returns {string} exact as long as it is easy to read */
export function bytesText(count) {
  if (count < 1e6) return `${count.toLocaleString("en")} B`
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e9).toFixed(2)} GB`
}

/** A program's place in the grid, without the axes that the grid does not use. @param {number[]} program @param {number[]} grid */
export function programText(program, grid) {
  let axes = grid.length
  while (axes > 1 && grid[axes - 1] === 1) axes--
  return `(${program.slice(0, grid.length ? axes : 3).join(", ")})`
}
