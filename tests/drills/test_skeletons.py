"""Skeletons: what the kernels give, solutions only add lines, hints that do not give them away."""

import ast
import re
import shutil

import pytest

from scripts import drill_levels, skeletons
from scripts.listing import MARK, REGION, PageError
from scripts.mutant_files import LESSONS, PARTS

LEVELS = [(lesson, level) for lesson in LESSONS for level in skeletons.LEVELS]
levels = pytest.mark.parametrize(("lesson", "level"), LEVELS)


def _rows(text: str) -> list[str]:
    """The lines of a kernel's file or of a skeleton that count: no markers, no TODO, nothing empty."""
    rows = [MARK.sub("", row).rstrip() for row in text.splitlines() if not REGION.match(row.strip())]
    return [row for row in rows if row and not re.match(r"\s*# (TODO: |  )", row)]


def test_every_lesson_has_drills_and_their_files_are_what_the_kernels_give(monkeypatch, capsys):
    assert set(skeletons.lessons()) == set(LESSONS + PARTS)
    monkeypatch.setattr("sys.argv", ["skeletons.py", "--check"])
    assert skeletons.main() == 0, capsys.readouterr().err


@levels
def test_the_solution_only_adds_lines(lesson, level):
    """Read from the files alone: whatever made the skeleton, its lines are the kernel's, in their order."""
    solution = iter(_rows((skeletons.ROOT / f"kernels/{lesson}.py").read_text(encoding="utf-8")))
    skeleton = _rows((skeletons.ROOT / skeletons.load(lesson, level).path).read_text(encoding="utf-8"))
    missing = [
        row for row in skeleton if row not in solution
    ]  # an iterator: each search goes on from the last
    assert not missing, f"not in the solution after the lines before it: {missing[0]!r}"
    left = sum(1 for _ in solution)
    assert left or len(skeleton) < len(_rows((skeletons.ROOT / f"kernels/{lesson}.py").read_text()))


@levels
def test_a_skeleton_is_a_file_that_says_what_to_do(lesson, level):
    text = (skeletons.ROOT / skeletons.load(lesson, level).path).read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)) and text.count("# TODO: ") >= 1
    assert "#:" not in text and "region" not in text
    assert "kernels.ops" not in text and "torch.library" not in text
    assert max(len(row) for row in text.splitlines() if skeletons.TODO.match(row)) <= 100
    assert "\n\n\n\n" not in text


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_level_asks_for_all_that_the_one_before_asks_for(lesson):
    asked = [
        {no for _, rows in skeletons.load(lesson, level).solution() for no, _ in rows}
        for level in skeletons.LEVELS
    ]
    assert asked[0] < asked[1] < asked[2]


@levels
def test_hints_lead_there_and_do_not_give_it_away(lesson, level):
    """As many in each language, and no line of the solution among them."""
    zh, en = (skeletons.hints(lesson, level, lang) for lang in skeletons.LANGS)
    assert len(zh) == len(en) >= 4 and not any(hint.isascii() for hint in zh)
    lines = {text.strip() for _, rows in skeletons.load(lesson, level).solution() for _, text in rows}
    code = [line for line in lines if len(line) > 30 and not line.startswith(("#", '"""'))]
    given = [line for line in code for hint in (*zh, *en) if line in hint]
    assert not given


def test_hints_of_a_level_are_its_own_and_then_those_of_the_easier_ones():
    loop, kernel = (skeletons.hints("l2_paged_decode", level, "en") for level in ("loop", "kernel"))
    assert kernel[-len(loop) :] == loop and len(kernel) > len(loop)


TABLE = """
drop = []
[[loop.cut]]
lines = "{}"
[[loop.hints]]
zh = "提示"
en = "hint"
"""


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("region nothing", "no section 'nothing'"),
        ("#: nothing", "no line named 'nothing'"),
        ("l_i = 1.0", "has the line 'l_i = 1.0' 0 times; wanted once"),
        ("import torch .. l_i = 0.0 .. #: lse", "wanted FIRST .. LAST"),
        ("#: lse .. #: walk", "wanted FIRST .. LAST"),
    ],
)
def test_a_table_that_no_longer_fits_is_an_error(lines, message, tmp_path, monkeypatch):
    (tmp_path / "snippets/drills").mkdir(parents=True)
    shutil.copytree(skeletons.ROOT / "kernels", tmp_path / "kernels")
    table = TABLE.format(lines)
    (tmp_path / "snippets/drills/online_softmax.toml").write_text(table, encoding="utf-8")
    monkeypatch.setattr(skeletons, "ROOT", tmp_path)
    monkeypatch.setattr(drill_levels, "FOLDER", tmp_path / "snippets/drills")
    with pytest.raises(PageError, match=rf"^snippets/drills/online_softmax.toml, loop: .*{message}"):
        skeletons.load("online_softmax", "loop")


def test_what_is_not_there_is_named():
    with pytest.raises(PageError, match=r"no drill 'l9'; wanted one of: .*l2_paged_decode"):
        skeletons.load("l9", "loop")
    with pytest.raises(PageError, match="no level 'all'; wanted one of: loop, kernel, launcher"):
        skeletons.load("l2_paged_decode", "all")
