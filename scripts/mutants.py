"""Known mistakes as real wrong kernels: list them, show one as a diff, run one under the checks.

    python scripts/mutants.py list --lang zh
    python scripts/mutants.py show l2_paged_decode/interleaved_heads
    python scripts/mutants.py run l2_paged_decode/interleaved_heads    # exit status 1: caught
    python scripts/mutants.py run l2_paged_decode                      # the solution: must pass
    python scripts/mutants.py record    # what `run` finds of each, as the pages print it
    python scripts/mutants.py record --check

A mutant is an edit of the kernel's own file (scripts/mutant_files.py). It runs in a child process, on a copy
of kernels/, with a limit of time and of memory (scripts/drill_run.py).
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # `scripts`, from anywhere

from scripts import mutant_files
from scripts.diagnose import describe
from scripts.drill_run import check
from scripts.generated import write_or_check
from scripts.mutant_files import LESSONS, PARTS, MutantError, every_id, is_same, load, recorded
from scripts.sandbox import Sandbox, SandboxError


def record(check_only: bool) -> int:
    """Run all mutants; write what was found, or compare it with what is committed. The exit status."""
    with Sandbox() as box:
        found = {mutant.id: check(box, mutant.lesson, mutant) for mutant in map(load, every_id())}
    old = recorded()
    kept = {i: old[i] if i in old and is_same(old[i], report) else report for i, report in found.items()}
    rows = ",\n".join(f"{json.dumps(i)}: {json.dumps(report)}" for i, report in kept.items())
    files = {mutant_files.RECORD: f"{{\n{rows}\n}}\n"}
    return write_or_check(files, [], check_only, "python scripts/mutants.py record")


def run(name: str, lang: str) -> int:
    """Check a mutant, or a lesson's solution, and print what was found; the exit status."""
    mutant = None if name in LESSONS + PARTS else load(name)
    with Sandbox() as box:
        report = check(box, mutant.lesson if mutant else name, mutant)
    print(describe(report, lang))
    return 0 if report["ok"] else 1


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listed = commands.add_parser("list", help="every mutant, what catches it, and its name")
    show = commands.add_parser("show", help="one mutant as a unified diff of the kernel's file")
    show.add_argument("mutant", help="<lesson>/<pitfall>, as `list` prints it")
    one = commands.add_parser("run", help="the checks on a mutant; status 0 if all pass, 1 if one fails")
    one.add_argument("mutant", help="<lesson>/<pitfall>, or a lesson: its solution")
    for command in (listed, one):
        command.add_argument("--lang", choices=("zh", "en"), default="en", help="default: en")
    every = commands.add_parser("record", help="write snippets/generated/mutants.json; takes minutes")
    every.add_argument("--check", action="store_true", help="write nothing; fail where it is another")
    args = parser.parse_args()
    try:
        if args.command == "list":
            for mutant in map(load, every_id()):
                print(f"{mutant.id:45} {mutant.caught_by:10} {mutant.name[args.lang]}")
        elif args.command == "show":
            print(load(args.mutant).diff(), end="")
        elif args.command == "run":
            return run(args.mutant, args.lang)
        else:
            return record(args.check)
    except (MutantError, SandboxError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
