"""A drill that is one file of a lesson: its checks (scripts/part_checks.py) and its tests, run in a child.

    python -m scripts.drill_parts l1_paged_cache --part kernels/l1_write_kv.py --out report.json \\
        --file mine/l1_paged_cache.py [--tests]

The functions and classes of --file stand in for those of --part. With --tests, the lesson's test file runs
instead of the small cases.
"""

import argparse
import importlib
import sys
from functools import partial
from pathlib import Path

import tests.helpers.mode  # noqa: F401, it says where triton runs, before anything is decorated
from scripts.drill_cases import parts_of
from scripts.drill_child import write
from scripts.drill_tests import ROOT, run
from scripts.mutant_files import PARTS
from scripts.part_checks import check, in_place_of, read
from tests.helpers.mode import ON_GPU


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever the checks find, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=PARTS)
    parser.add_argument("--part", required=True, help="the file of kernels/ that the other stands in for")
    parser.add_argument("--file", type=Path, required=True, help="the reader's file, or a mutant")
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--tests", action="store_true", help="run the lesson's test file")
    parser.add_argument("--gpu", action="store_true", help="wants a GPU")
    args = parser.parse_args(arguments)
    if args.gpu and not ON_GPU:
        message = "torch finds no CUDA GPU here; without --gpu the check runs in the interpreter"
        write(args.out, ok=False, check="gpu", mistakes=[], message=message)
        return 0
    part = parts_of(args.lesson)[args.part]
    solution = importlib.import_module(args.part.removesuffix(".py").replace("/", "."))
    other, failure = read(args.file, part)
    if failure:
        write(args.out, **failure)
    elif args.tests:
        write(args.out, check="tests", mistakes=[])
        with in_place_of(solution, other):
            choice = ["-k", f"not ({part.without})"] if part.without else []
            report = run(str(ROOT / part.tests), choice)
        write(args.out, **({"ok": True} if report["ok"] else report | {"check": "tests", "mistakes": []}))
    else:
        say = partial(write, args.out)
        write(args.out, **check(args.lesson, args.part, part, solution, other, say))
    return 0


if __name__ == "__main__":
    sys.exit(main())
