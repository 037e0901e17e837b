import assert from "node:assert/strict"
import { test } from "node:test"

import { WORDS, wordsOf } from "../../docs/assets/javascripts/runner/words.mjs"

/** Every text by its path, functions called with numbers. @param {object} words @param {string} path @returns {[string, string][]} */
function texts(words, path = "") {
  return Object.entries(words).flatMap(([key, value]) => {
    if (typeof value === "object") return texts(value, `${path}${key}.`)
    return [[`${path}${key}`, typeof value === "function" ? value(1234567, 7654321) : value]]
  })
}

test("both languages say the same things, each in its own words", () => {
  const [zh, en] = [texts(WORDS.zh), texts(WORDS.en)]
  assert.deepEqual(zh.map(([key]) => key), en.map(([key]) => key))
  const numbers = zh.filter(([, text]) => !/[\u4e00-\u9fff]/.test(text))
  assert.deepEqual(numbers.map(([key]) => key), [])
  for (const [key, text] of en) assert.doesNotMatch(text, /[\u4e00-\u9fff]/, key)
})

test("a page's language chooses", () => {
  assert.equal(wordsOf("zh"), WORDS.zh)
  assert.equal(wordsOf("zh-Hans"), WORDS.zh)
  assert.equal(wordsOf("en"), WORDS.en)
})

test("units", () => {
  assert.match(WORDS.en.download(2_000_000, 6_200_000), /2\.0 of 6\.2 MB/)
  assert.match(WORDS.en.done(310), /0\.31 s/)
  assert.match(WORDS.en.done(2345), /2\.3 s/)
})
