/** What the panel of a runnable program says, in both languages. */

/** @param {number} bytes */
const megabytes = bytes => (bytes / 1e6).toFixed(1)
/** @param {number} ms */
const seconds = ms => (ms < 1000 ? (ms / 1000).toFixed(2) : (ms / 1000).toFixed(1))

export const WORDS = {
  zh: {
    stop: "停止", reset: "还原", last: "载入我上次的版本", share: "复制链接",
    code: "代码编辑器", output: "输出", line: /** @param {number} line */ line => `第 ${line} 行`,
    help: "Tab 缩进。先按 Esc 再按 Tab，离开编辑器；Ctrl-M（macOS 是 Shift-Option-M）切换 Tab 的用途。Ctrl-Enter 或 ⌘-Enter 运行。",
    preparing: "正在取程序和编辑器…",
    download: /** @param {number} done @param {number} total */ (done, total) =>
      total ? `下载 ${megabytes(done)} / ${megabytes(total)} MB` : `下载 ${megabytes(done)} MB`,
    stages: { download: "正在下载运行环境，只有第一次需要", start: "正在启动 Python", triton: "正在载入 Triton" },
    running: "正在运行…", checking: "正在检查…", slow: "时间有点长；按“停止”可以结束",
    done: /** @param {number} ms */ ms => `运行结束，用了 ${seconds(ms)} 秒`,
    raised: "运行中断，原因见下", passed: "检查通过", refused: "检查没有通过，说明见下",
    stopped: "已停止", nothing: "（没有输出）", cut: "\n……输出太长，后面的省略了",
    warnings: "GPU 的编译器不接受这些写法", failed: /** @param {string} why */ why => `运行环境出错：${why}`,
    linked: "这段代码来自链接，还没有运行过。看过再按“运行”。",
    badLink: "这个链接里的代码不完整，读不出来。",
    unread: /** @param {string} what */ what => `取不到 ${what}，请检查网络后再按一次`,
    restored: "已还原成本页的程序；改动可以用“载入我上次的版本”找回",
    loaded: /** @param {string} when */ when => `已载入 ${when} 的版本`,
    notKept: "这个浏览器不让网页存东西，关掉页面，改动就没了",
    copied: "链接已复制，打开它的人会看到编辑器里现在的代码", copy: "复制这个链接：",
    cannotShare: "这个浏览器做不出链接", level: /** @param {string} level */ level => `现在是 ${level} 级的骨架`,
  },
  en: {
    stop: "Stop", reset: "Reset", last: "Load my last version", share: "Copy a link",
    code: "Code editor", output: "Output", line: /** @param {number} line */ line => `line ${line}`,
    help: "Tab indents. Press Escape, then Tab, to leave the editor; Ctrl-M (on macOS Shift-Option-M) changes what Tab does. Ctrl-Enter or ⌘-Enter runs it.",
    preparing: "Loading the program and the editor…",
    download: /** @param {number} done @param {number} total */ (done, total) =>
      total ? `${megabytes(done)} of ${megabytes(total)} MB` : `${megabytes(done)} MB`,
    stages: { download: "Downloading the runner, this once", start: "Starting Python", triton: "Loading Triton" },
    running: "Running…", checking: "Checking…", slow: "It takes long; Stop ends it.",
    done: /** @param {number} ms */ ms => `Done in ${seconds(ms)} s`,
    raised: "It ended early, for the reason below", passed: "The check passes", refused: "The check fails, for the reason below",
    stopped: "Stopped", nothing: "(no output)", cut: "\n… too much output; the rest is left out",
    warnings: "A GPU's compiler would refuse this", failed: /** @param {string} why */ why => `The runner failed: ${why}`,
    linked: "This code came from a link and has not been run. Read it before you press Run.",
    badLink: "The code in this link is incomplete and cannot be read.",
    unread: /** @param {string} what */ what => `Cannot read ${what}; check the network and press again`,
    restored: "This is the page's own program again; “Load my last version” brings your changes back",
    loaded: /** @param {string} when */ when => `This is your version of ${when}`,
    notKept: "This browser keeps nothing for web pages: your changes end with the page",
    copied: "Link copied: it shows the code that is in the editor now", copy: "Copy this link:",
    cannotShare: "This browser cannot make a link", level: /** @param {string} level */ level => `This is the skeleton of level ${level}`,
  },
}

/** @typedef {typeof WORDS.zh} Words */

/** @param {string} lang @returns {Words} */
export const wordsOf = lang => WORDS[lang.startsWith("zh") ? "zh" : "en"]
