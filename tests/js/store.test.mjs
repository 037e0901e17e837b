import assert from "node:assert/strict"
import { test } from "node:test"

import { Store } from "../../docs/assets/javascripts/runner/store.mjs"

/** Storage in memory. @param {Record<string, string>} kept */
const memory = (kept = {}) => () => /** @type {any} */ ({
  getItem: (/** @type {string} */ key) => kept[key] ?? null,
  setItem: (/** @type {string} */ key, /** @type {string} */ value) => { kept[key] = value },
})

test("the newest text of a visit is kept, and those of visits before", () => {
  const kept = {}
  const monday = new Store(memory(kept), "l2", 1)
  assert.equal(monday.last("shown"), undefined)
  assert.ok(monday.save("first", 10))
  assert.ok(monday.save("second", 11))
  assert.equal(monday.last("shown")?.source, "second")
  const tuesday = new Store(memory(kept), "l2", 2)
  tuesday.save("third", 20)
  assert.equal(tuesday.last("shown")?.source, "third")
  assert.deepEqual(tuesday.last("third"), { session: 1, time: 11, source: "second" })
  tuesday.save("fourth", 21)
  assert.deepEqual(tuesday.versions().map(version => version.source), ["fourth", "second"])
})

test("three visits are kept", () => {
  const kept = {}
  for (const session of [1, 2, 3, 4]) new Store(memory(kept), "l2", session).save(`text ${session}`, session)
  assert.deepEqual(new Store(memory(kept), "l2", 5).versions().map(version => version.session), [4, 3, 2])
})

test("each program has its own", () => {
  const kept = {}
  new Store(memory(kept), "l2/loop", 1).save("loop", 1)
  assert.equal(new Store(memory(kept), "l2", 1).last(""), undefined)
  assert.equal(new Store(memory(kept), "l2/loop", 2).last("")?.source, "loop")
})

for (const garbage of ["", "{", "null", "3", '"text"', "[1, null, []]", '[{"session": 1}]', '{"length": 1}']) {
  test(`what is kept may be ${garbage || "empty"}`, () => {
    const store = new Store(memory({ "runner:l2": garbage }), "l2", 1)
    assert.deepEqual(store.versions(), [])
    assert.ok(store.save("text", 1))
    assert.equal(store.last("")?.source, "text")
  })
}

test("a good version among garbage is found", () => {
  const kept = { "runner:l2": JSON.stringify([null, { session: 1, time: 2, source: "good", more: 1 }]) }
  assert.equal(new Store(memory(kept), "l2", 3).last("")?.source, "good")
})

for (const [what, storage] of Object.entries({
  blocked: () => { throw new Error("the operation is insecure") },
  full: () => /** @type {any} */ ({ getItem: () => null, setItem() { throw new Error("quota exceeded") } }),
})) {
  test(`storage that is ${what} keeps nothing and fails nothing`, () => {
    const store = new Store(storage, "l2", 1)
    assert.equal(store.save("text", 1), false)
    assert.equal(store.last(""), undefined)
  })
}
