"""docs/zh and docs/en are one book: same pages, sections, listings, numbers and folded answers."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mkdocs.utils.meta import get_data

from scripts.macros import MACRO, walk

DOCS = Path(__file__).resolve().parents[2] / "docs"
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*(?:\{[^}]*#([\w-]+)[^}]*\})?\s*$")
FOLD = re.compile(r"^\s*(\?\?\?\+?|!!!)\s+([\w-]+)")


@dataclass
class Section:
    """What must be the same in both languages between one heading and the next."""

    level: int
    anchor: str
    listings: list[tuple[str, str]] = field(default_factory=list)
    macros: Counter[str] = field(default_factory=Counter)
    folds: list[tuple[str, str]] = field(default_factory=list)


def files(lang: str, suffix: str) -> list[str]:
    return sorted(file.relative_to(DOCS / lang).as_posix() for file in (DOCS / lang).rglob(f"*{suffix}"))


def outline(lang: str, name: str) -> tuple[list[Section], dict]:
    markdown, meta = get_data((DOCS / lang / name).read_text(encoding="utf-8"))
    sections = [Section(0, "")]
    for line in walk(markdown):
        if line.kind == "text" and (heading := HEADING.match(line.text)):
            sections.append(Section(len(heading[1]), heading[3] or ""))
            assert heading[3] or len(heading[1]) not in (2, 3), (
                f"docs/{lang}/{name}: '{line.text}' needs an explicit anchor, such as {{#page-loop}}"
            )
        elif line.kind in ("listing", "reading"):
            sections[-1].listings.append((line.kind, line.spec))
        elif fold := FOLD.match(line.text):
            sections[-1].folds.append((fold[1], fold[2]))
        sections[-1].macros.update(f"{kind}:{macro}" for kind, macro in MACRO.findall(line.text))
    return sections, meta


@pytest.mark.parametrize("suffix", [".md", ".ipynb", ".py"])
def test_same_files(suffix: str) -> None:
    assert files("zh", suffix) == files("en", suffix)


@pytest.mark.parametrize("name", files("zh", ".md"))
def test_same_sections_listings_and_numbers(name: str) -> None:
    zh, zh_meta = outline("zh", name)
    en, en_meta = outline("en", name)
    assert [(s.level, s.anchor) for s in zh] == [(s.level, s.anchor) for s in en]
    for ours, theirs in zip(zh, en, strict=True):
        assert ours == theirs, f"{name}, section {ours.anchor!r}"
    assert zh_meta.get("kernel") == en_meta.get("kernel")
    assert set(zh_meta) == set(en_meta)


@pytest.mark.parametrize("name", files("zh", ".ipynb"))
def test_same_cells(name: str) -> None:
    """Notebooks differ in their prose, and in nothing that runs or was printed."""
    zh, en = (json.loads((DOCS / lang / name).read_text(encoding="utf-8")) for lang in ("zh", "en"))
    assert [cell["cell_type"] for cell in zh["cells"]] == [cell["cell_type"] for cell in en["cells"]]
    for ours, theirs in zip(zh["cells"], en["cells"], strict=True):
        if ours["cell_type"] == "code":
            assert code_of(ours) == code_of(theirs)


def code_of(cell: dict) -> str:
    """A cell's code without its comments, which are prose."""
    lines = (re.sub(r"\s*#(?![^'\"]*['\"]).*$", "", line) for line in "".join(cell["source"]).splitlines())
    return "\n".join(line for line in lines if line.strip())
