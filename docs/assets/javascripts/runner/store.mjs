/**
 * The reader's versions of a program, kept in the browser: the newest text of each of the last visits.
 *
 * Storage may be blocked, full or hold anything: then nothing is kept or found, and nothing fails.
 *
 * @typedef {{session: number, time: number, source: string}} Version session: when the page was opened; both in ms
 */

const KEEP = 3 // visits

/** @param {unknown} value @returns {value is Version} */
function isVersion(value) {
  const { session, time, source } = /** @type {Partial<Version>} */ (value ?? {})
  return typeof session === "number" && typeof time === "number" && typeof source === "string"
}

export class Store {
  /**
   * @param {() => Storage} storage reached when it is used, since a browser may refuse even that
   * @param {string} program lesson, or lesson/level
   * @param {number} session this visit
   */
  constructor(storage, program, session) {
    this.storage = storage
    this.key = `runner:${program}`
    this.session = session
  }

  /** @returns {Version[]} newest first */
  versions() {
    try {
      const kept = JSON.parse(this.storage().getItem(this.key) ?? "[]")
      return Array.isArray(kept) ? kept.filter(isVersion) : []
    } catch {
      return []
    }
  }

  /** Keep this text as the version of this visit. @param {string} source @param {number} time @returns {boolean} whether it was kept */
  save(source, time) {
    const others = this.versions().filter(version => version.session !== this.session)
    const versions = [{ session: this.session, time, source }, ...others].slice(0, KEEP)
    try {
      this.storage().setItem(this.key, JSON.stringify(versions))
      return true
    } catch {
      return false
    }
  }

  /** @param {string} shown what the editor holds @returns {Version | undefined} the newest version that is another */
  last(shown) {
    return this.versions().find(version => version.source !== shown)
  }
}
