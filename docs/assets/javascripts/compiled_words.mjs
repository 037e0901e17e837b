/** What the view of compiled kernels says, in the page's language. */

const WORDS = {
  zh: {
    open: "源码与编译结果对照", full: "全屏", kernel: "kernel", target: "目标", stage: "阶段", source: "源码", find: "查找",
    previous: "上一处", next: "下一处", loading: "正在读取…", failed: url => `读不到 ${url}`,
    figures: r => `${r.num_warps} warp × ${r.num_stages} stages · ${r.num_regs} 个寄存器 · shared memory ${r.shared_bytes} 字节 · spill ${r.spilled_bytes} 字节 · ${r.dtype} · Triton ${r.triton}`,
    hint: "点一行源码，或点它变成的任何一行。再点一次，跳到下一段。",
    became: (line, n, part, parts) => n ? `${line} 变成了 ${n} 行${parts > 1 ? `，共 ${parts} 段，这是第 ${part} 段` : ""}` : `${line} 在这里没有留下任何一行`,
    from: (row, line, calls) => line ? `第 ${row} 行来自 ${line}${calls.length ? `，由 ${calls.join("、")} 调用` : ""}` : `第 ${row} 行没有对应的源码行：是编译器加的`,
    hits: (n, of) => of ? `${n} / ${of}` : "没有",
    classes: { g: "全局访存", s: "shared memory", m: "矩阵", x: "exp、倒数", l: "跨 lane", c: "类型转换", w: "同步" },
  },
  en: {
    open: "The source beside what it became", full: "Full screen", kernel: "kernel", target: "target", stage: "stage",
    source: "source", find: "Find", previous: "Previous", next: "Next", loading: "Loading…", failed: url => `Cannot read ${url}`,
    figures: r => `${r.num_warps} warp × ${r.num_stages} stages · ${r.num_regs} registers · ${r.shared_bytes} bytes of shared memory · ${r.spilled_bytes} bytes spilled · ${r.dtype} · Triton ${r.triton}`,
    hint: "Choose a line of the source, or any line that it became. Choose it again to go to the next part.",
    became: (line, n, part, parts) => n ? `${line} became ${n} ${n > 1 ? "lines" : "line"}${parts > 1 ? ` in ${parts} parts; this is part ${part}` : ""}` : `${line} left no line here`,
    from: (row, line, calls) => line ? `Line ${row} is from ${line}${calls.length ? `, called at ${calls.join(", ")}` : ""}` : `Line ${row} is from no line of the source: the compiler added it`,
    hits: (n, of) => of ? `${n} / ${of}` : "none",
    classes: { g: "global memory", s: "shared memory", m: "matrix", x: "exp, 1/x", l: "across lanes", c: "convert", w: "sync" },
  },
}
export const words = WORDS[document.documentElement.lang.startsWith("zh") ? "zh" : "en"]
export const STAGES = { ttgir: "TTGIR", ptx: "PTX", sass: "SASS", amdgcn: "AMDGCN" }
