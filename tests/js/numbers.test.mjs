import assert from "node:assert/strict"
import { test } from "node:test"

import { bytesText, numberText, programText } from "../../docs/assets/javascripts/runner/numbers.mjs"

const read = text => Number(text.replaceAll("−", "-"))

test("an fp32 number is told by the shortest decimal that rounds back to it", () => {
  assert.equal(numberText(Math.fround(0.1), "fp32"), "0.1")
  assert.equal(numberText(Math.fround(1 / 3), "fp32"), "0.33333334")
  assert.equal(numberText(-1.5, "fp32"), "−1.5")
  assert.equal(numberText(32, "fp32"), "32.0")
  assert.equal(numberText(16777216, "fp32"), "16777216.0")
  assert.equal(numberText(0, "fp32"), "0.0")
  assert.equal(numberText(-0, "fp32"), "−0.0")
})

test("every fp32 number comes back from its text, and no shorter text would do", () => {
  const bits = new DataView(new ArrayBuffer(4))
  for (let i = 0; i < 20000; i++) {
    bits.setUint32(0, (i * 2654435761) % 2 ** 32)
    const value = bits.getFloat32(0)
    if (!Number.isFinite(value)) continue
    const text = numberText(value, "fp32")
    assert.ok(Object.is(Math.fround(read(text)), value), `${value} as ${text}`)
    const digits = text.replace(/e.*|[^\d]/g, "").replace(/^0+|0+$/g, "").length
    if (digits > 1 && Math.abs(value) > 1e-37) assert.notEqual(Math.fround(Number(value.toPrecision(digits - 1))), value)
  }
})

test("fp16 and bf16 need fewer digits", () => {
  assert.equal(numberText(0.0999755859375, "fp16"), "0.1")
  assert.equal(numberText(0.10009765625, "bf16"), "0.1")
  assert.equal(numberText(65504, "fp16"), "65500.0")
})

test("NaN and the infinities", () => {
  assert.deepEqual(["nan", "inf", "-inf"].map(each => numberText(each, "fp32")), ["NaN", "∞", "−∞"])
})

test("integers, truth values and large integers", () => {
  assert.equal(numberText(7, "int32"), "7")
  assert.equal(numberText(-7, "int64"), "−7")
  assert.equal(numberText(true, "int1"), "1")
  assert.equal(numberText(false, "bool"), "False")
  assert.equal(numberText("9223372036854775807", "int64"), "9223372036854775807")
})

test("short texts keep four digits, and the exponent of what is far from 1", () => {
  assert.equal(numberText(Math.fround(-0.88337576), "fp32", false), "−0.8834")
  assert.equal(numberText(Math.fround(1e-9), "fp32", false), "1e−9")
  assert.equal(numberText(Math.fround(1.23456e-9), "fp32", false), "1.23e−9")
  assert.equal(numberText(Math.fround(1234567), "fp32", false), "1.23e+6")
  assert.equal(numberText(1, "fp32", false), "1.0")
})

test("bytes are exact as long as they are easy to read", () => {
  assert.equal(bytesText(30720), "30,720 B")
  assert.equal(bytesText(1_500_000), "1.5 MB")
  assert.equal(bytesText(2_500_000_000), "2.50 GB")
})

test("a program has the axes that its grid uses", () => {
  assert.equal(programText([0, 1, 0], [3, 2, 1]), "(0, 1)")
  assert.equal(programText([0, 1, 0], [3, 2, 4]), "(0, 1, 0)")
  assert.equal(programText([5, 0, 0], [8, 1, 1]), "(5)")
  assert.equal(programText([0, 0, 0], [1, 1, 1]), "(0)")
  assert.equal(programText([0, 1, 2], []), "(0, 1, 2)")
})
