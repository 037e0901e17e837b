"""The charts as a reader meets them: on L3's page, and L7's from a made-up record."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from scripts.bake_l7_charts import L7_CHARTS
from tests.helpers.l7_record import l7_record
from tests.site.test_browser import PHONE

LESSON = "en/lessons/l3_split_kv_decode/"
Open = Callable[..., Page]
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>Charts</title>
<link rel="stylesheet" href="/stylesheets/site.css">
<link rel="stylesheet" href="/stylesheets/chart.css">
<style>body {{ background: var(--md-default-bg-color) }}</style></head><body data-md-color-scheme="default">
<main class="md-content"><article class="md-typeset">{}</article></main>
<script type="module" src="/javascripts/site.mjs"></script></body></html>"""


def sweep(open_page: Open, **options: object) -> Locator:
    """The chart of L3's page, live."""
    figure = open_page(LESSON, **options).locator("figure.chart").first
    expect(figure.locator(".chart-scales")).to_be_visible()
    figure.locator(".chart-plot").scroll_into_view_if_needed()
    return figure


def made_up(open_page: Open, name: str, **options: object) -> Locator:
    """A chart of L7, live."""
    page = open_page("404.html", **options)
    body = PAGE.format(L7_CHARTS[name](l7_record(), "en"))
    page.route("**/made_up.html", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(page.url.replace("404", "made_up"))
    figure = page.locator("figure.chart")
    expect(figure.locator(".chart-scales")).to_be_visible()
    return figure


def mark(figure: Locator, row: int) -> Locator:
    """The mark that shows, of the two SVGs."""
    return figure.locator(f'[data-row="{row}"]').locator("visible=true")


def row_text(figure: Locator, row: int) -> list[str]:
    return [text.strip() for text in figure.locator("tbody tr").nth(row).locator("td").all_text_contents()]


def told(figure: Locator) -> list[str]:
    """The values that the tip shows, its title first."""
    tip = figure.locator(".chart-tip")
    return [tip.locator("strong").text_content(), *tip.locator("dd").all_text_contents()]


def test_pointing_at_a_point_shows_its_figures(open_page: Open) -> None:
    figure = sweep(open_page)
    tip = figure.locator(".chart-tip")
    expect(tip).to_be_hidden()
    mark(figure, 4).hover(force=True)
    expect(tip).to_be_visible()
    assert told(figure) == row_text(figure, 4)
    assert "p50, us" in tip.locator("dt").all_text_contents()
    plot, box = figure.locator(".chart-plot").bounding_box(), tip.bounding_box()
    assert plot["x"] <= box["x"] and box["x"] + box["width"] <= plot["x"] + plot["width"] + 1
    assert plot["y"] <= box["y"] and box["y"] + box["height"] <= plot["y"] + plot["height"] + 1
    figure.page.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_arrow_keys_go_from_point_to_point_and_are_spoken(open_page: Open) -> None:
    figure = sweep(open_page)
    keys, spoken = figure.page.keyboard, figure.locator(".chart-spoken")
    expect(spoken).to_have_attribute("aria-live", "polite")
    figure.locator(".chart-scales button").last.focus()
    keys.press("Tab")
    expect(figure.locator(".chart-plot")).to_be_focused()
    assert told(figure) == row_text(figure, 0)
    keys.press("ArrowRight")
    assert told(figure) == row_text(figure, 1)
    first, splits, *_, last = row_text(figure, 1)
    expect(spoken).to_contain_text(first)
    expect(spoken).to_contain_text(last)
    keys.press("ArrowDown")  # the next series, at the same number of splits
    second = figure.locator(".chart-legend li").nth(1).text_content()
    assert told(figure)[:2] == [second, splits]
    keys.press("Home")
    assert told(figure)[1].split()[0] == "1"
    keys.press("End")
    series = told(figure)[0]
    own = [r for r in range(figure.locator("tbody tr").count()) if row_text(figure, r)[0] == series]
    assert told(figure) == row_text(figure, own[-1])
    keys.press("ArrowRight")
    assert told(figure) == row_text(figure, own[-1])
    keys.press("Escape")
    expect(figure.locator(".chart-tip")).to_be_hidden()


def test_the_legend_shows_and_hides_a_series(open_page: Open) -> None:
    figure = sweep(open_page)
    button = figure.locator(".chart-legend button").first
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(figure.locator('[data-row="0"]').first).to_be_hidden()
    figure.locator(".chart-plot").focus()
    figure.page.keyboard.press("ArrowRight")
    assert told(figure)[0] == figure.locator(".chart-legend li").nth(1).text_content()
    button.click()
    expect(figure.locator('[data-row="0"]').first).to_be_visible()


def test_the_scale_moves_the_points_and_brings_its_own_ticks(open_page: Open) -> None:
    figure = sweep(open_page)
    last = figure.locator('.chart-wide [data-row="3"]')

    def place() -> dict:  # in the plot, wherever on the page that is by now
        box, plot = last.bounding_box(), figure.locator(".chart-plot").bounding_box()
        return {"x": box["x"] - plot["x"], "y": box["y"] - plot["y"]}

    before = place()
    log, linear = figure.locator(".chart-scales button").all()
    linear.click()
    expect(linear).to_have_attribute("aria-pressed", "true")
    expect(log).to_have_attribute("aria-pressed", "false")
    after = place()
    assert after["x"] == pytest.approx(before["x"], abs=0.5) and after["y"] > before["y"] + 20
    ticks = figure.locator('.chart-wide g[data-scale="linear"]').first
    expect(ticks.locator("text", has_text="0").first).to_be_visible()
    expect(figure.locator('.chart-wide g[data-scale="log"]').first).to_be_hidden()
    log.click()
    assert place() == pytest.approx(before, abs=0.5)


def test_on_a_phone_the_narrow_drawing_fits_and_a_tap_tells(open_page: Open) -> None:
    figure = sweep(open_page, **PHONE, has_touch=True)
    expect(figure.locator(".chart-wide")).to_be_hidden()
    svg = figure.locator(".chart-narrow svg")
    assert svg.bounding_box()["width"] <= 360
    box = mark(figure, 2).bounding_box()
    figure.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = figure.locator(".chart-tip")
    expect(tip).to_be_visible()
    assert told(figure) == row_text(figure, 2)
    assert tip.bounding_box()["y"] >= svg.bounding_box()["y"] + svg.bounding_box()["height"] - 1
    assert figure.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_scripts_the_chart_its_legend_and_its_data_are_there(open_page: Open) -> None:
    page = open_page(LESSON, java_script_enabled=False)
    figure = page.locator("figure.chart").first
    expect(figure.locator(".chart-wide svg")).to_be_visible()
    expect(figure.locator(".chart-legend li").first).to_be_visible()
    expect(figure.locator("button")).to_have_count(2)  # of the scale, which need scripts:
    expect(figure.locator(".chart-scales")).to_be_hidden()
    figure.locator("summary").click()
    expect(figure.locator("tbody tr").first).to_be_visible()


def test_the_ladder_is_walked_down_and_across(open_page: Open) -> None:
    figure = made_up(open_page, "ladder")
    figure.locator(".chart-plot").focus()
    keys = figure.page.keyboard
    keys.press("ArrowDown")
    assert told(figure)[:2] == ["1 × 32768", "packed"]
    keys.press("ArrowRight")
    assert told(figure)[:2] == ["8 × 4096", "packed"]
    keys.press("ArrowUp")
    assert told(figure)[:2] == ["8 × 4096", "naive"]
    wide = mark(figure, 2).bounding_box()["x"]
    figure.locator('button[data-scale="near"]').click()
    assert mark(figure, 2).bounding_box()["x"] > wide + 20


@pytest.mark.parametrize("name", L7_CHARTS)
@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_no_barrier(open_page: Open, name: str, scheme: str) -> None:
    figure = made_up(open_page, name)
    page = figure.page
    page.locator("body").evaluate("(body, scheme) => { body.dataset.mdColorScheme = scheme }", scheme)
    figure.locator("summary").click()
    figure.locator(".chart-legend button").first.click()
    violations = Axe().run(page).response["violations"]
    serious = [
        (v["id"], v["nodes"][0]["target"]) for v in violations if v["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_in_print_the_tools_are_gone(open_page: Open) -> None:
    figure = made_up(open_page, "bandwidth")
    figure.page.emulate_media(media="print")
    expect(figure.locator(".chart-scales")).to_be_hidden()
    expect(figure.locator(".chart-legend button").first).to_be_visible()


def test_pages_without_a_chart_load_none_of_it(open_page: Open) -> None:
    page = open_page("404.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page.url.replace("404.html", "en/glossary/"), wait_until="networkidle")
    assert asked and not any("chart" in url for url in asked)
