import assert from "node:assert/strict"
import { test } from "node:test"

import { linksOf, told } from "../../docs/assets/javascripts/diagram_graph.mjs"

const EDGES = [{ from: ["q"], to: ["split"] }, { from: ["split"], to: ["partial"] }, { from: ["combine"], to: ["o", "lse"] }]

test("a node's neighbours on both sides, and the edges between", () => {
  const { nodes, edges, before, after } = linksOf("split", EDGES)
  assert.deepEqual([[...nodes], [...edges], before, after], [["split", "q", "partial"], [0, 1], ["q"], ["partial"]])
})

test("one edge may lead to several nodes, which have nothing to do with each other", () => {
  assert.deepEqual(linksOf("combine", EDGES).after, ["o", "lse"])
  assert.deepEqual([...linksOf("o", EDGES).nodes], ["o", "combine"])
})

test("a node alone", () => {
  const { nodes, edges } = linksOf("alone", EDGES)
  assert.deepEqual([[...nodes], edges.size], [["alone"], 0])
})

test("connections in words", () => {
  assert.equal(told("split kernel", ["q", "k"], ["o"], "en"), "split kernel: from q, k; to o")
  assert.equal(told("split kernel", ["q", "k"], ["o"], "zh"), "split kernel：来自 q、k；去往 o")
  assert.equal(told("o", [], [], "en"), "o")
})
