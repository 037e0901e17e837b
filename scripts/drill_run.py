"""The checks of a lesson on its solution, on a mutant of it, or on a reader's file, each in child processes.

    with Sandbox() as box:
        report = check(box, "l2_paged_decode", file=Path("mine/l2_paged_decode.py"), tests=True)

A report is {"lesson", "ok"}, and where a check fails also {"check", "case", "message", "mistakes", ...}:
"check" is one of mutants.CHECKS, or "gpu", "timeout", "died" or "import"; mistakes are the ids of the known
mistakes whose symptoms these are. A library for scripts/drill.py and scripts/mutants.py.
"""

import json
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts import drill_levels
from scripts.mutant_files import PARTS, ROOT, Mutant
from scripts.sandbox import Ended, Limits, Sandbox

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
    level: str | None = None, tests: bool = False, gpu: bool = False,
    say: Callable[[str], None] = lambda stage: None,
) -> dict:  # fmt: skip
    """The report of the first check that fails, or of success.

    level: of a reader's `file`, for a lesson in parts. tests: at last, also run the lesson's test file on
    the function of `file`. gpu: run the problems and that test file on the GPU, where nothing is traced.
    say: called with "problems", "compile" and "tests", as they begin.
    """
    mode = "gpu" if gpu else "interpreter"
    if lesson in PARTS:
        return {"lesson": lesson} | _parts(box, mode, lesson, mutant, file, level, tests, say)
    arguments = [lesson, *(["--file", str(file.resolve())] if file else [])]
    with kernels_copy(mutant) as folder:
        if mutant and mutant.test:
            arguments += ["--tests", str(ROOT / mutant.test)]
            report = run_module(box, mode, "scripts.drill_tests", arguments, folder, TESTS_TIME_LIMIT_S)
            return {"lesson": lesson} | report
        say("problems")
        first = [*arguments, *["--gpu"] * gpu]
        report = run_module(box, mode, "scripts.drill_kernel", first, folder, TIME_LIMIT_S)
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


def _parts(
    box: Sandbox, mode: str, lesson: str, mutant: Mutant | None, file: Path | None, level: str | None,
    tests: bool, say: Callable[[str], None],
) -> dict:  # fmt: skip
    """`check` of a lesson in parts: a file, a mutant, or the solution stands in for one file of kernels/."""
    every = [drill_levels.file_of(lesson, name) for name in drill_levels.levels(lesson)]
    paths = [mutant.file] if mutant else dict.fromkeys(every)
    if level:
        paths = [drill_levels.file_of(lesson, level)]
    report = {}
    for path in paths:
        with tempfile.TemporaryDirectory() as name:
            source = (ROOT / path).read_text(encoding="utf-8")
            edited = Path(name) / Path(path).name
            edited.write_text(mutant.apply(source) if mutant else source, encoding="utf-8")
            arguments = [lesson, "--part", path, "--file", str(file.resolve() if file else edited)]
            for stage, option in (("problems", []), *([("tests", ["--tests"])] if tests else [])):
                say(stage)
                limit = TESTS_TIME_LIMIT_S if option else TIME_LIMIT_S
                more = [*arguments, *option, *["--gpu"] * (mode == "gpu")]
                report = run_module(box, mode, "scripts.drill_parts", more, Path(name), limit)
                if not report["ok"]:
                    return report
    return report


def run_module(
    box: Sandbox, mode: str, module: str, arguments: list[str], folder: Path, seconds: int
) -> dict:
    """Run a module that writes its progress and its report to --out; what it said, or how it ended."""
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    ended = box.run(mode, module, [*arguments, "--out", str(out)], folder, Limits(seconds))
    report = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    if ended.status == 0 and "ok" in report:
        return report
    end = _end(ended, report, seconds)
    return report | {"ok": False, "mistakes": []} | end


def _end(ended: Ended, report: dict, seconds: int) -> dict:
    """What it means that a process ended before its report."""
    if ended.timed_out:
        return {"check": "timeout", "message": f"not done after {seconds} s: does a loop never end?"}
    known = report.pop("known", [])  # what it is if the process dies of an address
    if report.get("check") == "big_cache" and -ended.status in (signal.SIGSEGV, signal.SIGBUS):
        # Values, guards and accesses were right just before: only the distance of the page is new.
        message = f"the process died ({ended}) on a page whose offset passes 2**31 elements"
        return {"message": message, "mistakes": known}
    last = ended.stderr.strip().splitlines()[-1:] or [""]
    message = f"the process died ({ended}): {re.sub(r'/[^ ]*/', '', last[0])}"
    return {"check": "died", "message": message.removesuffix(": ")}
