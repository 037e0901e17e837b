/** Links that hold a program: the reader copies one, or has opened one. */

import { make } from "./output.mjs"
import { fromHash, toHash } from "./share.mjs"

/** @typedef {import("./workbench.mjs").Workbench} Workbench */

/** Copy a link to what the editor holds. @param {Workbench} bench */
export async function copyLink(bench) {
  const { words, status } = bench
  const url = new URL(location.href)
  try {
    url.hash = await toHash(await bench.source(), bench.program.level)
  } catch {
    bench.say(words.cannotShare)
    return
  }
  try {
    await navigator.clipboard.writeText(url.href)
    bench.say(words.copied)
  } catch { // refused, or no secure page
    const field = make("input", { type: "text", readOnly: true, value: url.href, ariaLabel: words.copy })
    status.replaceChildren(words.copy, field)
    field.select()
  }
}

/** Show the program of an address, which is not run. @param {Workbench} bench @param {string} hash */
export async function openLink(bench, hash) {
  const { words } = bench
  bench.say(words.preparing)
  await bench.exchange(async () => {
    try {
      const { source, level } = await fromHash(hash)
      const program = bench.programs.find(each => each.level === level)
      if (program) bench.choose(program)
      bench.give(source)
      bench.output.clear()
      bench.notify(words.linked)
    } catch {
      bench.notify(words.badLink)
    }
  })
  if (bench.editor && !bench.runs.running) bench.say("")
  bench.block.scrollIntoView({ block: "start" })
}
