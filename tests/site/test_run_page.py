"""The macro `run`: the panel that a page shows, and the files that it needs beside it."""

import json

import pytest
from bs4 import BeautifulSoup

from scripts import skeletons
from scripts.library import Library
from scripts.listing import PageError
from scripts.macros import Page, expand, fill, shown_files, shown_programs
from scripts.run_program import ROOT


def panel(name: str, lang: str = "en") -> BeautifulSoup:
    page = Page(lang=lang, url="../../{}".format)
    return BeautifulSoup(fill(expand(f"{{{{ run:{name} }}}}", page, Library(ROOT)), page), "html.parser")


@pytest.mark.parametrize("lang", skeletons.LANGS)
def test_a_lesson_s_panel(lang: str) -> None:
    found = panel("l2_paged_decode", lang)
    about = json.loads(found.section["data-runner"])
    assert about == {
        "lesson": "l2_paged_decode",
        "programs": [{"level": "", "checkedAs": "loop", "url": "../../programs/l2_paged_decode.txt"}],
    }
    assert [button["data-act"] for button in found.select(".runner-buttons button")] == [
        "run",
        "check",
        "edit",
    ]
    assert all(button.has_attr("disabled") for button in found.select("button")), "until a script is there"
    assert not found.select("select")
    assert found.select_one(".listing-caption")["href"].startswith(
        "../../source/snippets/runs/l2_paged_decode"
    )
    assert len(found.select(".listing .row")) > 20
    off = found.select_one("noscript").get_text()
    assert "TRITON_INTERPRET=1 .venv/bin/python -m snippets.runs.l2_paged_decode" in off
    assert found.select_one("[role=status]").get_text() == ""


@pytest.mark.parametrize("lesson", skeletons.lessons())
def test_a_problem_s_panel_offers_every_level(lesson: str) -> None:
    levels = skeletons.levels(lesson)
    found = panel(f"{lesson}/{levels[1]}")
    about = json.loads(found.section["data-runner"])
    assert [program["level"] for program in about["programs"]] == levels
    assert [program["checkedAs"] for program in about["programs"]] == levels
    assert [option.get_text() for option in found.select("option")] == levels
    assert [option.get_text() for option in found.select("option[selected]")] == [levels[1]]
    assert f"make drill L={lesson}" in found.select_one("noscript").get_text()


def test_what_a_page_needs_beside_it() -> None:
    markdown = "{{ run:l1_paged_cache/table }}\n\ntext\n\n{{ run:l2_paged_decode }}\n"
    levels = skeletons.levels("l1_paged_cache")
    assert shown_programs(markdown) == {("l2_paged_decode", ""), *(("l1_paged_cache", one) for one in levels)}
    cases = ("l1_page_table", "l1_paged_cache", "l1_write_kv", "l2_paged_decode")
    assert shown_files(markdown, "") == {f"snippets/runs/{case}.py" for case in cases}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ run:l9 }}", "no drill 'l9'"),
        ("{{ run:l2_paged_decode/all }}", "no level 'all'"),
        ("see {{ run:l2_paged_decode }}", "needs a line of its own"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(PageError, match=message):
        expand(text, Page(lang="en"), Library(ROOT))
