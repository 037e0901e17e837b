"""A drill that is one kernel: its checks (scripts/mutant_checks.py), run in a child process.

    python -m scripts.drill_kernel l2_paged_decode --out report.json [--file mine/l2_paged_decode.py]

Where `kernels` is imported from decides what is checked; --file names a file whose function is taken in its
place. The report is written after every step, so that a process that dies leaves the last.
"""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

import tests.helpers.mode  # noqa: F401, it says where triton runs, before anything is decorated
from scripts.drill_child import FUNCTIONS, write
from scripts.mutant_checks import PRINTED_ROWS, Checks, first_rows, read
from scripts.mutant_compile import recorded_launches
from tests.helpers.mode import ON_GPU


class PrintedFile:
    """What this process has printed: its stdout is a file (scripts/sandbox.py)."""

    def __init__(self, stdout: Path) -> None:
        self.stdout = stdout

    def size(self) -> int:
        """How many bytes there are."""
        sys.stdout.flush()
        return os.fstat(sys.__stdout__.fileno()).st_size

    def rows(self, begin: int, end: int) -> list[str]:
        """The first lines of a part."""
        if end <= begin or not self.stdout.is_file():
            return []
        with self.stdout.open("rb") as file:
            file.seek(begin)
            return first_rows(file.read(min(end - begin, 100 * PRINTED_ROWS)).decode(errors="replace"))


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever the checks find, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=FUNCTIONS)
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--file", type=Path, help="a reader's file with the lesson's function")
    parser.add_argument("--gpu", action="store_true", help="wants a GPU, and looks at results alone")
    args = parser.parse_args(arguments)
    if args.gpu and not ON_GPU:
        message = "torch finds no CUDA GPU here; without --gpu the check runs in the interpreter"
        write(args.out, ok=False, check="gpu", mistakes=[], message=message)
        return 0
    function, failure = read(args.lesson, args.file)
    if failure:
        write(args.out, **failure)
        return 0
    output = PrintedFile(args.out.with_name("stdout"))
    report = Checks(args.lesson, function, partial(write, args.out), output).run()
    if report["ok"] and not ON_GPU:
        report["launches"] = recorded_launches(args.lesson, function)
    write(args.out, **report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
