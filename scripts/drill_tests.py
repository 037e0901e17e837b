"""pytest in a child process: the lesson's test file on a reader's function, or a reader's tests on ours.

    python -m scripts.drill_tests l2_paged_decode --out report.json --file mine/l2_paged_decode.py
    python -m scripts.drill_tests l2_paged_decode --out report.json --tests mine/test_decode.py

With --file, the function of that file takes the place of the solution's in `kernels`, before the lesson's
test file imports it from there. With --tests, that file runs on `kernels` as it is, which may be a mutant.
Stops at the first test that fails.
"""

import argparse
import importlib
import linecache
import os
import sys
from pathlib import Path

import tests.helpers.mode  # noqa: F401, it says where triton runs, before anything is decorated
from scripts.drill_child import FUNCTIONS, load_function, write
from scripts.mutant_findings import shortened

ROOT = Path(__file__).resolve().parents[1]
# Tests of the lesson's file that are about other functions than the one a drill asks for.
OTHERS = {
    "online_softmax": "state",  # of the step alone
    "l2_paged_decode": "naive or swapped_strides",
    "l3_split_kv_decode": "unnormalized or choice or ranges_cut",
}


class FirstFailure:
    """A pytest plugin: what ran, and the first test, or file, that failed."""

    def __init__(self) -> None:
        self.passed = 0
        self.failure: dict | None = None

    def pytest_runtest_logreport(self, report) -> None:
        self.passed += report.when == "call" and report.passed
        self._note(report)

    def pytest_collectreport(self, report) -> None:
        self._note(report)

    def _note(self, report) -> None:
        if report.failed and self.failure is None:
            crash = getattr(report.longrepr, "reprcrash", None)
            rows = _reason(crash) if crash else _errors(str(report.longrepr))
            self.failure = {"case": report.nodeid, "message": "\n".join(rows[:6])}


def _reason(crash) -> list[str]:
    """What was raised; of a bare assert the line itself, for pytest would print whole tensors."""
    if crash.message.startswith("assert "):
        return [linecache.getline(str(crash.path), crash.lineno).strip()]
    return shortened(crash.message.removeprefix("AssertionError: ")).splitlines()


def _errors(text: str) -> list[str]:
    """Of a long report, the lines that say what went wrong."""
    rows = [row.removeprefix("E").strip() for row in text.splitlines() if row.startswith("E ")]
    return rows or text.splitlines()[-1:]


def run(tests: str, arguments: list[str]) -> dict:
    """The report of a test file: {"ok", "passed"}, and of the first failure "case" and "message"."""
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and some take a second to load
    seen = FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    status = pytest.main([tests, *options, "-c", str(ROOT / "pyproject.toml"), *arguments], [seen])
    if seen.failure is None and (status != pytest.ExitCode.OK or not seen.passed):
        seen.failure = {"case": tests, "message": "no test passed: pytest found none, or skipped all"}
    return {"ok": seen.failure is None, "passed": seen.passed, **(seen.failure or {})}


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever the tests find, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson")
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--file", type=Path, help="a reader's file with the lesson's function")
    parser.add_argument("--tests", help="another test file, or FILE::TEST (default: the lesson's)")
    args = parser.parse_args(arguments)
    kernels, module = (importlib.import_module(n) for n in ("kernels", f"kernels.{args.lesson}"))
    if args.file:
        for place in (kernels, module):
            setattr(place, FUNCTIONS[args.lesson], load_function(args.lesson, args.file))
    report = {"check": "tests", "mistakes": []}
    write(args.out, **report)
    if args.tests:
        report |= run(args.tests, [])
    else:
        report |= run(
            str(ROOT / f"tests/kernels/test_{args.lesson}.py"), ["-k", f"not ({OTHERS[args.lesson]})"]
        )
    write(args.out, **({"ok": True} if report["ok"] and not args.tests else report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
