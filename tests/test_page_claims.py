"""Every test that a lesson names exists, and every line that a pitfall changes is a line of the kernels."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "docs").glob("*/lessons/*.md"))
PATH = re.compile(r"tests/[\w/]+\.py")
# A path and what it names in that file, through a class or not; or a bare test name.
IN_FILE = re.compile(r"(tests/[\w/]+\.py)::((?:Test\w+::)?test_\w+)")
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BARE = re.compile(r"`(?:Test\w+::)?(test_\w+)`")


@cache
def names_in(path: Path) -> frozenset[str]:
    """Names of the tests of a file, as pytest writes them: "test_x", "TestA::test_x"."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef):
                names.add(inner.name if inner is node else f"{node.name}::{inner.name}")
    return frozenset(name for name in names if name.rpartition("::")[2].startswith("test_"))


@cache
def all_test_names() -> frozenset[str]:
    names = (names_in(path) for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(name.rpartition("::")[2] for name in frozenset().union(*names))


def named_tests(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """[(path, test)] and bare test names."""
    return IN_FILE.findall(text), BARE.findall(text)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.relative_to(ROOT / "docs").as_posix())
def test_the_tests_it_names_exist(lesson: Path) -> None:
    text = lesson.read_text(encoding="utf-8")
    in_file, bare = named_tests(text)
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []
    assert [(path, test) for path, test in in_file if test not in names_in(ROOT / path)] == []
    assert [name for name in bare if name not in all_test_names()] == []
    assert in_file or bare  # else the patterns are wrong


def code_of(line: str) -> str:
    """A line without its indent and its comment."""
    return re.sub(r"\s*#.*", "", line).strip()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.relative_to(ROOT / "docs").as_posix())
def test_the_lines_its_pitfalls_change_exist(lesson: Path) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "kernels").glob("*.py")]
    ours = {code_of(line) for source in sources for line in source.splitlines()}
    diffs = DIFF.findall(lesson.read_text(encoding="utf-8"))
    removed = [line[1:] for diff in diffs for line in diff.splitlines() if line.startswith("-")]
    assert [line for line in removed if code_of(line) not in ours] == []
