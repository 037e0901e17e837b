"""What scripts/drill.py says, in both languages."""

WORDS = {
    "en": {
        "loop": "fill the loop",
        "kernel": "write the kernel",
        "launcher": "write kernel and launcher",
        "heads": "write heads, rotation and attention",
        "latent": "write the two ways to read a latent",
        "decode": "write prefill and a decode step",
        "table": "write the page table",
        "cache": "write what moves the data",
        "absent": "{file} is not there; wanted: {python} scripts/drill.py start {lesson}",
        "exists": (
            "{file} is there; `check {lesson}` checks it, `reset {lesson}` starts anew and keeps it, "
            "`start {lesson} --force` overwrites it"
        ),
        "kept": "your file is now {file}",
        "other_level": (
            "{file} is of level {level}; {wanted} begins with, and your file is kept:\n"
            "  {python} scripts/drill.py reset {lesson} --level {wanted}"
        ),
        "started": (
            "{file}: level {level}, {what}. Look for TODO, then:\n"
            "  {python} scripts/drill.py check {lesson}\n  {python} scripts/drill.py hint {lesson}"
        ),
        "problems": "small problems: results, memory, table, offsets",
        "compile": "compiling for sm_90",
        "tests": "the lesson's test file, on your function (up to a minute)",
        "unnamed": "none of the known mistakes fits; `hint` gives the next hint",
        "hint": "Hint {number} of {count} (level {level})",
        "same": "no difference",
        "no_tests": "{file} is not there; wanted a pytest file",
        "score_solution": "{passed} tests pass on the solution",
        "score_not_right": "your tests must pass on the solution first; they fail:",
        "killed": "killed",
        "survives": "SURVIVES",
        "score": "{killed} of {count} mutants killed",
        "by_compiler": "only the compiler shows this one",
    },
    "zh": {
        "loop": "补全循环",
        "kernel": "写 kernel",
        "launcher": "写 kernel 和 launcher",
        "heads": "写 head、旋转和 attention",
        "latent": "写 latent 的两种读法",
        "decode": "写 prefill 和一步 decode",
        "table": "写页表",
        "cache": "写搬数据的部分",
        "absent": "没有 {file}；先运行：{python} scripts/drill.py start {lesson}",
        "exists": (
            "{file} 已经在了；`check {lesson}` 检查它，`reset {lesson}` 重新开始并保留它，"
            "`start {lesson} --force` 覆盖它"
        ),
        "kept": "原来的文件改名为 {file}",
        "other_level": (
            "{file} 的级别是 {level}；要从 {wanted} 开始（原来的文件会保留）：\n"
            "  {python} scripts/drill.py reset {lesson} --level {wanted}"
        ),
        "started": (
            "{file}：级别 {level}，{what}。找到 TODO，然后：\n"
            "  {python} scripts/drill.py check {lesson}\n  {python} scripts/drill.py hint {lesson}"
        ),
        "problems": "小用例：结果、内存、block table、偏移",
        "compile": "为 sm_90 编译",
        "tests": "用本课的测试文件测你的函数（最多一分钟左右）",
        "unnamed": "与已知错误都不符；`hint` 给出下一条提示",
        "hint": "提示 {number} / {count}（级别 {level}）",
        "same": "没有差别",
        "no_tests": "没有 {file}；需要一个 pytest 文件",
        "score_solution": "标准答案通过 {passed} 个测试",
        "score_not_right": "你的测试必须先在标准答案上通过；现在失败：",
        "killed": "抓到",
        "survives": "漏掉",
        "score": "{count} 个 mutant 抓到 {killed} 个",
        "by_compiler": "只有编译才看得出来",
    },
}
