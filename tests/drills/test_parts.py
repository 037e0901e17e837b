"""Drills of a file at a time: skeletons, answers and every mutant, and that nothing is named by chance."""

import itertools
import re

import pytest

from scripts import drill, mutant_files, skeletons
from scripts.drill_run import check
from scripts.listing import MARK, REGION, PageError
from scripts.mutant_files import PARTS, ROOT

LEVELS = [(lesson, level) for lesson in PARTS for level in skeletons.levels(lesson)]
levels = pytest.mark.parametrize(("lesson", "level"), LEVELS)


@pytest.fixture
def checked(box, tmp_path):
    """Write a file, check it, return the report."""

    def run(lesson: str, level: str, text: str, **options) -> dict:
        file = tmp_path / f"{lesson}.py"
        file.write_text(text, encoding="utf-8")
        report = check(box, lesson, file=file, level=level, **options)
        assert report["lesson"] == lesson and "Traceback" not in report.get("message", "")
        return report

    return run


def rows(text: str) -> list[str]:
    """The lines that count: no markers, no TODO, nothing empty."""
    lines = [MARK.sub("", row).rstrip() for row in text.splitlines() if not REGION.match(row.strip())]
    return [row for row in lines if row and not re.match(r"\s*# (TODO: |  )", row)]


@levels
def test_the_solution_only_adds_lines(lesson, level):
    one = skeletons.load(lesson, level)
    solution = iter(rows((ROOT / one.source.path).read_text(encoding="utf-8")))
    text = (ROOT / one.path).read_text(encoding="utf-8")
    assert [row for row in rows(text) if row not in solution] == []
    assert text == one.text() and "# TODO: " in text and "#:" not in text and "region" not in text
    assert max(len(row) for row in text.splitlines() if skeletons.TODO.match(row)) <= 100


@levels
def test_hints_are_in_both_languages_and_give_no_line_away(lesson, level):
    zh, en = (skeletons.hints(lesson, level, lang) for lang in skeletons.LANGS)
    assert len(zh) == len(en) >= 3 and not any(hint.isascii() for hint in zh)
    lines = {text.strip() for _, found in skeletons.load(lesson, level).solution() for _, text in found}
    code = [line for line in lines if len(line) > 30 and not line.startswith(("#", '"""'))]
    assert [line for line in code for hint in (*zh, *en) if line in hint] == []


@levels
def test_a_skeleton_fails_and_is_no_mistake(lesson, level, checked):
    report = checked(lesson, level, skeletons.load(lesson, level).text())
    assert (report["ok"], report["check"], report["mistakes"]) == (False, "cases", []), report


@levels
def test_the_answer_passes_and_so_do_the_lesson_s_tests(lesson, level, checked):
    stages = []
    report = checked(lesson, level, skeletons.load(lesson, level).answer(), tests=True, say=stages.append)
    assert report == {"lesson": lesson, "ok": True} and stages == ["problems", "tests"]


@pytest.mark.parametrize("mutant_id", [one for lesson in PARTS for one in mutant_files.all_ids(lesson)])
def test_a_mutant_in_a_reader_s_file_is_caught_and_named(mutant_id, checked):
    """As a reader would have it: no markers, other comments, other names of the locals."""
    mutant = mutant_files.load(mutant_id)
    level = next(
        level
        for level in skeletons.levels(mutant.lesson)
        if skeletons.load(mutant.lesson, level).source.path == mutant.file
    )
    text = MARK.sub("", mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8")))
    text = re.sub(r"\b(offs|shared|growth|first|half)\b", r"my_\1", text)
    report = checked(mutant.lesson, level, text)
    assert (report["ok"], report["check"], report["mistakes"]) == (False, mutant.caught_by, [mutant_id])


def test_a_queue_of_free_pages_is_as_good_as_a_stack(checked):
    """Which page is taken is nobody's business, as far as the cases go."""
    text = skeletons.load("l1_paged_cache", "table").answer()
    queue = text.replace("self._free.pop()", "self._free.pop(0)")
    assert queue != text and checked("l1_paged_cache", "table", queue)["ok"]


def test_two_mistakes_at_once_are_no_known_one(checked):
    lesson, text = "l1_paged_cache", (ROOT / "kernels/l1_page_table.py").read_text(encoding="utf-8")
    for name in ("fork_not_counted", "half_an_append"):
        text = mutant_files.load(f"{lesson}/{name}").apply(text)
    report = checked(lesson, "table", text)
    assert (report["ok"], report["mistakes"]) == (False, [])


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("import nothing_of_this_name", "import", "cannot be imported: ModuleNotFoundError"),
        ("raise SystemExit", "import", "cannot be imported: SystemExit"),
        ("PageTable = 1", "import", "has no PageTable, OutOfPagesError"),
        ("class OutOfPagesError: ...\ndef PageTable(*a): raise KeyError('x')", "cases", "KeyError"),
    ],
)
def test_what_is_no_page_table_is_said_to_be_none(text, kind, message, checked):
    report = checked("l1_paged_cache", "table", text)
    assert (report["ok"], report["check"], report["mistakes"]) == (False, kind, [])
    assert message in report["message"]


def test_the_command_line_goes_through_the_levels(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(drill, "ROOT", tmp_path)
    monkeypatch.setattr(drill, "MINE", tmp_path / "mine")
    for (lesson, level), lang in zip(LEVELS, itertools.cycle(skeletons.LANGS)):
        assert drill.main(["start", lesson, "--level", level, "--lang", lang, "--force"]) == 0
        assert f"mine/{lesson}.py" in capsys.readouterr().out
        for _ in range(len(skeletons.hints(lesson, level, lang)) + 1):
            assert drill.main(["hint", lesson]) == 0
        assert skeletons.load(lesson, level).source.path in capsys.readouterr().out
        assert drill.main(["diff", lesson]) == 0
        assert f"+++ {skeletons.load(lesson, level).source.path}" in capsys.readouterr().out
    assert drill.main(["reset", LEVELS[0][0], "--level", "loop"]) == 2
    assert "wanted one of: heads" in capsys.readouterr().err
    with pytest.raises(PageError, match="no level 'loop'"):
        skeletons.load(LEVELS[0][0], "loop")
