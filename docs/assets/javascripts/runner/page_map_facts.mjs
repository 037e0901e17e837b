/** What scripts/runner/page_map.py found, and what follows from it; no part of the page. */

import { programText } from "./numbers.mjs"

/** @typedef {{page: number, heads: number[], slots: number, k?: number, v?: number}} Read */
/** @typedef {{program: number[], k?: number, v?: number, reads: Read[]}} Program */
/**
 * @typedef {{page: number, programs: number[], heads: number[], tokens: number | null, bytes: number, distinct: number, times: number}} Page
 */
/**
 * @typedef {object} LaunchMap
 * @property {number} launch @property {string} kernel @property {number[]} grid
 * @property {number} num_pages @property {number} page_size @property {number} num_kv_heads @property {number} head_dim
 * @property {string} dtype @property {Record<string, string>} caches @property {Program[]} programs @property {Page[]} pages
 * @property {{total: number, distinct: number, least: number, beyond: number, k?: number, v?: number}} bytes
 * @property {number | null} missed
 */
/** @typedef {{launches: LaunchMap[]}} PageMap */
/** @typedef {"one" | "several" | "again" | "never" | "missed"} Kind */

/** @param {Page} page @returns {Kind} */
export function kindOf({ programs, tokens, times }) {
  if (!programs.length) return tokens ? "missed" : "never"
  if (times > 1) return "again"
  return programs.length > 1 ? "several" : "one"
}

export class LaunchFacts {
  /** @param {LaunchMap} map */
  constructor(map) {
    this.map = map
    this.roles = /** @type {("k" | "v")[]} */ (Object.keys(map.caches).sort())
    this.byPage = new Map(map.pages.map(page => [page.page, page]))
    this.most = Math.max(0, ...map.programs.map(({ reads }) => reads.length))
  }

  /** @param {number} place of the program in the list */
  name(place) {
    return programText(this.map.programs[place].program, this.map.grid)
  }

  /** The figures of one page, as the words take them. @param {number} page */
  page(page) {
    const found = this.byPage.get(page)
    if (!found) return undefined
    const { programs, heads, tokens, bytes, times } = found
    return { page, programs: programs.map(place => this.name(place)), heads, tokens, bytes, times, size: this.map.page_size }
  }

  /** The figures of one read. @param {number} program @param {number} place in its order */
  read(program, place) {
    const read = this.map.programs[program].reads[place]
    return { ...read, program: this.name(program), place: place + 1, size: this.map.page_size }
  }

  /** @param {Kind[]} kinds @returns {number} */
  count(...kinds) {
    return this.map.pages.filter(page => kinds.includes(kindOf(page))).length
  }

  /** Pages that several programs read. */
  get shared() {
    return this.map.pages.filter(({ programs }) => programs.length > 1).length
  }

  /** Pages that no program read: those that are not listed hold nothing and were not read. */
  get unread() {
    return this.count("never", "missed") + this.map.num_pages - this.map.pages.length
  }

  /** Bytes read for each that is needed; undefined where none is. */
  get ratio() {
    const { total, least } = this.map.bytes
    return least ? total / least : undefined
  }
}
