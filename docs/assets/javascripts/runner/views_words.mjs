/** What the page map and the stepper say, in both languages. */

import { bytesText } from "./numbers.mjs"

/** @param {number} n @param {string} one @param {string} [many] */
const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`
/** @param {string[]} parts */
const listed = parts => (parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts.join(""))
/** @param {number} ratio */
const times = ratio => (Number.isInteger(ratio) ? String(ratio) : ratio.toFixed(2))

/** @typedef {{total: number, least: number, beyond: number, k?: number, v?: number}} Bytes */
/** @typedef {{page: number, programs: string[], heads: number[], tokens: number | null, bytes: number, times: number, size: number}} PageFacts */
/** @typedef {{program: string, place: number, page: number, heads: number[], slots: number, size: number, k?: number, v?: number}} ReadFacts */

export const WORDS = {
  zh: {
    map: "每个 program 读了哪些页", launch: "启动", none: "这次运行没有读 KV cache，没有页可画。",
    mapHint: "指向或选中一页，所有读过它的 program 都会亮起来。方向键移动，Esc 取消。",
    readBytes: "读取总量", least: "至少要读", ratio: "倍数", shared: "多个 program 读过的页", unread: "没人读过的页",
    /** @param {Bytes} bytes @param {number | null} missed */
    verdict({ total, least, beyond }, missed) {
      const said = []
      if (beyond) said.push(`其中 ${bytesText(beyond)} 来自没有 token 的槽位。`)
      if (missed) said.push(`有 ${missed} 个 token 没有读到，或没有读全。`)
      if (!said.length) said.push(total === least ? "需要的每个字节恰好读了一次，这已经是下限。" : `需要的每个字节平均读了 ${times(total / least)} 次。`)
      return said.join("")
    },
    counted: "字节数按 load 的请求算，被 mask 掉的不算；GPU 的 cache 能挡下多少，这里看不到。",
    pool: /** @param {number} n */ n => `物理页，共 ${n} 页`, program: "program",
    order: /** @param {string} kernel @param {string} grid */ (kernel, grid) => `${kernel}，grid ${grid}：每个 program 读页的次序`, bytesOf: /** @param {string} role */ role => `${role} 字节`,
    nothing: "没有读任何页",
    legend: { one: "一个 program 读过", several: "多个 program 读过", again: "有字节读了不止一次", never: "没人读过", missed: "有 token 却没人读" },
    /** @param {PageFacts} facts */
    page: ({ page, programs, heads, tokens, bytes, times: n, size }) => {
      const holds = tokens === null ? "" : tokens ? `，存有 ${tokens} / ${size} 个 token` : "，没有存 token"
      if (!programs.length) return `第 ${page} 页${holds}：没有 program 读它。`
      return `第 ${page} 页${holds}：${programs.length} 个 program 读过它，${programs.join("、")}；KV head ${heads.join("、")}；共 ${bytesText(bytes)}，${n > 1 ? `同一字节最多读了 ${n} 次` : "没有字节读第二次"}。`
    },
    /** @param {ReadFacts} facts */
    read: ({ program, place, page, heads, slots, size, k, v }) =>
      `program ${program} 读的第 ${place} 页：物理页 ${page}，KV head ${heads.join("、")}，${slots} / ${size} 个 token${k === undefined ? "" : `，K ${bytesText(k)}`}${v === undefined ? "" : `，V ${bytesText(v)}`}。`,
    asText: "用文字列出",
    /** @param {string} program @param {number[]} pages @param {string} bytes */
    programReads: (program, pages, bytes) => pages.length ? `program ${program} 依次读第 ${pages.join("、")} 页，${bytes}。` : `program ${program} 没有读任何页。`,
    more: /** @param {number} n */ n => `还有 ${n} 个没有列出。`, stepThis: "单步看这个 program",
    stepper: "单步看一个 program", kernel: "kernel", record: "记录它的每一步",
    wantHint: "选一个 kernel 和一个 program，会再运行一次，并记下它执行的每一行和每个变量。",
    missingProgram: /** @param {string} program @param {string} kernel @param {string} grids */ (program, kernel, grids) =>
      grids ? `${kernel} 没有 program ${program}：它的 grid 是 ${grids}。` : `这次运行没有启动 ${kernel}。`,
    noLaunch: "这次运行没有启动 kernel。",
    noSteps: "这个 program 没有执行任何一行。",
    first: "第一步", previousIteration: "上一轮", back: "后退一步", forward: "前进一步", nextIteration: "下一轮", lastStep: "最后一步",
    slider: "步", now: "当前行", keys: "← → 一步，Shift 加 ← → 或 PageUp、PageDown 一轮，Home、End 到两头。",
    step: /** @param {number} n @param {number} of */ (n, of) => `第 ${n} / ${of} 步`,
    iteration: /** @param {string} variable @param {string} value @param {number} n @param {number} of */ (variable, value, n, of) =>
      variable ? `${variable} = ${value}（第 ${n} / ${of} 轮）` : `第 ${n} / ${of} 轮`,
    outside: "循环之外", jump: "跳到", of: /** @param {string} program @param {string} kernel */ (program, kernel) => `program ${program}，${kernel}`,
    line: /** @param {number} from @param {number} to */ (from, to) => (from === to ? `第 ${from} 行` : `第 ${from}–${to} 行`),
    called: /** @param {string} name @param {number | null} line */ (name, line) => (line ? `${name}，第 ${line} 行` : name),
    here: /** @param {string} name @param {string} file @param {string} line */ (name, file, line) => `${name}，${file ? `${file} ` : ""}${line}`,
    nothingChanged: "这一行没有给变量赋值。", changedHead: "这一步改了",
    fresh: "新变量", same: "重新赋值，数值没变",
    differ: /** @param {number} n @param {number} of @param {boolean} part */ (n, of, part) => `${part ? "列出的" : ""} ${of} 个元素里改了 ${n} 个`,
    variables: /** @param {string} name */ name => `${name} 的变量`, allDigits: "显示全部有效数字",
    corner: /** @param {string} shown */ shown => `只列出前 ${shown}`, range: /** @param {string} min @param {string} max */ (min, max) => `最小 ${min}，最大 ${max}`,
    nans: /** @param {number} n */ n => `${n} 个 NaN`, truths: /** @param {number} n @param {number} of */ (n, of) => `${n} / ${of} 为真`,
    pointer: /** @param {string} base */ base => `从 ${base} 的第一个元素数起`, given: "参数",
    failed: "运行在这一行出错。", cut: { steps: /** @param {number} n */ n => `记录到 ${n} 步为止，后面还有。`, values: () => "记录的数值太多，到这里为止，后面还有。" },
  },
  en: {
    map: "Which program read which pages", launch: "launch", none: "This run read no KV cache, so there are no pages to show.",
    mapHint: "Point at a page or choose it, and every program that read it lights up. Arrow keys move, Escape lets go.",
    readBytes: "read in all", least: "least possible", ratio: "ratio", shared: "pages read by several programs", unread: "pages never read",
    /** @param {Bytes} bytes @param {number | null} missed */
    verdict({ total, least, beyond }, missed) {
      const said = []
      if (beyond) said.push(`${bytesText(beyond)} of it came from slots that hold no token.`)
      if (missed) said.push(`${plural(missed, "token")} ${missed === 1 ? "was" : "were"} not read, or not in full.`)
      if (!said.length) said.push(total === least ? "Every byte that is needed was read once: less is not possible." : `Every byte that is needed was read ${times(total / least)} times on average.`)
      return said.join(" ")
    },
    counted: "Bytes are what loads asked for, without the lanes that a mask left out; what a GPU's caches would catch is not seen here.",
    pool: /** @param {number} n */ n => `${plural(n, "physical page")}`, program: "program",
    order: /** @param {string} kernel @param {string} grid */ (kernel, grid) => `${kernel}, grid ${grid}: the pages of each program, in order`, bytesOf: /** @param {string} role */ role => `${role} bytes`,
    nothing: "read no page",
    legend: { one: "read by one program", several: "by several", again: "some bytes more than once", never: "never read", missed: "holds tokens, never read" },
    /** @param {PageFacts} facts */
    page: ({ page, programs, heads, tokens, bytes, times: n, size }) => {
      const holds = tokens === null ? "" : tokens ? `, which holds ${tokens} of ${size} tokens` : ", which holds no token"
      if (!programs.length) return `Page ${page}${holds}: no program read it.`
      return `Page ${page}${holds}: read by ${plural(programs.length, "program")}, ${listed(programs)}; KV ${heads.length === 1 ? "head" : "heads"} ${listed(heads.map(String))}; ${bytesText(bytes)} in all, ${n > 1 ? `the same byte up to ${n} times` : "no byte twice"}.`
    },
    /** @param {ReadFacts} facts */
    read: ({ program, place, page, heads, slots, size, k, v }) =>
      `Page number ${place} of program ${program}: physical page ${page}, KV ${heads.length === 1 ? "head" : "heads"} ${listed(heads.map(String))}, ${slots} of ${size} tokens${k === undefined ? "" : `, K ${bytesText(k)}`}${v === undefined ? "" : `, V ${bytesText(v)}`}.`,
    asText: "As text",
    /** @param {string} program @param {number[]} pages @param {string} bytes */
    programReads: (program, pages, bytes) => pages.length ? `Program ${program} read ${pages.length === 1 ? "page" : "pages"} ${pages.join(", ")}: ${bytes}.` : `Program ${program} read no page.`,
    more: /** @param {number} n */ n => `${n} more are not listed.`, stepThis: "Step through this program",
    stepper: "Step through one program", kernel: "kernel", record: "Record every step",
    wantHint: "Choose a kernel and a program. It runs once more, and every line that it executes is kept, with every variable.",
    missingProgram: /** @param {string} program @param {string} kernel @param {string} grids */ (program, kernel, grids) =>
      grids ? `${kernel} has no program ${program}: its grid is ${grids}.` : `This run did not launch ${kernel}.`,
    noLaunch: "This run launched no kernel.",
    noSteps: "This program executed no line.",
    first: "First step", previousIteration: "Previous iteration", back: "One step back", forward: "One step forward", nextIteration: "Next iteration", lastStep: "Last step",
    slider: "Step", now: "Current line", keys: "← → one step, Shift with ← → or PageUp and PageDown one iteration, Home and End to either end.",
    step: /** @param {number} n @param {number} of */ (n, of) => `step ${n} of ${of}`,
    iteration: /** @param {string} variable @param {string} value @param {number} n @param {number} of */ (variable, value, n, of) =>
      variable ? `${variable} = ${value} (iteration ${n} of ${of})` : `iteration ${n} of ${of}`,
    outside: "outside the loops", jump: "go to", of: /** @param {string} program @param {string} kernel */ (program, kernel) => `Program ${program} of ${kernel}`,
    line: /** @param {number} from @param {number} to */ (from, to) => (from === to ? `line ${from}` : `lines ${from}–${to}`),
    called: /** @param {string} name @param {number | null} line */ (name, line) => (line ? `${name}, line ${line}` : name),
    here: /** @param {string} name @param {string} file @param {string} line */ (name, file, line) => `${name}, ${file ? `${file} ` : ""}${line}`,
    nothingChanged: "This line assigned no variable.", changedHead: "This step changed",
    fresh: "new", same: "assigned again, same values",
    differ: /** @param {number} n @param {number} of @param {boolean} part */ (n, of, part) => `${n} of the ${of} ${part ? "shown " : ""}elements differ`,
    variables: /** @param {string} name */ name => `Variables of ${name}`, allDigits: "All significant digits",
    corner: /** @param {string} shown */ shown => `the first ${shown} are shown`, range: /** @param {string} min @param {string} max */ (min, max) => `least ${min}, most ${max}`,
    nans: /** @param {number} n */ n => `${n} NaN`, truths: /** @param {number} n @param {number} of */ (n, of) => `${n} of ${of} true`,
    pointer: /** @param {string} base */ base => `elements from the first of ${base}`, given: "Arguments",
    failed: "The run failed on this line.", cut: { steps: /** @param {number} n */ n => `The record ends after ${n} steps; the program goes on.`, values: () => "The record ends here, with too many values; the program goes on." },
  },
}

/** @typedef {typeof WORDS.zh} Words */

/** @param {string} lang @returns {Words} */
export const wordsOf = lang => WORDS[lang.startsWith("zh") ? "zh" : "en"]
