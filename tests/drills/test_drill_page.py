"""What pages show of drills and mutants, through the macros of scripts/macros.py."""

import re

import markdown
import pytest
from bs4 import BeautifulSoup

from scripts import drill_page, mutant_files, skeletons
from scripts.diagnose import describe
from scripts.library import Library
from scripts.listing import PageError
from scripts.macros import Page, expand, fill, shown_files
from tests.helpers.lesson import sections

LIBRARY = Library(mutant_files.ROOT)
langs = pytest.mark.parametrize("lang", ["zh", "en"])


def html(text: str, lang: str = "en", lesson: str = "l2_paged_decode") -> BeautifulSoup:
    page = Page(lang, lesson, url="../../{}".format)
    extensions = ["pymdownx.superfences", "pymdownx.details"]
    return BeautifulSoup(
        fill(markdown.markdown(expand(text, page, LIBRARY), extensions=extensions), page), "html.parser"
    )


@langs
@pytest.mark.parametrize("mutant_id", mutant_files.every_id())
def test_a_mutant_is_its_diff_and_what_the_check_says(mutant_id, lang):
    folded = html(f"{{{{ mutant:{mutant_id} }}}}", lang).find("details")
    diff, said = (code.get_text().strip() for code in folded.find_all("code"))
    assert mutant_files.load(mutant_id).name[lang] in folded.summary.text and not folded.has_attr("open")
    assert diff == mutant_files.load(mutant_id).diff().strip()
    assert said.endswith(describe(mutant_files.recorded()[mutant_id], lang)) and mutant_id in said
    assert all(code["tabindex"] == "0" and code["aria-label"] for code in folded.find_all("code"))


def test_a_pitfall_is_the_changed_lines_and_what_the_check_says():
    shown = html("Before.\n\n{{ pitfall:interleaved_heads }}\n\nAfter.")
    changes, said = shown.find_all("code")
    assert changes.get_text() == (
        "-    q_head = kv_head * GROUP_SIZE + offs_g\n+    q_head = kv_head + offs_g * tl.num_programs(1)\n"
    )
    assert not changes.find_parent("details") and said.find_parent("details")
    assert "known mistake l2_paged_decode/interleaved_heads" in said.text


def test_changes_in_several_places_stand_apart():
    places = mutant_files.load("l2_paged_decode/nothing_masked").changes().split("\n\n")
    assert len(places) == 3
    assert all({row[0] for row in place.strip().splitlines()} <= {"-", "+"} for place in places)


@langs
@pytest.mark.parametrize("level", skeletons.LEVELS)
def test_hints_are_folded_and_the_solution_is_in_the_last(level, lang):
    blocks = html(f"{{{{ hints:{level} }}}}", lang).find_all("details")
    hints = skeletons.hints("l2_paged_decode", level, lang)
    assert len(blocks) == len(hints) + 1 and not any(block.has_attr("open") for block in blocks)
    for number, (block, hint) in enumerate(zip(blocks, hints, strict=False), 1):
        assert str(number) in block.summary.text and not block.find(class_="listing")
        assert block.p.text == re.sub(r"[`*]", lambda m: m[0] if m[0] == "*" else "", hint)
    numbers = [int(a["data-no"]) for a in blocks[-1].find_all("a", class_="no")]
    solution = skeletons.load("l2_paged_decode", level).solution()
    assert numbers == [
        no for _, rows in solution for no, text in rows if no in range(rows[0][0], rows[-1][0] + 1)
    ]
    assert blocks[-1].a["href"].startswith("../../source/kernels/l2_paged_decode.md#L")


def test_ids_are_unique_with_all_levels_on_one_page():
    shown = html("\n\n".join(f"{{{{ hints:{level} }}}}" for level in skeletons.LEVELS))
    ids = [element["id"] for element in shown.find_all(id=True)]
    assert len(ids) == len(set(ids)) > 100


def test_what_shows_the_solution_needs_its_source_page():
    assert shown_files("{{ hints:loop }}", "", "online_softmax") == {"kernels/online_softmax.py"}
    assert shown_files("{{ hints:l2_paged_decode/loop }}", "") == {"kernels/l2_paged_decode.py"}
    assert shown_files("{{ hints:table }}", "", "l1_paged_cache") == {"kernels/l1_page_table.py"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ mutant:nothing }}", "no mutant 'l2_paged_decode/nothing'; wanted one of"),
        ("{{ hints:all }}", "no level 'all'; wanted one of: loop, kernel, launcher"),
        ("{{ hints:l9/loop }}", "no drill 'l9'; wanted one of"),
        ("See {{ pitfall:tf32 }}.", "needs a line of its own"),
    ],
)
def test_a_wrong_name_is_an_error(text, message):
    with pytest.raises(PageError, match=message):
        html(text)


def test_a_mutant_that_was_never_run_is_an_error(monkeypatch):
    monkeypatch.setattr(mutant_files, "recorded", dict)
    with pytest.raises(PageError, match=r"mutants.json has no .*run: python scripts/mutants.py record"):
        drill_page.mutant("l2_paged_decode/tf32", "en")


@langs
@pytest.mark.parametrize("lesson", mutant_files.LESSONS + mutant_files.PARTS + mutant_files.TESTED)
def test_the_lesson_shows_every_mutant_of_it_once(lesson, lang):
    text = "".join(sections(lang, lesson).values())
    shown = re.findall(r"^\{\{ pitfall:(\w+) \}\}$", text, re.MULTILINE)
    assert sorted(shown) == sorted(name.partition("/")[2] for name in mutant_files.all_ids(lesson))
    assert "```diff" not in text  # each wrong version that a page shows is one that runs
