"""What becomes of the reader's text: kept in the browser, put into a link, exchanged for another level's."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from scripts.run_program import program
from tests.site.runner_panel import LESSON, PROBLEM, Panel, link

Open = Callable[..., Page]


@pytest.fixture
def lesson(open_page: Open) -> Panel:
    return Panel(open_page("en/" + LESSON))


@pytest.fixture
def problem(open_page: Open) -> Panel:
    return Panel(open_page("en/" + PROBLEM))


def test_a_level_brings_its_skeleton_and_keeps_the_other(problem: Panel) -> None:
    problem.edit()
    assert problem.text == program("l2_paged_decode", "loop")
    problem.type_first("# loop")
    problem.block.get_by_role("combobox").select_option("launcher")
    expect(problem.status).to_contain_text("launcher")
    assert problem.text == program("l2_paged_decode", "launcher")
    problem.block.get_by_role("combobox").select_option("loop")
    expect(problem.status).to_contain_text("loop")
    problem.button("Load my last version").click()
    expect(problem.status).to_contain_text("your version of")
    assert problem.text.startswith("# loop\n")


def test_reset_and_the_last_version(lesson: Panel) -> None:
    """What was written survives Reset, and the visit."""
    last = "Load my last version"
    lesson.edit()
    expect(lesson.button(last)).to_have_attribute("aria-disabled", "true")
    lesson.type_first("# mine")
    lesson.button("Reset").click()
    expect(lesson.status).to_contain_text("own program")
    assert lesson.text == program("l2_paged_decode")
    lesson.button(last).click()
    expect(lesson.status).to_contain_text("your version of")
    assert lesson.text == "# mine\n" + program("l2_paged_decode")
    lesson.page.reload()
    lesson.edit()
    assert lesson.text == program("l2_paged_decode"), "the page's program until it is asked for"
    lesson.type_first("# a trifle")
    lesson.button(last).click()
    expect(lesson.status).to_contain_text("your version of")
    assert lesson.text.startswith("# mine\n"), "of the visit before: a trifle does not push it out"


@pytest.fixture
def held(problem: Panel) -> list[Route]:
    """Requests for programs, which are answered when the test lets them go on."""
    problem.edit()
    problem.type_first("# mine")
    held: list[Route] = []
    problem.page.route("**/programs/**", lambda route: held.append(route))
    return held


def arrived(panel: Panel, held: list[Route], count: int = 1) -> Route:
    """The last of so many requests, once it is there."""
    while len(held) < count:
        panel.page.wait_for_timeout(50)
    return held[count - 1]


def test_a_run_waits_for_the_text_that_reset_brings(problem: Panel, held: list[Route]) -> None:
    problem.button("Reset").click()
    problem.button("Run").click()
    problem.page.wait_for_timeout(500)
    assert problem.page.evaluate("window.asked") is None
    arrived(problem, held).continue_()
    assert problem.asked()[1] == program("l2_paged_decode", "loop")


def test_a_check_waits_for_the_level_that_was_chosen_last(problem: Panel, held: list[Route]) -> None:
    for level in ("launcher", "kernel"):
        problem.block.get_by_role("combobox").select_option(level)
    problem.button("Check").click()
    problem.page.wait_for_timeout(500)
    assert problem.page.evaluate("window.asked") is None
    arrived(problem, held).continue_()
    arrived(problem, held, 2).continue_()
    assert problem.asked()[:4] == ["check", "l2_paged_decode", "kernel", program("l2_paged_decode", "kernel")]
    assert problem.block.get_by_role("combobox").input_value() == "kernel"


def test_a_text_that_does_not_come_leaves_the_reader_s(problem: Panel) -> None:
    problem.edit()
    problem.type_first("# mine")
    problem.page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('no network')) }")
    problem.block.get_by_role("combobox").select_option("launcher")
    expect(problem.status).to_contain_text("check the network")
    assert problem.block.get_by_role("combobox").input_value() == "loop"
    problem.button("Run").click()
    assert problem.asked()[1].startswith("# mine\n")


@pytest.mark.parametrize("kept", ["{", "[1, null]", '{"a": 1}', '[{"source": 3}]'])
def test_anything_may_be_kept_there(lesson: Panel, kept: str) -> None:
    lesson.page.evaluate("kept => localStorage.setItem('runner:l2_paged_decode', kept)", kept)
    lesson.edit()
    expect(lesson.button("Load my last version")).to_have_attribute("aria-disabled", "true")
    lesson.type_first("# mine")
    lesson.button("Reset").click()
    expect(lesson.button("Load my last version")).to_have_attribute("aria-disabled", "false")


def test_a_browser_that_keeps_nothing_is_told_of(lesson: Panel) -> None:
    refuse = """for (const method of ["getItem", "setItem"]) {
        const allowed = Storage.prototype[method]
        Storage.prototype[method] = function (key, ...rest) {
            if (key.startsWith("runner:")) throw new DOMException("The operation is insecure.")
            return allowed.call(this, key, ...rest)
        }
    }"""
    lesson.page.add_init_script(refuse)
    lesson.page.reload()
    lesson.edit()
    lesson.type_first("# mine")
    expect(lesson.status).to_contain_text("keeps nothing")
    lesson.button("Run").click()
    assert lesson.asked()[1].startswith("# mine\n")


def shared(panel: Panel) -> str:
    """The link that the reader copies."""
    panel.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    panel.button("Copy a link").click()
    expect(panel.status).to_contain_text("copied")
    return panel.page.evaluate("navigator.clipboard.readText()")


def test_a_link_shows_the_code_and_never_runs_it(problem: Panel, open_page: Open) -> None:
    problem.block.get_by_role("combobox").select_option("kernel")
    problem.edit()
    problem.type_first("# 中文, and 'quotes'")
    text, link = problem.text, shared(problem)
    assert link.startswith(problem.page.url.partition("#")[0] + "#code=")
    other = Panel(open_page("404.html"))
    other.page.goto(link)
    expect(other.block.locator(".runner-notice")).to_contain_text("came from a link")
    assert other.text == text and other.block.get_by_role("combobox").input_value() == "kernel"
    expect(other.editor).to_be_in_viewport()
    assert other.page.evaluate("window.asked") is None, "not even the runner's module was loaded"
    other.button("Run").click()
    assert other.asked()[1] == text
    other.answer()
    other.button("Reset").click()
    expect(other.block.locator(".runner-notice")).to_be_hidden()
    assert other.text == program("l2_paged_decode", "kernel")


def test_run_at_once_waits_for_the_program_of_the_link(lesson: Panel) -> None:
    lesson.page.evaluate(
        """hash => {
          const run = document.querySelector(".runner [data-act=run]")
          addEventListener("hashchange", () => run.click(), { once: true }) // the page hears of it first
          location.hash = hash
        }""",
        link("print('of the link')"),
    )
    assert lesson.asked()[1] == "print('of the link')"


@pytest.mark.parametrize("code", ["", "xyz", "!!", "S8vPV0jLz1d" * 40])
def test_a_broken_link_shows_the_page_s_own_program(lesson: Panel, code: str) -> None:
    lesson.page.goto(lesson.page.url + "#code=" + code)
    expect(lesson.block.locator(".runner-notice")).to_contain_text("cannot be read")
    assert lesson.text == program("l2_paged_decode")


def test_where_the_clipboard_refuses_the_link_is_shown(lesson: Panel) -> None:
    lesson.edit()
    lesson.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }")
    lesson.button("Copy a link").click()
    expect(lesson.status.get_by_role("textbox")).to_have_value(re.compile("#code="))
