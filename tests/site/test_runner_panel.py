"""The panel of a program that runs in the page, with a runner that the test plays itself."""

import json
import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from scripts.run_page import WORDS
from scripts.run_program import program
from tests.site.runner_panel import LESSON, PROBLEM, Panel
from tests.site.test_built_site import LANGUAGES

PHONE = {"viewport": {"width": 360, "height": 740}}
Open = Callable[..., Page]


@pytest.fixture
def lesson(open_page: Open) -> Panel:
    return Panel(open_page("en/" + LESSON))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("path", [LESSON, PROBLEM, "lessons/online_softmax/", "problems/l0_shapes/"])
def test_a_page_shows_the_case_and_loads_nothing(open_page: Open, lang: str, path: str) -> None:
    page = open_page("404.html")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(page.url.removesuffix("404.html") + LANGUAGES[lang] + path, wait_until="networkidle")
    block = page.locator(".runner")
    for act in ("run", "check", "edit"):
        expect(block.get_by_role("button", name=WORDS[lang][act], exact=True)).to_be_visible()
    expect(block.locator(".listing .row").nth(5)).to_be_visible()
    assert [url for url in urls if "/runner/" in url and url.endswith("/panel.mjs")]
    unwanted = [url for url in urls if re.search(r"/runner/(?!panel)|codemirror|/programs/", url)]
    assert not unwanted


@pytest.mark.parametrize("lang", LANGUAGES)
def test_run_runs_the_kernel_of_the_lesson(open_page: Open, lang: str) -> None:
    panel = Panel(open_page(LANGUAGES[lang] + LESSON))
    panel.button(WORDS[lang]["run"]).click()
    kind, source, options = panel.asked()
    assert kind == "run" and source == program("l2_paged_decode")
    assert options == {"trace": True, "steps": None, "lang": lang}
    panel.say("onProgress", {"stage": "download", "done": 2_000_000, "total": 6_200_000})
    bar = panel.block.get_by_role("progressbar")
    expect(bar).to_have_attribute("value", "2000000")
    expect(panel.block.locator(".runner-loading")).to_contain_text("2.0")
    expect(bar).to_have_attribute("aria-label", re.compile("."))
    panel.say("onProgress", {"stage": "triton", "done": 0, "total": 0})
    expect(panel.status).to_contain_text("Triton")
    panel.say("onStdout", "o [2, 8, 64]\n")
    expect(bar).to_be_hidden()
    expect(panel.printed).to_have_text("o [2, 8, 64]\n")
    panel.answer(stdout="o [2, 8, 64]\nlse\n")
    expect(panel.printed).to_have_text("o [2, 8, 64]\nlse\n")
    expect(panel.status).to_contain_text("0.31")
    expect(panel.block.locator(".listing")).to_be_hidden()
    expect(panel.editor).to_be_visible()
    assert panel.text == source


def test_run_and_stop_share_a_place_and_the_focus(lesson: Panel) -> None:
    lesson.button("Run").press("Enter")
    stop = lesson.button("Stop")
    expect(stop).to_be_focused()
    expect(lesson.button("Run")).to_be_hidden()
    lesson.asked()
    stop.press("Enter")
    expect(lesson.button("Run")).to_be_focused()
    expect(lesson.status).to_have_text("Stopped")
    lesson.button("Run").press("Enter")
    lesson.asked(2)
    lesson.answer()
    expect(lesson.printed).to_have_text("(no output)")


@pytest.mark.parametrize(("act", "now"), [("Run", "Running…"), ("Check", "Checking…")])
def test_what_takes_long_is_told_of_stop(open_page: Open, act: str, now: str) -> None:
    panel = Panel(open_page("en/" + PROBLEM))
    panel.page.clock.install()
    panel.button(act).click()
    panel.asked()
    panel.say("onProgress", {"stage": "triton", "done": 0, "total": 0})
    panel.page.clock.run_for(60_000)
    expect(panel.status).to_have_text("Loading Triton")  # which has a bar of its own
    panel.say("onReady", None)
    expect(panel.status).to_have_text(now)
    expect(panel.block.get_by_role("progressbar")).to_be_hidden()
    panel.page.clock.run_for(9_000)
    expect(panel.status).to_have_text(now)
    panel.page.clock.run_for(2_000)
    expect(panel.status).to_have_text(f"{now} It takes long; Stop ends it.")
    panel.button("Stop").click()
    panel.page.clock.run_for(60_000)
    expect(panel.status).to_have_text("Stopped")


@pytest.mark.parametrize("key", ["Control+Enter", "Meta+Enter"])
def test_a_key_runs_what_is_in_the_editor(lesson: Panel, key: str) -> None:
    lesson.edit()
    lesson.type_first("# mine")
    lesson.editor.press(key)
    assert lesson.asked()[1] == "# mine\n" + program("l2_paged_decode")
    lesson.editor.press(key)  # while it runs: nothing
    assert len(lesson.page.evaluate("asked")) == 1
    lesson.answer()
    assert lesson.text == "# mine\n" + program("l2_paged_decode")


def test_an_error_marks_its_line_and_leads_there(lesson: Panel) -> None:
    lesson.button("Run").click()
    lesson.asked()
    message = "the load of block_table_ptr at [0, 7] is outside [2, 7], in program (0, 1, 0)"
    error = {"kind": "OutOfBounds", "message": message, "line": 60}
    warning = {"line": 70, "code": "small_dot", "message": "tl.dot wants at least 16 columns"}
    lesson.answer(ok=False, stdout="before\n", error=error, warnings=[warning])
    alert = lesson.block.get_by_role("alert")
    expect(alert).to_contain_text("OutOfBounds")
    expect(alert).to_contain_text(message)
    expect(lesson.printed).to_have_text("before\n")
    expect(lesson.block.locator(".runner-warnings")).to_contain_text("tl.dot wants at least 16 columns")
    text = program("l2_paged_decode").splitlines()
    lesson.button("line 60").press("Enter")
    expect(lesson.editor).to_be_focused()
    marked = lesson.block.locator(".cm-error-line")
    expect(marked).to_have_text(text[59])
    expect(marked).to_be_in_viewport()
    lesson.page.keyboard.type("x")  # the cursor stands there
    assert lesson.text.splitlines()[59] == "x" + text[59]
    expect(marked).to_have_count(0)
    lesson.button("line 70").click()
    expect(lesson.block.locator(".cm-activeLine")).to_have_text(text[69])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_check_asks_for_the_level_and_shows_the_report(open_page: Open, lang: str) -> None:
    panel = Panel(open_page(LANGUAGES[lang] + PROBLEM))
    panel.block.get_by_role("combobox").select_option("kernel")
    panel.button(WORDS[lang]["check"]).click()
    assert panel.asked() == ["check", "l2_paged_decode", "kernel", program("l2_paged_decode", "kernel"), lang]
    panel.say("onStage", "37, 0, 16")
    expect(panel.status).to_contain_text("37, 0, 16")
    panel.say("resolve", {"ok": False, "text": "values: fails\n  expected 1\n"})
    expect(panel.block.get_by_role("alert")).to_have_text("values: fails\n  expected 1")
    panel.button(WORDS[lang]["check"]).click()
    panel.asked(2)
    panel.say("resolve", {"ok": True, "text": "all right"})
    expect(panel.block.locator(".runner-report.passed")).to_have_text("all right")
    expect(panel.block.get_by_role("alert")).to_have_count(0)


def test_keys_reach_everything_and_leave_the_editor(lesson: Panel) -> None:
    lesson.edit()
    lesson.editor.press("Control+Home")
    lesson.editor.press("Tab")
    assert lesson.text.startswith('    """Paged decode'), "Tab indents"
    assert "Escape" in lesson.page.locator("#" + lesson.editor.get_attribute("aria-describedby")).inner_text()
    lesson.editor.press("Escape")
    lesson.page.keyboard.press("Tab")
    expect(lesson.editor).not_to_be_focused()
    lesson.editor.focus()
    lesson.editor.press("Escape")
    lesson.page.keyboard.press("Shift+Tab")
    expect(lesson.button("Copy a link")).to_be_focused()
    for name in ("Load my last version", "Reset", "Check", "Run"):
        lesson.page.keyboard.press("Shift+Tab")
        expect(lesson.button(name)).to_be_focused()


def test_a_runner_that_fails_says_why(lesson: Panel) -> None:
    lesson.button("Run").click()
    lesson.asked()
    lesson.page.evaluate("played.now.reject(new Error('Traceback\\n  File x\\nOSError: disk full\\n'))")
    expect(lesson.status).to_have_text("The runner failed: OSError: disk full")
    expect(lesson.button("Run")).to_be_visible()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_module_that_cannot_be_loaded_is_said(open_page: Open, lang: str) -> None:
    panel = Panel(open_page(LANGUAGES[lang] + LESSON))
    panel.page.route(
        "**/runner/workbench.mjs",
        lambda route: route.fulfill(body="throw new Error('cut off')", content_type="text/javascript"),
    )
    panel.button(WORDS[lang]["run"]).click()
    expect(panel.status).to_have_text(f"{WORDS[lang]['failed']} (cut off)")


def test_too_much_output_is_cut(lesson: Panel) -> None:
    lesson.button("Run").click()
    lesson.asked()
    lesson.say("onStdout", "x" * 150_000)
    expect(lesson.printed).to_contain_text("the rest is left out")
    assert len(lesson.printed.text_content()) < 101_000


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_and_no_sideways_scrolling(open_page: Open, lang: str, scheme: str) -> None:
    """With the editor open, an error, a warning and a notice; on a phone."""
    panel = Panel(open_page(LANGUAGES[lang] + PROBLEM, color_scheme=scheme, reduced_motion="reduce", **PHONE))
    panel.button(WORDS[lang]["run"]).click()
    panel.asked()
    assert panel.page.evaluate("document.documentElement.scrollWidth") <= 360
    error = {"kind": "UnwrittenRead", "message": "the load of k_ptr " * 9, "line": 20}
    warnings = [{"line": 9, "message": "a warning"}]
    panel.answer(ok=False, stdout="much wider than a phone " * 9, error=error, warnings=warnings)
    expect(panel.block.get_by_role("alert")).to_be_visible()
    expect(panel.editor).to_be_visible()
    assert panel.page.evaluate("document.documentElement.scrollWidth") <= 360
    animations = "document.querySelector('.runner').getAnimations({ subtree: true }).length"
    assert panel.page.evaluate(animations) == 0
    violations = Axe().run(panel.page, context=".runner").response["violations"]
    assert not violations, json.dumps(violations, indent=1)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    ("path", "command"),
    [(LESSON, "-m snippets.runs.l2_paged_decode"), (PROBLEM, "make drill L=l2_paged_decode")],
)
def test_without_scripts_it_says_how_else(open_page: Open, lang: str, path: str, command: str) -> None:
    page = open_page(LANGUAGES[lang] + path, java_script_enabled=False)
    block = page.locator(".runner")
    expect(block.locator(".listing")).to_be_visible()
    expect(block.get_by_role("button")).to_have_count(0)
    expect(block.locator(".runner-off")).to_be_visible()
    expect(block.locator(".runner-off code")).to_contain_text(command)
