import assert from "node:assert/strict"
import { test } from "node:test"

import { blocksOf, difference, Replay } from "../../docs/assets/javascripts/runner/replay.mjs"

/** @param {number} data */
const scalar = data => ({ dtype: "fp32", shape: [], shown: [], data })
const tile = (...data) => ({ dtype: "fp32", shape: [data.length], shown: [data.length], data })

// kernel(x): x is 5; for i in range(2): { y = f(i) }; return. f(i): z = i + 1.
const STEPS = {
  kernel: "kernel", program: [0, 0, 0], launch: 0, grid: [1, 1, 1], launches: [{ launch: 0, grid: [1, 1, 1] }],
  files: [{ name: "kernel.py", own: true }, { name: "kernels/f.py", own: false }],
  functions: [{ name: "kernel", file: 0, line: 1 }, { name: "f", file: 1, line: 10 }],
  places: [
    { function: 0, line: 2, end: 2, text: "for i in range(2):" }, { function: 1, line: 11, end: 11, text: "z = i + 1" },
    { function: 0, line: 3, end: 4, text: "y = f(\n    i)" }, { function: 0, line: 5, end: 5, text: "return" },
  ],
  calls: [
    { function: 0, parent: null, line: null, arguments: { x: 0 } },
    { function: 1, parent: 0, line: 3, arguments: { i: 1 } }, { function: 1, parent: 0, line: 3, arguments: { i: 2 } },
  ],
  loops: [{ call: 0, place: 0, variable: "i", parent: null, count: 2 }],
  iterations: [{ loop: 0, number: 0, value: 1, first: 0, last: 2 }, { loop: 0, number: 1, value: 2, first: 3, last: 5 }],
  steps: [
    { place: 0, call: 0, at: 0, changed: { i: 1 } }, { place: 1, call: 1, at: 0, changed: { z: 2 } },
    { place: 2, call: 0, at: 0, changed: { y: 3 } },
    { place: 0, call: 0, at: 1, changed: { i: 2 } }, { place: 1, call: 2, at: 1, changed: { z: 4 } },
    { place: 2, call: 0, at: 1, changed: { y: 5, x: 6 } },
    { place: 0, call: 0, at: null, changed: {} }, { place: 3, call: 0, at: null, changed: {} },
  ],
  values: [scalar(5), scalar(0), scalar(1), tile(1, 2), scalar(2), tile(1, 7), scalar(5)],
  cut: null, failed: null,
}
const replay = new Replay(STEPS)
const named = (frame, name) => frame.variables.find(variable => variable.name === name)

test("it begins in the loop", () => {
  assert.equal(replay.start, 0)
  assert.equal(new Replay({ ...STEPS, iterations: [] }).start, 0)
})

test("the variables are those after the step, with what they were before it", () => {
  const [kernel] = replay.frames(5)
  assert.deepEqual(kernel.variables.map(({ name }) => name), ["x", "i", "y"])
  assert.deepEqual(named(kernel, "y").value.data, [1, 7])
  assert.deepEqual(named(kernel, "y").before.data, [1, 2])
  assert.equal(named(kernel, "y").change, "changed")
  assert.equal(named(kernel, "x").change, "same")
  assert.equal(named(kernel, "i").change, "kept")
  assert.equal(named(replay.frames(2)[0], "y").change, "new")
})

test("a variable is given for as long as it is what the caller gave", () => {
  assert.equal(named(replay.frames(3)[0], "x").given, true)
  assert.equal(named(replay.frames(5)[0], "x").given, false)
})

test("inside a function its callers' variables are there too, and where they called from", () => {
  const [f, kernel] = replay.frames(4)
  assert.deepEqual([f.name, f.file, kernel.name, kernel.line], ["f", "kernels/f.py", "kernel", 3])
  assert.deepEqual(f.variables.map(({ name, value }) => [name, value.data]), [["i", 1], ["z", 2]])
  assert.deepEqual(named(kernel, "y").value.data, [1, 2])
})

test("a call has variables of its own: the one before is forgotten", () => {
  assert.equal(named(replay.frames(4)[0], "z").change, "new")
})

test("lines of another file are not the reader's", () => {
  assert.equal(replay.fileOf(0).own, true)
  assert.equal(replay.fileOf(1).own, false)
})

test("the iteration of a step, in the functions that the loop calls too", () => {
  assert.deepEqual(replay.iterationsOf(4).map(({ variable, value, number, count }) => [variable, value.data, number, count]), [["i", 1, 1, 2]])
  assert.deepEqual(replay.iterationsOf(6), [])
})

test("from iteration to iteration, and out of the loop", () => {
  assert.deepEqual([0, 1, 2, 3, 5, 6, 7].map(step => replay.nextIteration(step)), [3, 3, 3, 6, 6, 7, 7])
  assert.deepEqual([0, 1, 3, 4, 7].map(step => replay.previousIteration(step)), [0, 0, 0, 3, 3])
})

test("a loop in a loop: the outer iteration comes first", () => {
  const nested = {
    ...STEPS,
    loops: [...STEPS.loops, { call: 0, place: 2, variable: "j", parent: 1, count: 1 }],
    iterations: [...STEPS.iterations, { loop: 1, number: 0, value: null, first: 4, last: 5 }],
    steps: STEPS.steps.map((step, i) => (i === 4 || i === 5 ? { ...step, at: 2 } : step)),
  }
  assert.deepEqual(new Replay(nested).iterationsOf(4).map(({ variable }) => variable), ["i", "j"])
  assert.equal(new Replay(nested).nextIteration(3), 4)
})

test("elements that differ", () => {
  assert.deepEqual(difference(tile(1, "nan", 3), tile(1, "nan", 4)), { differ: 1, of: 3 })
  assert.deepEqual(difference(tile(1, 2), undefined), { differ: 2, of: 2 })
  assert.deepEqual(difference(tile(1, 2), tile(1, 2, 3)), { differ: 2, of: 2 })
  assert.deepEqual(difference(tile(0), tile(-0)), { differ: 1, of: 1 })
})

test("a tile of three axes is a block a leading index", () => {
  const cube = { dtype: "int32", shape: [2, 1, 2], shown: [2, 1, 2], data: [[[1, 2]], [[3, 4]]] }
  assert.deepEqual(blocksOf(cube), [{ index: [0], rows: [[1, 2]] }, { index: [1], rows: [[3, 4]] }])
  assert.deepEqual(blocksOf(tile(1, 2)), [{ index: [], rows: [[1, 2]] }])
  assert.deepEqual(blocksOf(scalar(1)), [])
})
