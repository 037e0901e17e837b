"""The checks of a lesson on its solution, on a mutant of it, or on a reader's file, each in child processes.

    with Sandbox() as box:
        report = check(box, "l2_paged_decode", file=Path("mine/l2_paged_decode.py"), tests=True)

A report is {"lesson", "ok"}, and where a check fails also {"check", "case", "message", "mistakes", ...}:
check is one of mutants.CHECKS, or "gpu", "tests", "timeout", "died" or "import"; mistakes are the ids of the
known mistakes whose symptoms these are. A library for scripts/drill.py and scripts/mutants.py.
"""

import json
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.mutants import ROOT, Mutant
from scripts.sandbox import Ended, Sandbox

TIME_LIMIT_S = 120  # of all checks but the test file
TESTS_TIME_LIMIT_S = 600


@contextmanager
def kernels_copy(mutant: Mutant | None = None) -> Iterator[Path]:
    """A folder with a copy of kernels/, in which a mutant's edits are made."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=unwanted)
        if mutant:
            source = (ROOT / mutant.file).read_text(encoding="utf-8")
            (folder / mutant.file).write_text(mutant.apply(source), encoding="utf-8")
        yield folder


def check(
    box: Sandbox, lesson: str, mutant: Mutant | None = None, file: Path | None = None, *,
    tests: bool = False, gpu: bool = False, say: Callable[[str], None] = lambda stage: None,
) -> dict:  # fmt: skip
    """The report of the first check that fails, or of success.

    tests: at last, also run the lesson's test file on the function of `file`. gpu: run the problems and that
    test file on the GPU, where nothing is traced. say: called with "problems", "compile" and "tests", as
    they begin.
    """
    mode = "gpu" if gpu else "interpreter"
    arguments = [lesson, *(["--file", str(file.resolve())] if file else [])]
    with kernels_copy(mutant) as folder:
        if mutant and mutant.test:
            arguments += ["--tests", str(ROOT / mutant.test)]
            report = run_module(box, mode, "scripts.drill_tests", arguments, folder, TESTS_TIME_LIMIT_S)
            return {"lesson": lesson} | report
        say("problems")
        first = [*arguments, *["--gpu"] * gpu]
        report = run_module(box, mode, "scripts.mutant_checks", first, folder, TIME_LIMIT_S)
        if report["ok"] and not gpu:
            say("compile")
            launches = folder / "launches.json"
            launches.write_text(json.dumps(report.pop("launches")), encoding="utf-8")
            more = [*arguments, "--launches", str(launches)]
            report = run_module(box, "compiler", "scripts.mutant_compile", more, folder, TIME_LIMIT_S)
        if report["ok"] and tests:
            say("tests")
            report = run_module(box, mode, "scripts.drill_tests", arguments, folder, TESTS_TIME_LIMIT_S)
    return {"lesson": lesson} | report


def run_module(
    box: Sandbox, mode: str, module: str, arguments: list[str], folder: Path, seconds: int
) -> dict:
    """Run a module that writes its progress and its report to --out; what it said, or how it ended."""
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    ended = box.run(mode, module, [*arguments, "--out", str(out)], folder, seconds)
    report = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    if ended.status == 0 and "ok" in report:
        return report
    return report | {"ok": False, "mistakes": []} | _end(ended, report, seconds)


def _end(ended: Ended, report: dict, seconds: int) -> dict:
    """What it means that a process ended before its report."""
    if ended.timed_out:
        return {"check": "timeout", "message": f"not done after {seconds} s: does a loop never end?"}
    if report.get("check") == "big_cache" and -ended.status in (signal.SIGSEGV, signal.SIGBUS):
        # Values, guards and accesses were right just before: only the distance of the page is new.
        message = f"the process died ({ended}) on a page whose offset passes 2**31 elements"
        return {"message": message, "mistakes": ["l2_paged_decode/int32_page_offset"]}
    last = ended.stderr.strip().splitlines()[-1:] or [""]
    message = f"the process died ({ended}): {re.sub(r'/[^ ]*/', '', last[0])}"
    return {"check": "died", "message": message.removesuffix(": ")}
