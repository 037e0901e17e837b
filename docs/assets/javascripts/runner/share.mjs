/**
 * A program as a part of an address: `#code=` and its deflated UTF-8 text in base64url, with `.LEVEL` after it
 * where the page has levels. Whoever opens such an address is shown the code; nothing here runs it.
 */

const HASH = /^#code=([\w-]+)(?:\.(\w+))?$/
const LONGEST = 200_000 // bytes of a program: a few kB of an address may not become gigabytes

/**
 * @param {Uint8Array<ArrayBuffer>} bytes @param {ReadableWritablePair<Uint8Array, BufferSource>} transform
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
async function through(bytes, transform) {
  const parts = []
  let length = 0
  const reader = new Blob([bytes]).stream().pipeThrough(transform).getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.length
    if (length > LONGEST) {
      await reader.cancel()
      throw new RangeError(`the code is longer than ${LONGEST} bytes`)
    }
    parts.push(new Uint8Array(read.value))
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

/** @param {string} source @param {string} level "" where the page has none @returns {Promise<string>} the hash of an address */
export async function toHash(source, level) {
  const bytes = await through(new TextEncoder().encode(source), new CompressionStream("deflate-raw"))
  const base64 = btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""))
  const code = base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
  return `#code=${code}${level && `.${level}`}`
}

/**
 * @param {string} hash @returns {Promise<{source: string, level: string}>}
 * @throws where it is no program: cut short, garbled, too long
 */
export async function fromHash(hash) {
  const [, code, level = ""] = HASH.exec(hash) ?? []
  if (!code) throw new SyntaxError("the address holds no code")
  const base64 = code.replaceAll("-", "+").replaceAll("_", "/")
  const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  const text = await through(bytes, new DecompressionStream("deflate-raw"))
  return { source: new TextDecoder("utf-8", { fatal: true }).decode(text), level }
}
