"""What the pages invite the reader to try, tried in the real runner; and a problem solved in its page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from scripts import skeletons
from scripts.run_page import WORDS
from scripts.run_program import program
from tests.site.runner_panel import Panel
from tests.site.test_built_site import LANGUAGES

SOON = 120_000  # ms, on a busy machine
Open = Callable[..., Page]


class RealPanel(Panel):
    """A panel whose runner is the site's own, its editor open."""

    def __init__(self, page: Page, lang: str) -> None:
        super().__init__(page)
        page.unroute_all()
        self.words = WORDS[lang]
        self.error = self.block.locator(".runner-error")
        self.edit(self.words["edit"])

    def change(self, old: str, new: str) -> None:
        """Change the one place of the program that reads so."""
        text = self.text
        assert text.count(old) == 1, old
        self.editor.evaluate(
            "(e, [from, to, insert]) => e.cmTile.view.dispatch({ changes: { from, to, insert } })",
            [text.index(old), text.index(old) + len(old), new],
        )

    def press(self, act: str = "run") -> None:
        """Press Run or Check, and wait for the end."""
        self.button(self.words[act]).click()
        expect(self.block).to_have_attribute("aria-busy", "false", timeout=SOON)


@pytest.fixture
def panel(open_page: Open) -> Callable[..., RealPanel]:
    return lambda path, lang="en": RealPanel(open_page(f"{LANGUAGES[lang]}{path}/"), lang)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_the_minimum_a_split_reads_another_row(panel: Callable, lang: str) -> None:
    """L3: told by tensor, index, program; the line is marked; the page's own program is right again."""
    here = panel("lessons/l3_split_kv_decode", lang)
    here.change("tl.minimum(page_begin + pages_per_split, num_pages)", "page_begin + pages_per_split")
    here.press()
    for part in ("block_table_ptr[1, 0]", "program (0, 0, 3)"):
        expect(here.error).to_contain_text(part)
    expect(here.block.locator(".cm-error-line")).to_contain_text("= attend_pages(")
    assert ("序列" in here.error.inner_text()) == (lang == "zh")
    here.button({"zh": "还原", "en": "Reset"}[lang]).click()
    here.press()
    expect(here.printed).to_contain_text("largest difference to one split")
    expect(here.error).to_have_count(0)


def test_the_row_without_weight_becomes_nan(panel: Callable) -> None:
    here = panel("lessons/online_softmax")
    here.change('m_safe = tl.where(m_new > -float("inf"), m_new, 0.0)', "m_safe = m_new")
    here.press()
    expect(here.printed).to_contain_text("every score -inf: o = nan")
    expect(here.printed).to_contain_text("blocks of 2: o = 26.2089, lse = 3.4402")


def test_steps_mark_the_line_in_the_editor(panel: Callable) -> None:
    here = panel("lessons/online_softmax")
    here.press()
    here.block.locator(".stepper").get_by_role("button").last.click()
    expect(here.block.locator(".stepper-code")).to_be_visible(timeout=SOON)
    expect(here.block.locator(".cm-step-line")).to_have_count(1)


def test_a_skeleton_is_refused_and_its_solution_passes(panel: Callable) -> None:
    here = panel("problems/online_softmax")
    here.press("check")
    report = here.block.locator(".runner-report")
    expect(report).to_be_visible()
    expect(here.block.locator(".passed")).to_have_count(0)
    skeleton = skeletons.load("online_softmax", "loop")
    here.change(skeleton.text(), skeleton.answer())
    assert here.text == program("online_softmax")
    here.press("check")
    expect(here.block.locator(".runner-report.passed")).to_be_visible()


def test_the_page_s_own_kernel_passes(panel: Callable) -> None:
    """A lesson's program is no level's; it is checked all the same."""
    here = panel("lessons/online_softmax", "zh")
    here.press("check")
    expect(here.block.locator(".runner-report.passed")).to_be_visible()


@pytest.mark.parametrize(("lesson", "level"), [("l0_shapes", "heads"), ("l1_paged_cache", "table")])
def test_a_problem_in_plain_python_runs_too(panel: Callable, lesson: str, level: str) -> None:
    here = panel(f"problems/{lesson}", "zh")
    here.press()
    expect(here.error).to_be_visible()
    skeleton = skeletons.load(lesson, level)
    here.change(skeleton.text(), skeleton.answer())
    here.press()
    expect(here.error).to_have_count(0)
    expect(here.printed).not_to_be_empty()
    here.press("check")
    expect(here.block.locator(".runner-report.passed")).to_be_visible()
