"""The judge, or tests, on the project in the current folder: what scripts/token_edit_runs.py runs in a child.

    python -m scripts.token_edit_child judge l2_paged --out report.json
    python -m scripts.token_edit_child tests tests/kernels/test_merge_states.py --out report.json

The report has "last", the case or the test under way, while it runs; at the end also "result".
"""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from scripts.drill_child import write


def judge(say: Callable, kernel: str) -> tuple[int, str] | None:
    """(number of the first of the judge's cases that differs, how), or None."""
    try:
        import kernels  # noqa: F401  an edit may make it impossible
        from scripts import token_edit_judge
    except Exception as error:
        return 0, f"import raised {type(error).__name__}"
    return token_edit_judge.judge(kernel, say)


def first_failure(say: Callable, files: list[str], first: str | None) -> str | None:
    """The first test that fails, or None; those whose id has `first` go first."""
    import pytest

    class Plugin:
        """Puts the kernel's own tests first, and notes the first that fails."""

        failed: str | None = None

        def pytest_collection_modifyitems(self, items):
            items.sort(key=lambda item: first is not None and first not in item.nodeid)

        def pytest_runtest_logstart(self, nodeid):
            say(nodeid)

        def pytest_runtest_logreport(self, report):
            if report.failed:
                self.failed = self.failed or report.nodeid

        def pytest_collectreport(self, report):
            if report.failed:
                self.failed = self.failed or report.nodeid

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none of them is needed here, and they take long
    unwanted = ("-p", "no:cacheprovider", "-p", "no:unraisableexception", "--tb=no")
    for file in files:  # most edits do not get past the first one
        plugin = Plugin()
        status = pytest.main(["-x", "-q", "-m", "not slow", *unwanted, file], [plugin])
        if plugin.failed or status:
            return plugin.failed or f"pytest ended with status {int(status)}"
    return None


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever is found, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("judge", "tests"))
    parser.add_argument("names", nargs="+", help="the kernel, or test files")
    parser.add_argument("--first", help="tests whose id has this go first")
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    args = parser.parse_args(arguments)
    last = None

    def say(now) -> None:
        nonlocal last
        last = now
        write(args.out, last=now)

    run = partial(judge, say, args.names[0])
    if args.what == "tests":
        run = partial(first_failure, say, args.names, args.first)
    result = run()
    write(args.out, last=last, result=result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
