"""Known mistakes as real wrong kernels: list them, show one as a diff, run one under the checks.

    python scripts/mutants.py list
    python scripts/mutants.py show l2_paged_decode/interleaved_heads
    python scripts/mutants.py run l2_paged_decode/interleaved_heads    # exit status 1: caught
    python scripts/mutants.py run l2_paged_decode                      # the solution: must pass

A mutant (snippets/mutants/<lesson>/<pitfall>.toml) is an edit of the kernel's own file, so it cannot drift:
the text that it replaces must be there exactly once. It runs in a child process, on a copy of kernels/, with
a limit of time and of memory (scripts/mutant_checks.py).
"""

import argparse
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # `scripts`, from anywhere; after a child's own folder with its kernels/

from scripts.listing import MARK

FOLDER = ROOT / "snippets/mutants"
LESSONS = ("online_softmax", "l2_paged_decode", "l3_split_kv_decode")
SYMPTOMS = ("values", "nan", "unwritten", "silent", "crash", "refused")
CHECKS = ("values", "poison", "tracer", "bad_table", "big_cache", "compile")  # in the order of a run
KEYS = {"file", "section", "symptom", "caught_by", "name", "edits"}
TIME_LIMIT_S = 120


class MutantError(ValueError):
    """A mutant that is not there, is badly written, or no longer fits its kernel."""


@dataclass(frozen=True)
class Mutant:
    """One wrong version of a kernel.

    id: <lesson>/<pitfall>. file: what it edits, from the root. section: anchor of the lesson page that
    explains it. symptom: one of SYMPTOMS; caught_by: the first of CHECKS that fails. name: one line by
    language. edits: (find, replace), whole lines.
    """

    id: str
    file: str
    section: str
    symptom: str
    caught_by: str
    name: dict[str, str]
    edits: tuple[tuple[str, str], ...]

    @property
    def lesson(self) -> str:
        return self.id.partition("/")[0]

    def apply(self, text: str) -> str:
        """The text of `file` with every edit made; MutantError unless each `find` is there exactly once."""
        for find, replace in self.edits:
            count = text.count(find)
            if count != 1:
                found = f"{self.file} has this text {count} times; wanted once"
                raise MutantError(f"snippets/mutants/{self.id}.toml: {found}:\n{find}")
            text = text.replace(find, replace)
        return text

    def diff(self) -> str:
        """The edit as a unified diff, without the names of lines (`#: name`)."""
        before = (ROOT / self.file).read_text(encoding="utf-8")
        old, new = ([MARK.sub("", row) for row in t.splitlines()] for t in (before, self.apply(before)))
        rows = difflib.unified_diff(old, new, f"a/{self.file}", f"b/{self.file}", lineterm="")
        return "\n".join(rows) + "\n"


def load(mutant_id: str) -> Mutant:
    """The mutant of this id; MutantError naming what is wrong."""
    path = FOLDER / f"{mutant_id}.toml"
    if not path.is_file():
        raise MutantError(f"no mutant {mutant_id!r}; wanted one of: {', '.join(all_ids())}")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    wrong = KEYS ^ data.keys()
    if wrong:
        raise MutantError(
            f"snippets/mutants/{mutant_id}.toml: missing or unknown: {', '.join(sorted(wrong))}"
        )
    for key, known in (("symptom", SYMPTOMS), ("caught_by", CHECKS)):
        if data[key] not in known:
            wanted = f"wanted one of {', '.join(known)}"
            raise MutantError(f"snippets/mutants/{mutant_id}.toml: {key} is {data[key]!r}; {wanted}")
    data["edits"] = tuple((edit["find"], edit["replace"]) for edit in data["edits"])
    return Mutant(mutant_id, **data)


def all_ids(lesson: str | None = None) -> list[str]:
    """The ids of all mutants, or of one lesson's, in the order of the lessons."""
    lessons = LESSONS if lesson is None else (lesson,)
    return [f"{name}/{path.stem}" for name in lessons for path in sorted((FOLDER / name).glob("*.toml"))]


def check(lesson: str, mutant: Mutant | None = None, file: Path | None = None) -> dict:
    """Run the checks of a lesson on its solution, on a mutant of it, or on the function in a reader's file.

    Returns {"ok", "lesson", "check", "case", "message", "mistakes", ...}: check is the one that failed, or
    "timeout", "died" or "import"; mistakes are the ids of the known mistakes whose symptoms these are.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "kernels", f"{folder}/kernels", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
        if mutant:
            source = (ROOT / mutant.file).read_text(encoding="utf-8")
            (Path(folder) / mutant.file).write_text(mutant.apply(source), encoding="utf-8")
        arguments = [lesson, *(["--file", str(file.resolve())] if file else [])]
        report = _child("scripts.mutant_checks", arguments, Path(folder), {"TRITON_INTERPRET": "1"})
        if report["ok"] and lesson != "online_softmax":  # it has no dot
            report = _child("scripts.mutant_compile", arguments, Path(folder), {"TRITON_INTERPRET": "0"})
    return {"lesson": lesson} | report


def _child(module: str, arguments: list[str], folder: Path, environment: dict[str, str]) -> dict:
    """Run a module that writes its progress and its report to a file; what it said, or how it ended."""
    out = folder / "report.json"
    paths = os.pathsep.join([str(folder), str(ROOT)])
    env = (
        os.environ
        | environment
        | {
            "PYTHONPATH": paths,
            "TRITON_CACHE_DIR": str(folder / "cache"),
            "CUDA_VISIBLE_DEVICES": "",  # a GPU is not needed, and its driver takes addresses
        }
    )
    command = [sys.executable, "-m", module, *arguments, "--out", str(out)]
    try:
        run = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return _progress(out) | {
            "ok": False, "check": "timeout", "mistakes": [],
            "message": f"not done after {TIME_LIMIT_S} s: does a loop never end?",
        }  # fmt: skip
    report = _progress(out)
    if run.returncode == 0 and "ok" in report:
        return report
    how = f"exit status {run.returncode}"
    if run.returncode < 0:
        how = f"killed by {signal.Signals(-run.returncode).name}"
    last = run.stderr.strip().splitlines()[-1:] or [""]
    if report.get("check") == "big_cache" and -run.returncode in (signal.SIGSEGV, signal.SIGBUS):
        # Values, guards and accesses were right just before: only the distance of the page is new.
        return report | {
            "ok": False, "mistakes": ["l2_paged_decode/int32_page_offset"],
            "message": f"the process died ({how}) on a page whose offset passes 2**31 elements",
        }  # fmt: skip
    return {"check": "died", "case": report.get("case", ""), "ok": False, "mistakes": [],
            "message": f"the process died ({how}): {re.sub(r'/[^ ]*/', '', last[0])}"}  # fmt: skip


def _progress(out: Path) -> dict:
    """The last whole report in the file: {} before the first."""
    return json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every mutant, what catches it, and its name")
    show = commands.add_parser("show", help="one mutant as a unified diff of the kernel's file")
    show.add_argument("mutant", help="<lesson>/<pitfall>, as `list` prints it")
    run = commands.add_parser("run", help="the checks on a mutant; status 0 if all pass, 1 if one fails")
    run.add_argument("mutant", help="<lesson>/<pitfall>, or a lesson: its solution")
    args = parser.parse_args()
    try:
        if args.command == "list":
            for mutant in map(load, all_ids()):
                print(f"{mutant.id:45} {mutant.caught_by:10} {mutant.name['en']}")
        elif args.command == "show":
            print(load(args.mutant).diff(), end="")
        else:
            mutant = None if args.mutant in LESSONS else load(args.mutant)
            report = check(mutant.lesson if mutant else args.mutant, mutant)
            print(json.dumps(report, indent=1, ensure_ascii=False))
            return 0 if report["ok"] else 1
    except MutantError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
