"""From what a wrong kernel does to the name of the known mistake, and what a reader is told of it.

A mistake is named if its own wrong reference (scripts/mistakes.py) gives what the kernel gave on EVERY
problem of the lesson, and if the sign that it leaves beside values was seen, or none was. A library for
scripts/drill.py, scripts/mutants.py and the pages; `describe` needs no torch.
"""

import re
from collections.abc import Iterable

from scripts import mutant_files

# Signs beside values: memory never written; stores outside a tensor's own elements or over another
# program's; foreign table entries read; page 0 read for an id of -1; offsets past 2**31; instructions.
SIGNS = ("unwritten", "padding", "table", "page_0", "far_page", "tf32", "small_tile")
OTHER_SIGNS = ("outside", "twice")  # of no known mistake: what else lies outside a tensor, or is stored twice


def known_mistakes(lesson: str) -> dict:
    """{id: (wrong reference, sign)} of what may go wrong in a lesson's kernel: L3's has L2's loop, too."""
    from scripts.mistakes import L2_MISTAKES, L3_MISTAKES
    from scripts.mistakes_softmax import SOFTMAX_MISTAKES

    l2 = {f"l2_paged_decode/{name}": mistake for name, mistake in L2_MISTAKES.items()}
    if lesson == "l2_paged_decode":
        return l2
    if lesson == "l3_split_kv_decode":
        del l2["l2_paged_decode/table_past_end"]  # page_end_unbounded, there
        return {f"{lesson}/{name}": mistake for name, mistake in L3_MISTAKES.items()} | l2
    return {f"{lesson}/{name}": mistake for name, mistake in SOFTMAX_MISTAKES.items()}


def matches(problem, result, wrong) -> bool:
    """Whether (o, lse) of a kernel is what a wrong reference gives, roundings apart."""
    import torch

    if result is None or result[0].shape != wrong[0].shape:
        return False
    rounding = 4 * torch.finfo(problem.dtype).eps
    scores = torch.finfo(torch.float32).eps * problem.largest_score()  # a rounding of the largest score
    (o, lse), (wrong_o, wrong_lse) = result, wrong
    nan = wrong_o.isnan()
    if not torch.equal(o.isnan(), nan):
        return False
    size = wrong_o[wrong_o.isfinite()].abs().max().item() if wrong_o.isfinite().any() else 1.0
    close = torch.isclose(o.double(), wrong_o.double(), rtol=0, atol=(rounding + 8 * scores) * max(1.0, size))
    # A partial on the edge between two fp16 may be rounded the other way: a few may differ.
    good = (close | nan).double().mean().item() >= 0.98 if o.numel() else True
    if wrong_lse is None or not good:
        return good
    lse_close = torch.isclose(lse.double(), wrong_lse.double(), rtol=0, atol=1e-5 + 8 * scores)
    return bool((lse_close | nan.any(-1)).all())


def diagnose(lesson: str, observed: list[tuple], signs: Iterable[str] = ()) -> list[str]:
    """The ids of the known mistakes that explain everything: [] if none does, or if nothing is wrong.

    observed: (problem, (o, lse)) of every problem; None in place of a result that was an exception.
    signs: those of SIGNS and OTHER_SIGNS that were seen.
    """
    signs = set(signs)
    return [
        mutant_id
        for mutant_id, (outputs, sign) in known_mistakes(lesson).items()
        if (sign in signs if sign else not signs)
        and all(any(matches(p, result, wrong) for wrong in outputs(p)) for p, result in observed)
    ]


WORDS = {
    "en": {
        "ok": "all checks pass", "fails": "fails", "is": ": ",
        "mistake": "known mistake", "again": "read again",
        "case": "case", "what": "tensor", "index": "index", "expected": "expected", "got": "got",
        "also": "and", "printed": "what your file printed in this case",
        "cases": "small cases, against the solution",
        "values": "the result against the float64 reference",
        "poison": "memory that was never written, or is not the kernel's to write",
        "tracer": "what each program reads and writes",
        "bad_table": "a block table with an entry of -1",
        "big_cache": "a cache whose offsets pass 2**31",
        "compile": "compiled for sm_90",
        "warnings": "Triton's front end, for sm_90",
        "tests": "the lesson's test file", "gpu": "a GPU",
        "timeout": "the time limit", "died": "running to the end", "import": "importing the file",
    },
    "zh": {
        "ok": "全部检查通过", "fails": "没有通过", "is": "：",
        "mistake": "已知错误", "again": "重读",
        "case": "用例", "what": "张量", "index": "下标", "expected": "应为", "got": "得到",
        "also": "另外", "printed": "你的文件在这个用例里打印了",
        "cases": "小用例，与答案比较",
        "values": "结果与 float64 参考值比较",
        "poison": "有内存没写，或写了不该写的内存",
        "tracer": "每个 program 的读写范围",
        "bad_table": "block table 里有一项 -1",
        "big_cache": "偏移超过 2**31 的大 cache",
        "compile": "为 sm_90 编译",
        "warnings": "Triton 前端（目标 sm_90）",
        "tests": "本课的测试文件", "gpu": "GPU",
        "timeout": "时间上限", "died": "运行到底", "import": "导入文件",
    },
}  # fmt: skip


def describe(report: dict, lang: str = "en") -> str:
    """A report of scripts/drill_run.py, or of the page, for a reader; messages themselves are English."""
    words = WORDS[lang]
    colon = words["is"]
    if report["ok"]:
        return f"{report['lesson']}{colon}{words['ok']}"
    rows = [f"[{report['check']}] {words[report['check']]}{colon}{words['fails']}"]
    rows += re.split(r"; (?=row |lse\[|and \d)", report["message"])
    where = ("case", "what", "index", "expected", "got", "also")
    rows += [f"  {words[key]}{colon}{report[key]}" for key in where if report.get(key)]
    if report.get("printed"):
        rows += [f"  {words['printed']}{colon}".rstrip(), *(f"    {row}" for row in report["printed"])]
    for mutant_id in report["mistakes"]:
        mutant = mutant_files.load(mutant_id)
        page = f"docs/{lang}/lessons/{mutant.lesson}.md#{mutant.section}"
        rows += [
            f"{words['mistake']} {mutant_id}{colon}{mutant.name[lang]}",
            f"  {words['again']}{colon}{page}",
        ]
    return "\n".join(rows)
