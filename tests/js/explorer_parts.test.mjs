import assert from "node:assert/strict"
import { test } from "node:test"

import { applies, Latest, stepped } from "../../docs/assets/javascripts/explorer_parts.mjs"

/** @param {object} more @returns {any} */
const field = more => ({ name: "n", label: "n", value: "1", ...more })

test("a field is asked for where another has its value, or always", () => {
  assert.equal(applies(field({}), {}), true)
  const own = field({ when: { field: "trace", is: "own" } })
  assert.equal(applies(own, { trace: "own" }), true)
  assert.equal(applies(own, { trace: "short" }), false)
})

test("arrow keys step numbers within their limits", () => {
  const whole = field({ kind: "integer", min: 0, max: 3 })
  assert.equal(stepped(whole, "2", 1), "3")
  assert.equal(stepped(whole, "3", 1), "3")
  assert.equal(stepped(whole, "0", -1), "0")
  assert.equal(stepped(field({ kind: "number", min: 1.05, max: 4 }), "1.5", 1), "1.75")
  assert.equal(stepped(field({ kind: "number", min: 1.05, max: 4 }), "1.25", -1), "1.05")
  const doubles = field({ kind: "integer", min: 16, max: 128, doubles: true })
  assert.equal(stepped(doubles, "32", 1), "64")
  assert.equal(stepped(doubles, "16", -1), "16")
})

test("what is no single number stays as it is", () => {
  for (const [kind, text] of [["integers", "1, 2"], ["integer", ""], ["integer", "x"], ["choice", "2"], ["requests", "1+2"]]) {
    assert.equal(stepped(field({ kind, min: 0, max: 9 }), text, 1), text)
  }
})

/** What is asked waits for the test to answer it. */
function played() {
  /** @type {{values: string, resolve: (answer: string) => void, reject: (error: Error) => void}[]} */
  const asked = []
  /** @type {string[]} */
  const shown = []
  const latest = new Latest(
    /** @param {string} values @returns {Promise<string>} */
    values => new Promise((resolve, reject) => asked.push({ values, resolve, reject })),
    /** @param {string} answer */ answer => shown.push(answer),
    error => shown.push(String(error)),
  )
  return { asked, shown, latest }
}

const soon = () => new Promise(resolve => setTimeout(resolve))

test("of what comes meanwhile only the last is asked, and only its answer is shown", async () => {
  const { asked, shown, latest } = played()
  for (const values of ["a", "b", "c"]) latest.want(values)
  assert.deepEqual(asked.map(one => one.values), ["a"])
  asked[0].resolve("A")
  await soon()
  assert.deepEqual(asked.map(one => one.values), ["a", "c"])
  assert.deepEqual(shown, [])
  asked[1].resolve("C")
  await soon()
  assert.deepEqual(shown, ["C"])
})

test("a failure is told unless something newer is wanted, and the next is asked all the same", async () => {
  const { asked, shown, latest } = played()
  latest.want("a")
  latest.want("b")
  asked[0].reject(new Error("first"))
  await soon()
  asked[1].reject(new Error("second"))
  await soon()
  assert.deepEqual(shown, ["Error: second"])
  latest.want("c")
  asked[2].resolve("C")
  await soon()
  assert.deepEqual(shown, ["Error: second", "C"])
})

test("what is dropped is not shown, nor what waited then", async () => {
  const { asked, shown, latest } = played()
  latest.want("a")
  latest.want("b")
  latest.drop()
  asked[0].resolve("A")
  await soon()
  assert.deepEqual([asked.length, shown], [1, []])
  latest.want("c")
  asked[1].resolve("C")
  await soon()
  assert.deepEqual(shown, ["C"])
})
