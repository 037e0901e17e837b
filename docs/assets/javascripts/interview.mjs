/**
 * What an interview page does beside being read: a clock over its table of phases, and boxes to tick in its rubric.
 *
 * Without this module both are plain text. The page writes
 *   <div class="interview-clock" data-interview="NAME"> a table whose rows are (phase, minutes, ...) </div>
 *   <div class="rubric"> headings, each followed by a list of points </div>
 * Clock and ticks last as long as the browser's tab, so that a reload or the other language finds them as they were.
 */

const WORDS = {
  zh: {
    clock: "计时器", left: "剩余时间", start: "开始", pause: "暂停", go: "继续", reset: "归零", clear: "清掉勾选",
    before: first => `第一段：${first}`, now: (phase, left) => `${phase}，这一段还剩 ${left}`,
    over: late => `时间到了，已超出 ${late}`,
    sayPhase: (phase, minutes) => `现在是“${phase}”，${minutes} 分钟。`, sayOver: "时间到了。",
    ticked: (n, of) => `勾了 ${n} 条，共 ${of} 条`,
  },
  en: {
    clock: "Timer", left: "Time left", start: "Start", pause: "Pause", go: "Go on", reset: "Reset", clear: "Clear the ticks",
    before: first => `First: ${first}`, now: (phase, left) => `${phase}, ${left} left of it`,
    over: late => `Time is up, ${late} over`,
    sayPhase: (phase, minutes) => `Now: ${phase}, ${minutes} minutes.`, sayOver: "Time is up.",
    ticked: (n, of) => `${n} of ${of} ticked`,
  },
}
const words = WORDS[document.documentElement.lang.startsWith("zh") ? "zh" : "en"]
const MINUTE = 60_000 // ms
const TICK = 250 // ms between two looks at the clock: it counts by the system's time, not by its own ticks

/** @param {string} tag @param {object} properties @param {...(Node|string)} children @returns {HTMLElement} */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}

/** @param {number} ms @returns {string} minutes and seconds, the second that has begun counted in full */
function shown(ms) {
  const seconds = Math.ceil(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
}

/** A value of the browser's tab, as JSON. @param {string} key @param {any} otherwise */
function kept(key, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? otherwise
  } catch {
    return otherwise
  }
}

class Clock {
  /** @param {HTMLElement} block */
  constructor(block) {
    this.key = `interview:${block.dataset.interview}`
    /** @type {{row: HTMLElement, name: string, begin: number, minutes: number}[]} in order; begin in ms */
    this.phases = []
    this.total = 0
    for (const row of block.querySelectorAll("tbody tr")) {
      const minutes = Number(row.cells[1].textContent)
      this.phases.push({ row, name: row.cells[0].textContent.trim(), begin: this.total, minutes })
      this.total += minutes * MINUTE
    }
    this.face = make("span", { className: "clock-face" })
    this.face.setAttribute("role", "timer")
    this.face.ariaLabel = words.left
    this.note = make("span", { className: "clock-note" })
    this.bar = make("progress", { max: this.total })
    this.bar.ariaHidden = "true" // the face says it
    this.button = make("button", { type: "button", className: "clock-run", onclick: () => this.toggle() })
    const reset = make("button", { type: "button", onclick: () => this.reset() }, words.reset)
    this.spoken = make("p", { className: "clock-spoken" })
    this.spoken.ariaLive = "polite"
    this.box = make("div", { className: "clock" }, this.face, this.note, this.bar,
      make("div", { className: "clock-buttons" }, this.button, reset), this.spoken)
    this.box.setAttribute("role", "group")
    this.box.ariaLabel = words.clock
    block.before(this.box) // so that it can stay in view, however far the page is scrolled
    /** What ran before the last start, in ms, and when that was, or null while it stands still. */
    this.state = kept(this.key, { ran: 0, since: null })
    this.last = this.phase // told already, or before the page was loaded
    this.show()
    if (this.state.since !== null) this.run()
  }

  get elapsed() {
    return this.state.ran + (this.state.since === null ? 0 : Date.now() - this.state.since)
  }

  /** @returns {number} the index of the phase at hand; their number when time is up, -1 before the first start */
  get phase() {
    if (this.state.since === null && !this.state.ran) return -1
    return this.elapsed >= this.total ? this.phases.length : this.phases.findLastIndex(p => p.begin <= this.elapsed)
  }

  keep() {
    sessionStorage.setItem(this.key, JSON.stringify(this.state))
    this.show()
  }

  run() {
    clearInterval(this.timer)
    this.timer = setInterval(() => this.show(), TICK)
  }

  toggle() {
    const running = this.state.since !== null
    this.state = { ran: this.elapsed, since: running ? null : Date.now() }
    if (running) clearInterval(this.timer)
    else this.run()
    this.keep()
  }

  reset() {
    clearInterval(this.timer)
    this.state = { ran: 0, since: null }
    this.last = -1
    this.spoken.textContent = ""
    this.keep()
  }

  /** Draw the clock; speak only where a phase begins or time is up. */
  show() {
    const { elapsed, phase, phases, total } = this
    const over = phase === phases.length
    const now = phases[phase]
    this.face.textContent = over ? `+${shown(elapsed - total)}` : shown(total - elapsed)
    this.face.classList.toggle("over", over)
    this.box.classList.toggle("running", this.state.since !== null)
    this.bar.value = Math.min(elapsed, total)
    this.button.textContent = this.state.since !== null ? words.pause : this.state.ran ? words.go : words.start
    if (over) this.note.textContent = words.over(shown(elapsed - total))
    else if (now) this.note.textContent = words.now(now.name, shown(now.begin + now.minutes * MINUTE - elapsed))
    else this.note.textContent = words.before(phases[0].name)
    phases.forEach(({ row }, i) => {
      if (i === phase) row.setAttribute("aria-current", "step")
      else row.removeAttribute("aria-current")
    })
    if (phase !== this.last && phase >= 0) {
      this.spoken.textContent = over ? words.sayOver : words.sayPhase(now.name, now.minutes)
    }
    this.last = phase
  }
}

class Rubric {
  /** @param {HTMLElement} block @param {string} name of the interview */
  constructor(block, name) {
    this.key = `interview:${name}:ticks`
    /** @type {{boxes: HTMLInputElement[], count: HTMLElement}[]} */
    this.lists = []
    for (const list of block.querySelectorAll(":scope > ul")) {
      const boxes = [...list.children].map(item => {
        const box = make("input", { type: "checkbox", onchange: () => this.keep() })
        item.replaceChildren(make("label", {}, box, make("span", {}, ...item.childNodes)))
        return box
      })
      list.classList.add("ticks")
      const count = make("p", { className: "ticked" })
      list.after(count)
      this.lists.push({ boxes, count })
    }
    const clear = make("button", { type: "button", onclick: () => this.clear() }, words.clear)
    block.append(clear)
    const ticks = kept(this.key, [])
    this.boxes.forEach((box, i) => { box.checked = ticks.includes(i) })
    this.show()
  }

  get boxes() {
    return this.lists.flatMap(({ boxes }) => boxes)
  }

  keep() {
    const ticks = this.boxes.flatMap((box, i) => box.checked ? [i] : [])
    sessionStorage.setItem(this.key, JSON.stringify(ticks))
    this.show()
  }

  clear() {
    for (const box of this.boxes) box.checked = false
    this.keep()
  }

  show() {
    for (const { boxes, count } of this.lists) {
      count.textContent = words.ticked(boxes.filter(box => box.checked).length, boxes.length)
    }
  }
}

const clock = document.querySelector(".interview-clock")
new Clock(clock)
for (const block of document.querySelectorAll(".rubric")) new Rubric(block, clock.dataset.interview)
