"""Check a reader's file in the page: the drill's small cases, with the diagnosis of scripts/drill.py.

    report = check("l2_paged_decode", "loop", source, "zh", on_step=print)

The functions are those that scripts/drill.py runs, here in this process: no child, so no limit of time. A
loop that never ends gives no report; the page's Stop ends it, with the process. Two stages of `drill.py` are
not here, and the report says so: compiling for sm_90 (Triton's own front end looks at the kernels instead,
and refuses what it refuses there), and the lesson's test file.

A report is JSON-able: that of scripts/drill_run.py ({"lesson", "ok"}, and where a check fails "check",
"case", "message", "mistakes", ...), and

    level
    stages     [{"stage": "problems", "ran": True}, ...]: those of `drill.py check`, and "warnings"
    warnings   [{"line", "code", "message", "texts"}]: what a GPU's compiler would refuse or do otherwise
    line       of the reader's file that the message is about, or None
    read_again [{"mistake", "name": {"zh", "en"}, "lesson", "section"}]: where the page explains each mistake
    text       all of it for a reader, in the language asked for
    ms
"""

import contextlib
import importlib
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

from scripts import drill_levels, mutant_checks, mutant_files, part_checks
from scripts.diagnose import describe
from scripts.drill_cases import parts_of
from scripts.mutant_compile import SMALL_TILE, TF32
from scripts.mutant_files import PARTS
from scripts.mutant_findings import raised
from scripts.mutant_problems import compiled_problem, problems_of
from scripts.runner import far, front_end, session

KNOWN = {"small_dot": [SMALL_TILE], "tf32": [TF32]}  # by code of a warning: the known mistakes that it means
WORDS = {
    "en": {
        "unnamed": "none of the known mistakes fits",
        "ran": "ran here",
        "left": "not here",
        "problems": "the small cases",
        "warnings": "Triton's front end for sm_90",
        "compile": "compiling for sm_90",
        "tests": "the lesson's test file",
        "both": "python scripts/drill.py check {lesson} runs all of them",
        "line": "line {line}",
        "colon": ": ",
        "comma": ", ",
    },
    "zh": {
        "unnamed": "与已知错误都不符",
        "ran": "这里运行了",
        "left": "这里没有",
        "problems": "小用例",
        "warnings": "Triton 前端（目标 sm_90）",
        "compile": "为 sm_90 编译",
        "tests": "本课的测试文件",
        "both": "python scripts/drill.py check {lesson} 全部运行",
        "line": "第 {line} 行",
        "colon": "：",
        "comma": "、",
    },
}


def check(
    lesson: str, level: str, source: str, lang: str = "en", *,
    on_step: Callable[[dict], None] = lambda step: None, on_stdout: Callable[[str], None] | None = None,
) -> dict:  # fmt: skip
    """The report on a reader's source.

    on_step: called with {"check", "case", "done", "total"} as each case begins; done counts those before it.
    on_stdout: called with each piece of text that the source prints. Raises PageError where there is no such
    lesson or level.
    """
    path = drill_levels.file_of(lesson, level)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, _checking(on_stdout) as output:
        file = Path(folder) / f"{lesson}.py"
        file.write_text(source, encoding="utf-8")
        session.begin(str(file), source, poison="off")  # what is unwritten is told by the checks' own guards
        try:
            if lesson in PARTS:
                report = _part(lesson, path, file, on_step)
            else:
                report = _kernel(lesson, file, source, output, on_step)
        except (SystemExit, KeyboardInterrupt) as error:  # in a process of its own it would end that
            report = _died(error)
        finally:
            session.end(str(file))
            _forget("kernels.ops")  # a file that imports it is refused, and the next one may not
    report = {"lesson": lesson, "level": level, "warnings": []} | report
    ran = {"problems": True, "warnings": report.pop("looked", False)}
    ran |= {"tests": False} if lesson in PARTS else {"compile": False, "tests": False}
    report["stages"] = [{"stage": stage, "ran": done} for stage, done in ran.items()]
    report["line"] = _line(report, f"{lesson}.py")
    report["read_again"] = [
        {"mistake": one.id, "name": one.name, "lesson": one.lesson, "section": one.section}
        for one in map(mutant_files.load, report.get("mistakes", []))
    ]
    report["ms"] = (time.perf_counter() - started) * 1000
    return report | {"text": text(report, lang)}


def _kernel(lesson: str, file: Path, source: str, output, on_step) -> dict:
    """A lesson whose drill is one kernel."""
    function, failure = mutant_checks.read(lesson, file)
    if failure:
        return failure
    say = _Steps(len(problems_of(lesson)) + (0 if lesson == "online_softmax" else 2), on_step)
    report = mutant_checks.Checks(lesson, function, say, output, _far).run()
    return _refused(lesson, file, source, function) if report["ok"] else report


def _refused(lesson: str, file: Path, source: str, function: Callable) -> dict:
    """What a GPU's compiler says of the kernels that passed all else, in place of compiling them."""
    record = session.begin(str(file), source, poison="off")
    try:
        compiled_problem(lesson).run(function)
    except Exception as error:  # of a reader's code: a finding, not our failure
        return _died(error)
    seen = {"ok": True, "looked": bool(record.kernels)}
    seen["warnings"] = front_end.warnings_of(record, str(file), source)
    for warning in seen["warnings"]:
        if warning["code"] in KNOWN or "said" in warning["values"]:  # by the compiler
            return seen | {"ok": False, "check": "warnings"} | {
                "message": warning["message"], "mistakes": KNOWN.get(warning["code"], []),
            }  # fmt: skip
    return seen


def _died(error: BaseException) -> dict:
    """What would have ended a process of its own."""
    return {"ok": False, "check": "died", "message": raised(error), "mistakes": []}


def _part(lesson: str, path: str, file: Path, on_step) -> dict:
    """A lesson whose drill is one file at a time."""
    part = parts_of(lesson)[path]
    solution: ModuleType = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    other, failure = part_checks.read(file, part)
    if failure:
        return failure
    say = _Steps(len(part.cases) + bool(part.far), on_step)
    return part_checks.check(lesson, path, part, solution, other, say, _far)


def _far(run: Callable[[], None]) -> None:
    """The check past 2**31 elements: memory for what is touched, and a wrong address harms nobody."""
    with far.caches():
        mutant_checks.guarded(run)


def _line(report: dict, file: str) -> int | None:
    """The line that a report's message names."""
    if report.get("check") == "warnings":
        return next(w["line"] for w in report["warnings"] if w["message"] == report["message"])
    found = re.search(rf"\(line (\d+) of {file}\)|\({file}, line (\d+)\)", report.get("message", ""))
    return int(found[1] or found[2]) if found else None


def _forget(module: str) -> None:
    """As if it had never been imported: in a process of its own, a check finds nothing of the one before."""
    package, _, name = module.rpartition(".")
    if sys.modules.pop(module, None):
        vars(sys.modules[package]).pop(name, None)


class _Steps:
    """Tells the page which case begins."""

    def __init__(self, total: int, on_step: Callable[[dict], None]) -> None:
        self.done, self.total, self.on_step = 0, total, on_step

    def __call__(self, *, check: str, case: str, **_known) -> None:
        self.on_step({"check": check, "case": case, "done": self.done, "total": self.total})
        self.done += 1


class _Printed(session.Output):
    """What the source prints, and where the cases begin in it."""

    def size(self) -> int:
        """Characters so far."""
        return self.length

    def rows(self, begin: int, end: int) -> list[str]:
        """The first lines of a part."""
        return mutant_checks.first_rows(str(self)[begin:end])


@contextlib.contextmanager
def _checking(on_stdout: Callable[[str], None] | None):
    """A GPU warns of no overflow, and what is printed goes to the page."""
    output = _Printed(on_stdout)
    with contextlib.redirect_stdout(output), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield output


def text(report: dict, lang: str) -> str:
    """The report for a reader; messages themselves are English."""
    words, said = WORDS[lang], []
    for warning in report["warnings"]:
        where = words["line"].format(line=warning["line"]) + words["colon"] if warning["line"] else ""
        said.append(where + warning["texts"][lang])
        if report.get("check") == "warnings" and report["message"] == warning["message"]:
            report = report | {"message": said.pop()}
    rows = [describe(report, lang), *said]
    if not report["ok"] and not report["mistakes"]:
        rows.append(words["unnamed"])
    stages = {stage["stage"]: stage["ran"] for stage in report["stages"]}
    for title, listed in (
        ("ran", [stage for stage, ran in stages.items() if ran]),
        ("left", [stage for stage in ("compile", "tests") if stage in stages]),
    ):
        rows.append(f"{words[title]}{words['colon']}{words['comma'].join(words[stage] for stage in listed)}")
    return "\n".join([*rows, words["both"].format(lesson=report["lesson"])])
