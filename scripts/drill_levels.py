"""The drills that there are: lessons, levels, and the file of kernels/ that each is about.

A library for scripts/skeletons.py, and for what runs without a lexer. The tables are snippets/drills/*.toml.
"""

import tomllib
from pathlib import Path

from scripts.marks import PageError

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "snippets/drills"


def lessons() -> list[str]:
    """Every lesson that has drills."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def levels(lesson: str) -> list[str]:
    """The levels of a lesson, easiest first; PageError if it has no drill."""
    return [name for name, table in tables(lesson).items() if isinstance(table, dict)]


def level_table(lesson: str, level: str) -> dict:
    """The table of a level; PageError if there is none."""
    if level not in levels(lesson):
        wanted = f"wanted one of: {', '.join(levels(lesson))}"
        raise PageError(f"snippets/drills/{lesson}.toml has no level {level!r}; {wanted}")
    return tables(lesson)[level]


def file_of(lesson: str, level: str) -> str:
    """The file of kernels/ that a level is about, from the root."""
    return level_table(lesson, level).get("file", f"kernels/{lesson}.py")


def tables(lesson: str) -> dict:
    """All that the table of a lesson says; PageError if there is none."""
    path = FOLDER / f"{lesson}.toml"
    if not path.is_file():
        raise PageError(f"no drill {lesson!r}; wanted one of: {', '.join(lessons())}")
    return tomllib.loads(path.read_text(encoding="utf-8"))
