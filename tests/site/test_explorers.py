"""The explorers as a reader meets them: the test plays the runner, and what it answers is really drawn."""

import json
import re
from collections.abc import Callable
from functools import cache

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from scripts.explorers import fields
from tests.runner.explored import drawn
from tests.site.test_browser import PHONE
from tests.site.test_built_site import LANGUAGES

L1, L3 = "lessons/l1_paged_cache/", "lessons/l3_split_kv_decode/"
PAGES = {"pool": L1, "waste": L1, "ranges": L3, "merge": L3, "sms": L3}
Open = Callable[..., Page]

# What the page imports as its runner: it answers when the test says so.
CLIENT = """
window.asked = []
window.waiting = []
export const getRunner = () => ({
  explore: (...args) => new Promise((resolve, reject) => {
    window.asked.push(args.slice(0, 3))
    window.waiting.push({ resolve, reject, ...args[3] })
  }),
})
"""
ENTRIES = [
    ("ranges", {"seq_lens": "1000, 37, 100", "page_size": "16", "num_splits": "5"}),
    ("ranges", {"seq_lens": "1000, 37, 100", "page_size": "32", "num_splits": "5"}),
    ("ranges", {"seq_lens": "1000, 37, 100", "page_size": "48", "num_splits": "5"}),
    ("pool", {"prompts": "30, 60, 20", "steps": "38", "page_size": "32", "num_pages": "8"}),
]


@cache
def answers() -> dict[str, dict]:
    """What Python gives for ENTRIES, in English, by the entries."""
    asked = [(name, values, "en") for name, values in ENTRIES]
    return {json.dumps(one[:2]): answer for one, (answer, _) in zip(asked, drawn(asked), strict=True)}


class Explorer:
    """One explorer of a page."""

    def __init__(self, page: Page, name: str) -> None:
        page.route("**/javascripts/runner/client.mjs", lambda route: route.fulfill(
            body=CLIENT, content_type="text/javascript"))  # fmt: skip
        self.page, self.name = page, name
        self.block = page.locator(".explorer").filter(has=page.locator(f"#explore-{name}-status"))
        self.svg, self.text = self.block.locator("figure svg"), self.block.locator(".explorer-text")
        self.status, self.open = self.block.get_by_role("status"), self.block.locator(".explorer-open")
        self.block.scroll_into_view_if_needed()

    def field(self, name: str) -> Locator:
        return self.block.locator(f"[name={name}]")

    def asked(self, count: int) -> dict:
        """The values it asked to be drawn, once it has asked so many times."""
        self.page.wait_for_function("count => window.asked?.length === count", arg=count)
        name, values, _ = self.page.evaluate("window.asked.at(-1)")
        assert name == self.name
        return values

    def answer(self, index: int = -1) -> dict:
        """Give what Python draws for one of the requests; the last by default."""
        name, values, _ = self.page.evaluate(f"window.asked.at({index})")
        found = answers()[json.dumps([name, values])]
        self.page.evaluate("([i, found]) => window.waiting.at(i).resolve(found)", [index, found])
        return found

    def is_shown(self, found: dict) -> None:
        """The figure, its text, and nothing else is said."""
        expect(self.text).to_have_text(found["text"])
        assert found["svg"].strip().startswith("<svg") and self.svg.count() == 1
        assert self.svg.locator("desc").text_content() == found["text"]
        expect(self.status).to_have_text("")


@pytest.fixture
def ranges(open_page: Open) -> Explorer:
    return Explorer(open_page("en/" + L3), "ranges")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("path", [L1, L3])
def test_without_javascript_the_still_figure_and_its_text_show(open_page: Open, lang: str, path: str) -> None:
    page = open_page(LANGUAGES[lang] + path, java_script_enabled=False)
    blocks = page.locator(".explorer")
    expect(blocks).to_have_count(list(PAGES.values()).count(path))
    for block in blocks.all():
        expect(block.locator("figure svg")).to_be_visible()
        assert block.locator(".explorer-text").text_content() == block.locator("desc").text_content()
        expect(block.locator("form")).to_have_count(0)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_is_loaded_before_the_first_change(open_page: Open, lang: str) -> None:
    page = open_page("404.html")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(page.url.removesuffix("404.html") + LANGUAGES[lang] + L3, wait_until="networkidle")
    expect(page.locator(".explorer form")).to_have_count(3, timeout=20_000)
    for name in ("ranges", "merge", "sms"):
        form = page.locator(f"form:has(#explore-{name}-status)")
        for one in fields.form(name, lang):
            expect(form.get_by_label(one["label"], exact=True)).to_have_value(one["value"])
    page.get_by_label(fields.form("merge", lang)[0]["label"], exact=True).fill("4, 3")  # not left yet
    assert [url for url in urls if url.endswith("/explorer.mjs")]
    assert not [url for url in urls if re.search(r"/runner/(client|worker)|/assets/runner/", url)]


def test_the_first_change_loads_the_runner_and_draws(ranges: Explorer) -> None:
    expect(ranges.open).to_be_visible()
    ranges.field("num_splits").fill("5")
    ranges.page.keyboard.press("Tab")
    assert ranges.asked(1) == dict(ENTRIES[0][1])
    expect(ranges.status).to_have_text("Loading the runner…")
    ranges.page.evaluate("window.waiting[0].onProgress({ stage: 'download', done: 1, total: 4 })")
    expect(ranges.block.locator("progress")).to_have_js_property("position", 0.25)
    ranges.is_shown(ranges.answer())
    expect(ranges.block.locator("progress")).to_be_hidden()
    expect(ranges.open).to_be_hidden()
    assert "split 4: 52–62" in ranges.svg.text_content()
    ids = ranges.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_the_button_draws_too(ranges: Explorer) -> None:
    ranges.open.click()
    assert ranges.asked(1)["num_splits"] == "4"


def test_then_typing_draws_and_the_latest_wins(ranges: Explorer) -> None:
    ranges.field("num_splits").fill("5")
    ranges.field("num_splits").press("Enter")
    ranges.asked(1)
    ranges.is_shown(ranges.answer())
    ranges.field("page_size").fill("3")
    ranges.field("page_size").fill("32")  # at once: the 3 is never asked for
    assert ranges.asked(2)["page_size"] == "32"
    ranges.field("page_size").fill("48")
    ranges.page.wait_for_timeout(400)
    assert len(ranges.page.evaluate("window.asked")) == 2  # one at a time
    ranges.answer()
    ranges.asked(3)
    assert "PAGE = 32" not in ranges.text.text_content()  # what is out of date is not shown
    ranges.answer()
    expect(ranges.status).to_contain_text("is 48; wanted a power of two from 16 to 128")


def test_what_does_not_fit_is_told_at_the_field(ranges: Explorer) -> None:
    page_size = ranges.field("page_size")
    ranges.field("num_splits").fill("5")
    page_size.focus()
    assert ranges.asked(1) == dict(ENTRIES[0][1])
    ranges.answer()
    expect(ranges.status).to_have_text("")
    before = ranges.text.text_content()
    page_size.fill("48")
    ranges.asked(2)
    ranges.answer()
    expect(ranges.status).to_have_text("“PAGE, tokens a page” is 48; wanted a power of two from 16 to 128.")
    expect(page_size).to_have_attribute("aria-invalid", "true")
    expect(page_size).to_have_attribute("aria-describedby", "explore-ranges-status")
    assert ranges.text.text_content() == before  # the last figure stays
    page_size.fill("32")
    assert ranges.asked(3)["page_size"] == "32"
    ranges.is_shown(ranges.answer())
    assert page_size.get_attribute("aria-invalid") is None and not page_size.get_attribute("aria-describedby")


def test_by_keys_alone(ranges: Explorer) -> None:
    keys = ranges.page.keyboard
    ranges.field("seq_lens").focus()
    for name in ("page_size", "num_splits"):
        keys.press("Tab")
        expect(ranges.field(name)).to_be_focused()
    keys.press("ArrowUp")
    expect(ranges.field("num_splits")).to_have_value("5")
    ranges.asked(1)
    ranges.is_shown(ranges.answer())
    keys.press("Shift+Tab")
    keys.press("ArrowUp")
    assert ranges.asked(2) == dict(ENTRIES[1][1])
    ranges.is_shown(ranges.answer())


def test_reset_goes_back_to_the_still_figure_without_the_runner(ranges: Explorer) -> None:
    still, text = ranges.svg.evaluate("e => e.outerHTML"), ranges.text.text_content()
    ranges.field("num_splits").fill("5")
    ranges.field("num_splits").press("Enter")
    ranges.asked(1)
    ranges.is_shown(ranges.answer())
    assert ranges.text.text_content() != text
    ranges.block.get_by_role("button", name="Reset").click()
    expect(ranges.text).to_have_text(text)
    assert ranges.svg.evaluate("e => e.outerHTML") == still
    expect(ranges.field("num_splits")).to_have_value("4")
    assert len(ranges.page.evaluate("window.asked")) == 1


def test_a_runner_that_fails_is_told_of_and_asked_again(ranges: Explorer) -> None:
    ranges.open.click()
    ranges.asked(1)
    ranges.page.evaluate("window.waiting[0].reject(new Error('no network'))")
    expect(ranges.status).to_have_text("Could not draw: no network. Press again to retry.")
    ranges.open.click()
    ranges.asked(2)
    # A program of the reader's was stopped meanwhile: the request is made again.
    ranges.page.evaluate("window.waiting[1].reject(Object.assign(new Error('stopped'), { name: 'Stopped' }))")
    ranges.asked(3)


def test_the_cache_refuses_in_the_figure(open_page: Open) -> None:
    pool = Explorer(open_page("en/" + L1), "pool")
    pool.field("num_pages").fill("8")
    pool.field("num_pages").press("Enter")
    pool.asked(1)
    pool.is_shown(pool.answer())
    assert "OutOfPagesError: step " in pool.svg.text_content()


def test_a_field_shows_where_it_is_asked_for(open_page: Open) -> None:
    waste = Explorer(open_page("en/" + L1), "waste")
    expect(waste.field("requests")).to_be_hidden()
    waste.field("trace").select_option("own")
    expect(waste.field("requests")).to_be_visible()
    assert waste.asked(1)["requests"].startswith("120+40")
    waste.block.get_by_role("button", name="Reset").click()
    expect(waste.field("requests")).to_be_hidden()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("path", [L1, L3])
def test_a_phone_shows_the_whole_form(open_page: Open, lang: str, path: str) -> None:
    page = open_page(LANGUAGES[lang] + path, **PHONE)
    expect(page.locator(".explorer form").last).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for control in page.locator(".explorer form :is(input, select, button):visible").all():
        box = control.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["height"] >= 24
    for figure in page.locator(".explorer figure").all():
        assert figure.evaluate("e => e.scrollWidth > e.clientWidth ? e.tabIndex === 0 : true")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [L1, L3])
def test_no_barrier(open_page: Open, path: str, scheme: str) -> None:
    page = open_page("en/" + path, color_scheme=scheme)
    expect(page.locator(".explorer form").last).to_be_visible()
    found = Axe().run(page, context=".explorer")
    assert found.violations_count == 0, found.generate_report()
