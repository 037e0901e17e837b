import assert from "node:assert/strict"
import { test } from "node:test"
import { deflateRawSync } from "node:zlib"

import { fromHash, toHash } from "../../docs/assets/javascripts/runner/share.mjs"

/** @param {Buffer} bytes */
const hashOf = bytes => `#code=${bytes.toString("base64url")}`

for (const source of ["", "x = 1\n", "# 中文 🙂\n'\"\\\t", "for i in range(9):\n    pass\n".repeat(500)]) {
  for (const level of ["", "kernel"]) {
    test(`${source.length} characters, level "${level}", come back as they were`, async () => {
      const hash = await toHash(source, level)
      assert.match(hash, /^#code=[\w.-]+$/) // what an address may hold as it is
      assert.deepEqual(await fromHash(hash), { source, level })
    })
  }
}

test("a program becomes shorter than it was", async () => {
  const source = "    acc = acc * alpha + tl.sum(p[:, None] * values, 0)\n".repeat(100)
  assert.ok((await toHash(source, "")).length < source.length / 20)
})

for (const [what, hash] of Object.entries({
  "no code": "#code=", "another anchor": "#run", "not base64url": "#code=a+b/c=", "not deflated": hashOf(Buffer.from("plain text")),
  "cut short": hashOf(deflateRawSync(Buffer.from("x = 1\n".repeat(50))).subarray(0, 9)), "a level with spaces": "#code=AwA.a b",
  "no UTF-8": hashOf(deflateRawSync(Buffer.from([0xff, 0xfe, 0xfd]))),
})) {
  test(`${what} is refused`, () => assert.rejects(fromHash(hash)))
}

test("a short address that would become gigabytes is refused", async () => {
  const hash = hashOf(deflateRawSync(Buffer.alloc(50_000_000)))
  assert.ok(hash.length < 100_000)
  await assert.rejects(fromHash(hash), /longer than/)
})
