"""Diagrams that light what a node is connected to: by pointer, keys and touch."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.site.test_browser import PHONE
from tests.site.test_built_site import LANGUAGES

LESSON = "lessons/l3_split_kv_decode/"
KERNELS, HEAD = "figure-l3-two-kernels-title", "figure-l3-combine-head-title"
Open = Callable[..., Page]


class Diagram:
    def __init__(self, page: Page, title: str = KERNELS) -> None:
        self.page, self.svg = page, page.locator(f"svg:has(#{title})")
        expect(self.svg).to_have_class("links")
        self.svg.scroll_into_view_if_needed()

    def node(self, name: str) -> Locator:
        return self.svg.locator(f'[data-node="{name}"]')

    def lit(self) -> set[str]:
        return set(
            self.svg.evaluate("e => [...e.querySelectorAll('[data-node].lit')].map(n => n.dataset.node)")
        )

    def edges(self) -> set[str]:
        script = (
            "e => [...e.querySelectorAll('[data-from].lit')].map(n => `${n.dataset.from} > ${n.dataset.to}`)"
        )
        return set(self.svg.evaluate(script))

    def is_dark(self) -> None:
        expect(self.svg).not_to_have_class("lighting")
        assert not self.lit() and not self.edges()


@pytest.fixture
def kernels(open_page: Open) -> Diagram:
    return Diagram(open_page("en/" + LESSON))


def test_pointing_at_a_tensor_lights_its_kernels(kernels: Diagram) -> None:
    kernels.node("o_partial").hover()
    assert kernels.lit() == {"split", "o_partial", "combine"}
    assert kernels.edges() == {"split > o_partial", "o_partial > combine"}
    kernels.node("q").hover()
    assert kernels.lit() == {"q", "split"}
    kernels.page.mouse.move(2, 300)
    kernels.is_dark()


def test_not_by_colour_alone(kernels: Diagram) -> None:
    """Frames appear, lines get thicker, and all the rest fades."""
    frame = kernels.node("split").locator("rect").first
    line = kernels.svg.locator('[data-from="q"] path').first
    width, stroke = line.evaluate("e => getComputedStyle(e).strokeWidth"), "e => getComputedStyle(e).stroke"
    assert frame.evaluate(stroke) == "none"
    kernels.node("q").hover()
    kernels.page.wait_for_timeout(250)
    assert frame.evaluate(stroke) != "none" and line.evaluate("e => getComputedStyle(e).strokeWidth") > width
    assert float(kernels.node("lse").evaluate("e => getComputedStyle(e).opacity")) < 0.5
    assert float(kernels.node("q").evaluate("e => getComputedStyle(e).opacity")) == 1


def test_keys_go_from_node_to_node_and_escape_lets_go(kernels: Diagram) -> None:
    keys = kernels.page.keyboard
    kernels.node("q").focus()
    assert kernels.lit() == {"q", "split"}
    keys.press("ArrowRight")
    expect(kernels.node("k_cache")).to_be_focused()
    assert kernels.lit() == {"k_cache", "split"}
    keys.press("ArrowLeft")
    keys.press("ArrowLeft")  # from the first to the last
    expect(kernels.node("lse")).to_be_focused()
    assert kernels.lit() == {"combine", "lse"}
    keys.press("Enter")
    expect(kernels.node("lse")).to_have_attribute("aria-pressed", "true")
    keys.press("Tab")  # one stop a diagram
    assert not kernels.svg.evaluate("e => e.contains(document.activeElement)")
    assert kernels.lit() == {"combine", "lse"}  # kept
    keys.press("Escape")
    kernels.is_dark()
    expect(kernels.node("lse")).to_have_attribute("aria-pressed", "false")
    assert kernels.svg.locator('[tabindex="0"]').count() == 1


@pytest.mark.parametrize("lang", LANGUAGES)
def test_connections_are_in_a_nodes_name(open_page: Open, lang: str) -> None:
    page = open_page(LANGUAGES[lang] + LESSON)
    diagram = Diagram(page)
    told = {
        "zh": "split kernel：来自 q、k_cache、v_cache、block_table、seq_lens；去往 o_partial、lse_partial",
        "en": "split kernel: from q, k_cache, v_cache, block_table, seq_lens; to o_partial, lse_partial",
    }
    expect(diagram.node("split")).to_have_attribute("aria-label", told[lang])
    assert diagram.svg.get_by_role("button").count() == 11


def test_the_head_shows_routes_that_are_hidden_otherwise(open_page: Open) -> None:
    head = Diagram(open_page("en/" + LESSON), HEAD)
    route = head.svg.locator('[data-from="lse1"][data-to="M"]')
    expect(route).to_be_hidden()
    head.node("lse1").hover()
    expect(route).to_be_visible()
    assert head.lit() == {"lse1", "w1", "M"}
    head.node("lse3").hover()  # an empty split has no say in M
    assert head.lit() == {"lse3", "w3"}
    head.node("o").hover()
    assert head.lit() == {"o", *(f"{x}{s}" for x in "ow" for s in range(4))}
    head.node("M").hover()
    assert head.lit() == {"M", "lse", "lse0", "lse1", "lse2", "w0", "w1", "w2", "w3"}


def test_a_tap_keeps_it_lit_and_another_lets_go(open_page: Open) -> None:
    diagram = Diagram(open_page("en/" + LESSON, has_touch=True, **PHONE))
    diagram.node("split").tap()
    assert diagram.lit() == {
        "split",
        "q",
        "k_cache",
        "v_cache",
        "block_table",
        "seq_lens",
        "o_partial",
        "lse_partial",
    }
    diagram.node("q").tap()
    assert diagram.lit() == {"q", "split"}
    diagram.svg.tap(position={"x": 4, "y": 4})
    diagram.is_dark()
    diagram.node("q").tap()
    diagram.node("q").tap()
    diagram.is_dark()


def test_no_motion_where_none_is_wanted(open_page: Open) -> None:
    diagram = Diagram(open_page("en/" + LESSON, reduced_motion="reduce"))
    assert diagram.node("q").evaluate("e => getComputedStyle(e).transitionDuration") == "0s"


def test_without_javascript_it_is_a_picture(open_page: Open) -> None:
    page = open_page("en/" + LESSON, java_script_enabled=False)
    svg = page.locator(f"svg:has(#{KERNELS})")
    expect(svg).to_have_attribute("role", "img")
    assert svg.locator("[tabindex], [role=button]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier(open_page: Open, scheme: str) -> None:
    page = open_page("en/" + LESSON, color_scheme=scheme)
    for title in (KERNELS, HEAD):
        diagram = Diagram(page, title)
        diagram.node("o").hover()
    found = Axe().run(page, context=".drawing")
    assert found.violations_count == 0, found.generate_report()
