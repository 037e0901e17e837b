/** What an explorer's form needs besides the page: which fields apply, steps by arrow keys, and one drawing at a time. */

/**
 * @typedef {object} Field  as scripts/explorers/fields.py's `form` gives it
 * @property {string} name
 * @property {string} label
 * @property {"integer" | "number" | "integers" | "numbers" | "requests" | "choice"} kind
 * @property {string} value  its default, as a reader would type it
 * @property {number} [min]
 * @property {number} [max]
 * @property {boolean} [doubles]  its values are powers of two
 * @property {[string, string][]} [options]  of a choice: value, text
 * @property {string} [placeholder]  what nothing means, where that is allowed
 * @property {{field: string, is: string}} [when]  shown only where another field has this value
 */

/** @typedef {Record<string, string>} Values */

/** @param {Field} field @param {Values} values @returns {boolean} whether the field is asked for */
export const applies = ({ when }, values) => !when || values[when.field] === when.is

/**
 * What an arrow key makes of a field's text: one more or less, of a power of two twice or half, of other numbers a
 * twentieth of what they are or more. Within its limits; other kinds of fields and other texts stay as they are.
 * @param {Field} field @param {string} text @param {1 | -1} by @returns {string}
 */
export function stepped({ kind, min = -Infinity, max = Infinity, doubles }, text, by) {
  const number = Number(text)
  if ((kind !== "integer" && kind !== "number") || !text.trim() || !Number.isFinite(number)) return text
  const next = doubles ? number * 2 ** by : number + by * (kind === "integer" ? 1 : 0.25)
  return String(Math.min(max, Math.max(min, next)))
}

/**
 * Asks one at a time, and of what came meanwhile only the last. An answer is shown unless something newer is wanted.
 * @template V, A
 */
export class Latest {
  /** @type {{values: V} | undefined} what waits */ #next
  #version = 0
  #asking = false
  #ask
  #show
  #fail

  /** @param {(values: V) => Promise<A>} ask @param {(answer: A) => void} show @param {(error: unknown) => void} fail */
  constructor(ask, show, fail) {
    this.#ask = ask
    this.#show = show
    this.#fail = fail
  }

  /** @param {V} values @returns {Promise<void>} once nothing waits */
  async want(values) {
    this.#next = { values }
    this.#version++
    if (this.#asking) return
    this.#asking = true
    while (this.#next) {
      const version = this.#version
      const now = this.#next.values
      this.#next = undefined
      try {
        const answer = await this.#ask(now)
        if (version === this.#version) this.#show(answer)
      } catch (error) {
        if (version === this.#version) this.#fail(error)
      }
    }
    this.#asking = false
  }

  /** Forget what waits, and do not show the answer that is under way. */
  drop() {
    this.#next = undefined
    this.#version++
  }
}
