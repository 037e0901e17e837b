import assert from "node:assert/strict"
import { test } from "node:test"

import { WORDS, wordsOf } from "../../docs/assets/javascripts/runner/views_words.mjs"

const CHINESE = /[\u4e00-\u9fff]/
const FULL = { page: 7, programs: ["(0, 0)", "(0, 1)"], heads: [0, 1], tokens: 16, bytes: 8192, times: 1, size: 16 }
const BYTES = { total: 400, least: 100, beyond: 0 }

/** @param {object} words @param {string} path @returns {string[]} the names of all texts */
const paths = (words, path = "") => Object.entries(words).flatMap(([key, value]) => (typeof value === "object" ? paths(value, `${path}${key}.`) : [`${path}${key} ${typeof value} ${value.length && typeof value === "function" ? value.length : ""}`]))

test("both languages have the same texts", () => {
  assert.deepEqual(paths(WORDS.zh), paths(WORDS.en))
  assert.equal(wordsOf("zh-Hans"), WORDS.zh)
  assert.equal(wordsOf("en"), WORDS.en)
})

test("no Chinese in the English", () => {
  assert.doesNotMatch(JSON.stringify(WORDS.en), CHINESE)
  for (const say of Object.values(WORDS.en)) if (typeof say === "function") assert.doesNotMatch(say.toString(), CHINESE)
})

test("a page is told by who read it", () => {
  assert.equal(WORDS.en.page(FULL), "Page 7, which holds 16 of 16 tokens: read by 2 programs, (0, 0) and (0, 1); KV heads 0 and 1; 8,192 B in all, no byte twice.")
  assert.equal(WORDS.zh.page(FULL), "第 7 页，存有 16 / 16 个 token：2 个 program 读过它，(0, 0)、(0, 1)；KV head 0、1；共 8,192 B，没有字节读第二次。")
  assert.equal(WORDS.en.page({ ...FULL, programs: [], tokens: 0 }), "Page 7, which holds no token: no program read it.")
  assert.match(WORDS.en.page({ ...FULL, programs: ["(0)"], heads: [0], times: 4 }), /read by 1 program, \(0\); KV head 0; .* the same byte up to 4 times/)
  assert.match(WORDS.en.page({ ...FULL, tokens: null }), /^Page 7: read by/)
})

test("the verdict: the least, more than the least, slots of nobody, tokens that were missed", () => {
  assert.equal(WORDS.en.verdict({ ...BYTES, total: 100 }, 0), "Every byte that is needed was read once: less is not possible.")
  assert.equal(WORDS.en.verdict(BYTES, null), "Every byte that is needed was read 4 times on average.")
  assert.equal(WORDS.en.verdict({ ...BYTES, beyond: 64 }, 1), "64 B of it came from slots that hold no token. 1 token was not read, or not in full.")
  assert.equal(WORDS.zh.verdict({ ...BYTES, total: 150 }, 0), "需要的每个字节平均读了 1.50 次。")
})

test("a launch without tokens needs no byte", () => {
  assert.equal(WORDS.en.verdict({ total: 0, least: 0, beyond: 0 }, 0), "Every byte that is needed was read once: less is not possible.")
})
