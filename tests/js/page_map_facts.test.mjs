import assert from "node:assert/strict"
import { test } from "node:test"

import { kindOf, LaunchFacts } from "../../docs/assets/javascripts/runner/page_map_facts.mjs"

const page = (number, programs, tokens, times = programs.length) => ({ page: number, programs, heads: programs.length ? [0] : [], tokens, bytes: 64 * times, distinct: 64, times })
const read = (number, slots = 16) => ({ page: number, heads: [0], slots, k: slots * 4, v: slots * 4 })
const MAP = {
  launch: 0, kernel: "k", grid: [3, 1, 1], num_pages: 6, page_size: 16, num_kv_heads: 1, head_dim: 1, dtype: "float32", caches: { v: "v_ptr", k: "k_ptr" },
  programs: [{ program: [0, 0, 0], k: 128, v: 128, reads: [read(4), read(1)] }, { program: [1, 0, 0], k: 64, v: 64, reads: [read(1)] }, { program: [2, 0, 0], k: 0, v: 0, reads: [] }],
  pages: [page(0, [], 0), page(1, [0, 1], 16, 2), page(2, [], 7), page(3, [0, 1], 16, 1), page(4, [0], 16, 1)],
  bytes: { k: 192, v: 192, total: 384, distinct: 256, least: 256, beyond: 0 }, missed: 7,
}

test("what became of a page", () => {
  assert.deepEqual(MAP.pages.map(kindOf), ["never", "again", "missed", "several", "one"])
  assert.equal(kindOf(page(0, [], null)), "never")
})

test("counts; a page that is not listed was not read", () => {
  const facts = new LaunchFacts(MAP)
  assert.equal(facts.shared, 2)
  assert.equal(facts.unread, 3)
  assert.equal(facts.most, 2)
  assert.equal(facts.ratio, 1.5)
  assert.equal(new LaunchFacts({ ...MAP, bytes: { ...MAP.bytes, least: 0 } }).ratio, undefined)
  assert.deepEqual(facts.roles, ["k", "v"])
})

test("the figures of a page and of a read", () => {
  const facts = new LaunchFacts(MAP)
  assert.deepEqual(facts.page(1), { page: 1, programs: ["(0)", "(1)"], heads: [0], tokens: 16, bytes: 128, times: 2, size: 16 })
  assert.equal(facts.page(5), undefined)
  assert.deepEqual(facts.read(0, 1), { ...read(1), program: "(0)", place: 2, size: 16 })
})
