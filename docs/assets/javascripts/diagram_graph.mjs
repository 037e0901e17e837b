/** What belongs to a node of a diagram: its edges, and the nodes at their other ends. No page is needed. */

/** @typedef {{from: string[], to: string[]}} Edge  names of nodes; one drawn line may lead to several */
/** @typedef {{nodes: Set<string>, edges: Set<number>, before: string[], after: string[]}} Links */

/**
 * @param {string} name @param {Edge[]} edges
 * @returns {Links} the node and its neighbours, the indices of the edges between; whom it comes from, where it goes
 */
export function linksOf(name, edges) {
  const before = new Set()
  const after = new Set()
  const touched = new Set()
  edges.forEach(({ from, to }, index) => {
    if (from.includes(name)) for (const other of to) after.add(other)
    if (to.includes(name)) for (const other of from) before.add(other)
    if (from.includes(name) || to.includes(name)) touched.add(index)
  })
  return { nodes: new Set([name, ...before, ...after]), edges: touched, before: [...before], after: [...after] }
}

/**
 * @param {string} label @param {string[]} before @param {string[]} after labels of its neighbours @param {string} lang
 * @returns {string} the node and its connections in words
 */
export function told(label, before, after, lang) {
  const zh = lang.startsWith("zh")
  const list = /** @param {string[]} names */ names => names.join(zh ? "、" : ", ")
  const parts = []
  if (before.length) parts.push(`${zh ? "来自 " : "from "}${list(before)}`)
  if (after.length) parts.push(`${zh ? "去往 " : "to "}${list(after)}`)
  return parts.length ? `${label}${zh ? "：" : ": "}${parts.join(zh ? "；" : "; ")}` : label
}
