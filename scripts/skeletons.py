"""Skeletons of the drills: a lesson's kernel with parts taken out, so that the solution only adds lines.

    python scripts/skeletons.py            write snippets/drills/*.py
    python scripts/skeletons.py --check    fail where such a file is not what would be written

snippets/drills/<lesson>.toml says what is taken out of kernels/<lesson>.py, or of the `file` of a level, and
has the hints. `drop` is what the drill, or a level, does without; [[<level>.cut]] is what the reader writes
at a level, with the TODO left in its place. Lines are given by the markers that the kernel has:
"region page_loop", "#: loop", the text of a line alone, or "FIRST .. LAST" from the first line of one to the
last of the other.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # `scripts`, from anywhere; after a child's own folder with its kernels/

from scripts.drill_levels import FOLDER, file_of, lessons, level_table, levels, tables
from scripts.generated import write_or_check
from scripts.listing import PageError, Source, Span, read_source

LEVELS = ("loop", "kernel", "launcher")  # of a lesson that is one kernel: each asks for more than the last
LANGS = ("zh", "en")
TODO = re.compile(r"\s*# (TODO: |  )")  # a line of a TODO; other comments have one space


@dataclass(frozen=True)
class Skeleton:
    """One level of a lesson.

    cuts: (lines of the kernel's file, TODO or "") that the reader writes, from top to bottom; drops: lines
    that the drill does without. hints: this level's own, {language: Markdown}.
    """

    lesson: str
    level: str
    source: Source
    cuts: tuple[tuple[Span, str], ...]
    drops: tuple[Span, ...]
    hints: tuple[dict[str, str], ...]

    @property
    def path(self) -> str:
        """The skeleton's file, from the root."""
        level = "" if self.level == levels(self.lesson)[0] else f"_{self.level}"
        return f"snippets/drills/{self.lesson}{level}.py"

    def text(self) -> str:
        """The skeleton."""
        return self._without((*self.drops, *(span for span, _ in self.cuts)), dict(self._todos()))

    def answer(self) -> str:
        """The solution, as this level would have it."""
        return self._without(self.drops, {})

    def solution(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """(path, numbered lines) of each part that the reader writes."""
        lines = self.source.lines
        spans = (span for span, _ in self.cuts)
        return [(self.source.path, [(n, lines[n]) for n in range(a, b + 1) if n in lines]) for a, b in spans]

    def _todos(self) -> Iterator[tuple[int, list[str]]]:
        """The comment that stands in place of each cut, by its first line."""
        for (no, _), todo in self.cuts:
            row = self.source.lines[no]
            indent = row[: len(row) - len(row.lstrip())]
            first, *rest = todo.splitlines() or [""]
            yield no, [f"{indent}# TODO: {first}", *(f"{indent}#   {line}" for line in rest)] if todo else []

    def _without(self, spans: tuple[Span, ...], todos: dict[int, list[str]]) -> str:
        """The file without some of its lines, comments in place of others."""
        gone = {no for first, last in spans for no in range(first, last + 1)}
        rows: list[str] = []
        for no, row in self.source.lines.items():
            rows += todos.get(no, [])
            if no not in gone:
                # A comment of the file's own is not a part of the TODO above it.
                rows += ["", row] if rows and TODO.match(rows[-1]) and row.lstrip().startswith("#") else [row]
        text = "\n".join(rows).strip() + "\n"
        # What stood around a part leaves too many blank lines: two, or one within a function.
        return re.sub(r"\n{3,}(?= )", "\n\n", re.sub(r"\n{4,}", "\n\n\n", text))


def load(lesson: str, level: str) -> Skeleton:
    """A level of a lesson; PageError naming what is wrong with its table or its kernel."""
    path = f"snippets/drills/{lesson}.toml"
    table = {"drop": tables(lesson).get("drop", [])} | level_table(lesson, level)
    try:
        source = read_source(ROOT, file_of(lesson, level))
        cuts = sorted((_span(source, cut["lines"]), cut.get("todo", "").strip()) for cut in table["cut"])
        drops = tuple(_span(source, lines) for lines in table["drop"])
        hints = tuple({lang: hint[lang].strip() for lang in LANGS} for hint in table["hints"])
    except PageError as error:
        raise PageError(f"{path}, {level}: {error}") from error
    except KeyError as error:
        raise PageError(f"{path}, {level}: no {error}") from error
    return Skeleton(lesson, level, source, tuple(cuts), drops, hints)


def _span(source: Source, lines: str) -> Span:
    """First and last line of what a table names."""
    ends = [_marked(source, marker) for marker in lines.split(" .. ")]
    first, last = ends[0][0], ends[-1][1]
    if len(ends) > 2 or first > last:
        raise PageError(f"{lines!r} is lines {first} to {last} of {source.path}; wanted FIRST .. LAST")
    while not source.lines.get(first):  # a marker's own line, or a blank one
        first += 1
    return first, last


def _marked(source: Source, marker: str) -> Span:
    if marker.startswith("region "):
        shown = source.section(marker.removeprefix("region "))
        return shown[0], shown[-1]
    if marker.startswith("#: "):
        return source.mark(marker.removeprefix("#: "))
    found = [no for no, text in source.lines.items() if text.strip() == marker]
    if len(found) != 1:
        raise PageError(f"{source.path} has the line {marker!r} {len(found)} times; wanted once")
    return found[0], found[0]


def hints(lesson: str, level: str, lang: str) -> list[str]:
    """The hints of a level as Markdown: its own, then those of the easier levels that it contains."""
    one, names = load(lesson, level), levels(lesson)
    easier = (load(lesson, name) for name in reversed(names[: names.index(level) + 1]))
    return [hint[lang] for part in easier if part.source.path == one.source.path for hint in part.hints]


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file differs")
    check = parser.parse_args().check
    try:
        all_levels = [load(lesson, level) for lesson in lessons() for level in levels(lesson)]
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    files = {ROOT / one.path: one.text() for one in all_levels}
    return write_or_check(files, FOLDER.glob("*.py"), check, "python scripts/skeletons.py")


if __name__ == "__main__":
    sys.exit(main())
