"""Known mistakes as wrong kernels: each is an edit of a kernel's own file, so it cannot drift.

The text that a mutant (snippets/mutants/<lesson>/<pitfall>.toml) replaces must be there exactly once. What
the checks say of each is committed (snippets/generated/mutants.json). A library for scripts/mutants.py, the
drills and the pages; it needs the standard library alone.
"""

import difflib
import json
import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from scripts.marks import MARK

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "snippets/mutants"
LESSONS = ("online_softmax", "l2_paged_decode", "l3_split_kv_decode")  # with drills: mistakes are diagnosed
PARTS = ("l0_shapes", "l1_paged_cache")  # with drills of one file each: a mistake gives what its mutant does
TESTED = ("l7_fast_decode",)  # without: a mutant names the test that catches it
SYMPTOMS = ("values", "nan", "unwritten", "silent", "crash", "refused")
# In this order; the first is that of lessons in parts.
CHECKS = ("cases", "values", "poison", "tracer", "bad_table", "big_cache", "compile", "tests")
KEYS = {"file", "section", "symptom", "caught_by", "name", "edits"}
RECORD = ROOT / "snippets/generated/mutants.json"
NUMBER = re.compile(r"\d+\.\d+(?:e[-+]\d+)?|\d+e[-+]\d+")


class MutantError(ValueError):
    """A mutant that is not there, is badly written, or no longer fits its kernel."""


@dataclass(frozen=True)
class Mutant:
    """One wrong version of a kernel.

    id: <lesson>/<pitfall>. file: what it edits, from the root. section: anchor of the lesson page that
    explains it. symptom: one of SYMPTOMS; caught_by: the first of CHECKS that fails. name: one line by
    language. edits: (find, replace), whole lines. test: where there is no drill, the test that catches it.
    """

    id: str
    file: str
    section: str
    symptom: str
    caught_by: str
    name: dict[str, str]
    edits: tuple[tuple[str, str], ...]
    test: str = ""

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

    def diff(self, context: int = 3) -> str:
        """The edit as a unified diff, without the names of lines (`#: name`)."""
        before = (ROOT / self.file).read_text(encoding="utf-8")
        old, new = ([MARK.sub("", row) for row in t.splitlines()] for t in (before, self.apply(before)))
        rows = difflib.unified_diff(old, new, f"a/{self.file}", f"b/{self.file}", lineterm="", n=context)
        return "\n".join(rows) + "\n"

    def changes(self) -> str:
        """The lines that are taken out and put in, with an empty line between two places."""
        _, *places = re.split(r"^@@.*\n", self.diff(0), flags=re.MULTILINE)
        return "\n".join(places)


def load(mutant_id: str) -> Mutant:
    """The mutant of this id; MutantError naming what is wrong."""
    path = FOLDER / f"{mutant_id}.toml"
    if not path.is_file():
        raise MutantError(f"no mutant {mutant_id!r}; wanted one of: {', '.join(every_id())}")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    wrong = (KEYS | {"test"} if data.get("caught_by") == "tests" else KEYS) ^ data.keys()
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
    """The ids of one lesson's mutants, or of all lessons with drills, in the order of the lessons."""
    return _ids(LESSONS + PARTS if lesson is None else (lesson,))


def every_id() -> list[str]:
    """The ids of all mutants, also of lessons without a drill."""
    return _ids(LESSONS + PARTS + TESTED)


def _ids(lessons: tuple[str, ...]) -> list[str]:
    return [f"{name}/{path.stem}" for name in lessons for path in sorted((FOLDER / name).glob("*.toml"))]


def recorded() -> dict[str, dict]:
    """{id: report of its run} as committed; {} where there is none."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


def is_same(report: dict, other: dict) -> bool:
    """Whether two reports say the same, a few digits of measured numbers apart: those vary by CPU."""
    old, new = (json.dumps(one, sort_keys=True) for one in (report, other))
    if NUMBER.sub("", old) != NUMBER.sub("", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-3) for a, b in pairs)
