"""The explorers with the real runner: Python in the browser draws what it draws here."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.runner.explored import drawn
from tests.site.test_built_site import LANGUAGES
from tests.site.test_explorers import L1, L3, PAGES

Open = Callable[..., Page]
START = 120_000  # ms: other tests may have the machine's cores
# A change of each explorer: the field, what is typed or chosen, a number that the figure then shows.
CHANGES = {
    "pool": ("num_pages", "8", "OutOfPagesError"),
    "waste": ("trace", "long", "5,576"),
    "ranges": ("num_splits", "5", "52–62"),
    "merge": ("cut", "4", "−∞"),
    "sms": ("gpu", "NVIDIA GeForce RTX 5090", "170"),
}


def change(block: Locator, field: str, value: str) -> None:
    control = block.locator(f"[name={field}]")
    if control.evaluate("e => e.tagName") == "SELECT":
        control.select_option(value)
    else:
        control.fill(value)
        control.press("Enter")


@pytest.mark.parametrize("path", [L1, L3])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_change_is_drawn_in_the_page(open_page: Open, lang: str, path: str) -> None:
    page = open_page(LANGUAGES[lang] + path)
    names = [name for name in PAGES if PAGES[name] == path]
    wanted = drawn([(name, {CHANGES[name][0]: CHANGES[name][1]}, lang) for name in names])
    for name, (answer, _) in zip(names, wanted, strict=True):
        block = page.locator(".explorer").filter(has=page.locator(f"#explore-{name}-status"))
        block.scroll_into_view_if_needed()
        change(block, *CHANGES[name][:2])
        expect(block.locator(".explorer-text")).to_have_text(answer["text"], timeout=START)
        made = block.locator("figure svg")
        assert CHANGES[name][2] in made.text_content()
        shown = made.evaluate("e => [...e.querySelectorAll('text')].map(t => t.textContent)")
        assert shown == _texts(page, answer["svg"])
        expect(block.get_by_role("status")).to_have_text("")


def test_an_entry_that_does_not_fit_is_told_by_python(open_page: Open) -> None:
    page = open_page(f"en/{L3}")
    block = page.locator(".explorer").filter(has=page.locator("#explore-merge-status"))
    change(block, "values", "1, 2")
    said = "“values” is 1, 2; wanted 4 of them, as many as scores."
    expect(block.get_by_role("status")).to_have_text(said, timeout=START)


def _texts(page: Page, svg: str) -> list[str]:
    script = """svg => [...new DOMParser().parseFromString(svg, "image/svg+xml").querySelectorAll("text")]
      .map(t => t.textContent)"""
    return page.evaluate(script, svg)
