"""What a page puts off until there is a reader (javascripts/wake.mjs, main.html), in Chromium."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.browsers import WAKE
from tests.site.runner_panel import link

LESSON = "lessons/l3_split_kv_decode/"
LEFT = "document.querySelectorAll('[data-later]').length"
THEME = "document.querySelectorAll('.md-code__nav, .md-typeset__scrollwrap').length > 0"
# What would wake a page after a while is kept as quiet().
KEEP_QUIET = """
    const later = setTimeout
    setTimeout = (run, time, ...all) => time === 8000 ? window.quiet = run : later(run, time, ...all)"""
Open = Callable[..., Page]


def asleep(open_page: Open, path: str = LESSON, **options: object) -> tuple[Page, list[str]]:
    """A page that nobody has touched, and what it asks for from now on."""
    page = open_page("404.html", wake=False, **options)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.goto(page.url.replace("404.html", path), wait_until="networkidle")
    return page, asked


def test_nothing_is_brought_to_life_before_there_is_a_reader(open_page: Open) -> None:
    page, asked = asleep(open_page)
    modules = [name for name in asked if name.endswith((".js", ".mjs"))]
    assert sorted(modules) == ["site.mjs", "wake.mjs"]
    blocks = page.evaluate("document.querySelector('article').children.length")
    assert blocks - 6 < page.evaluate(LEFT) < blocks
    assert not page.evaluate(THEME)
    # What is in the first window looks as it will.
    expect(page.locator("[data-md-component=palette] label:visible")).to_have_count(1)
    expect(page.locator("article > p").first).to_be_in_viewport()


SIGNS = {
    "the mouse moves": lambda page: page.mouse.move(200, 200),
    "a key": lambda page: page.keyboard.press("ArrowDown"),
    "the wheel": lambda page: page.mouse.wheel(0, 50),
    "a finger": lambda page: page.touchscreen.tap(200, 300),
}


@pytest.mark.parametrize("sign", SIGNS)
def test_any_sign_of_a_reader_wakes_the_page(open_page: Open, sign: str) -> None:
    page, asked = asleep(open_page, **({"has_touch": True} if sign == "a finger" else {}))
    SIGNS[sign](page)
    page.wait_for_function(f"{LEFT} === 0")
    assert page.evaluate(THEME)
    for name in ("reading.mjs", "explorer.mjs", "panel.mjs", "chart.mjs"):
        assert asked.count(name) == 1, name
    assert sum(name.startswith("bundle.") for name in asked) == 1


def test_a_page_wakes_by_itself_after_a_while(open_page: Open) -> None:
    page = open_page("404.html", wake=False)
    page.add_init_script(KEEP_QUIET)
    page.goto(page.url.replace("404.html", LESSON), wait_until="networkidle")
    assert page.evaluate(LEFT) > 0
    page.evaluate("quiet()")
    page.wait_for_function(f"{LEFT} === 0")
    assert page.evaluate(THEME)


def test_a_page_that_was_found_by_a_search_shows_its_words(open_page: Open) -> None:
    page, _ = asleep(open_page, f"{LESSON}?h=merge")
    expect(page.locator("article mark").first).to_be_attached()


def test_a_program_that_came_by_a_link_is_shown(open_page: Open) -> None:
    page = open_page("404.html", wake=False)
    page.add_init_script(KEEP_QUIET)
    page.goto(page.url.replace("404.html", LESSON + link("print('of the link')")))
    expect(page.locator(".runner-notice")).to_be_visible()


def test_a_link_to_a_place_on_the_page_leads_there_at_once(open_page: Open) -> None:
    """However many blocks are left out above it when it is clicked."""
    page, _ = asleep(open_page, viewport={"width": 1440, "height": 900})
    page.locator(".md-nav--secondary a[href='#merge-states']").evaluate("a => a.click()")
    assert page.evaluate(LEFT) == 0
    page.evaluate(WAKE)
    page.wait_for_timeout(300)
    top = page.evaluate("document.getElementById('merge-states').getBoundingClientRect().top")
    assert 0 <= top < 120


def test_who_comes_for_a_place_gets_the_whole_page(open_page: Open) -> None:
    page, _ = asleep(open_page, f"{LESSON}#merge-states")
    assert page.evaluate(LEFT) == 0
    page.reload(wait_until="networkidle")
    assert page.evaluate(LEFT) == 0


def test_paper_shows_every_block(open_page: Open) -> None:
    page, _ = asleep(open_page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(LEFT) == 0


@pytest.mark.parametrize(("scheme", "wanted"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 28)")])
def test_the_system_s_colour_scheme_is_there_from_the_start(
    open_page: Open, scheme: str, wanted: str
) -> None:
    page, _ = asleep(open_page, color_scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.evaluate(WAKE)
    assert before == page.evaluate(colour) == wanted


def test_a_colour_scheme_chosen_first_is_not_lost(open_page: Open) -> None:
    """The theme's script, which keeps the choice, has not run when the button is pressed."""
    page, _ = asleep(open_page, "", color_scheme="dark")
    button = page.locator("[data-md-component=palette] label:visible")
    button.evaluate("label => label.click()")
    page.wait_for_function("document.body.dataset.mdColorScheme === 'default'")
    expect(button).to_have_count(1)
    page.reload()  # and nobody touches it
    assert page.evaluate("document.body.dataset.mdColorScheme") == "default"
    expect(button).to_have_attribute("for", "__palette_2")


def test_a_search_asked_for_first_is_not_lost(open_page: Open) -> None:
    page, _ = asleep(open_page, "")
    page.keyboard.press("/")
    expect(page.locator("input.md-search__input")).to_be_focused()
    page.keyboard.type("lse")
    expect(page.locator(".md-search-result__link").first).to_be_attached()


def test_the_text_is_laid_out_without_the_theme(browser: Browser, address: str) -> None:
    """A page of its own: that a script is missing is an error on the console."""
    context = browser.new_context()
    page = context.new_page()
    page.route("**/bundle.*.js", lambda route: route.abort())
    page.goto(address + LESSON)
    page.mouse.move(300, 300)
    page.wait_for_function(f"{LEFT} === 0")
    expect(page.locator(".explorer form").first).to_be_attached()
    context.close()
