"""The stepper in a browser, and what both views have to keep to."""

import json
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab

pytest_plugins = ["tests.site.recorded_runs"]
Open = Callable[..., Tab]

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}


def slider(tab: Tab) -> Locator:
    return tab.get_by_role("slider")


def value_of(run: dict, name: str, step: int) -> dict:
    steps = run["steps"]
    call = steps["steps"][step]["call"]
    taken = [
        s["changed"][name] for s in steps["steps"][: step + 1] if s["call"] == call and name in s["changed"]
    ]
    return steps["values"][taken[-1]]


def test_it_begins_in_the_loop_and_marks_the_line(views: Open, runs: dict) -> None:
    tab = views("l2")
    steps = runs["l2"]["steps"]
    first = steps["iterations"][0]["first"]
    expect(slider(tab)).to_have_value(str(first))
    expect(tab.locator(".stepper-where")).to_have_text(
        f"step {first + 1} of {len(steps['steps'])} · page = 0 (iteration 1 of 3)"
    )
    expect(tab.locator(".stepper-code")).to_contain_text("for page in range(page_end - page_begin):")
    place = steps["places"][steps["steps"][first]["place"]]
    assert tab.evaluate("lines") == [place["line"]]


def test_keys_step_and_go_from_iteration_to_iteration(views: Open, runs: dict) -> None:
    tab = views("l2")
    steps = runs["l2"]["steps"]
    starts = [i["first"] for i in steps["iterations"]]
    last = len(steps["steps"]) - 1
    slider(tab).focus()
    for key, wanted in [
        ("ArrowRight", starts[0] + 1), ("ArrowUp", starts[0] + 2), ("ArrowLeft", starts[0] + 1),
        ("PageUp", starts[1]), ("Shift+ArrowRight", starts[2]), ("PageDown", starts[1]),
        ("Shift+ArrowLeft", starts[0]), ("End", last), ("ArrowRight", last), ("Home", 0), ("ArrowLeft", 0),
        ("PageUp", starts[0]),
    ]:  # fmt: skip
        tab.keyboard.press(key)
        expect(slider(tab)).to_have_value(str(wanted))
    expect(slider(tab)).to_have_attribute(
        "aria-valuetext", f"step {starts[0] + 1} of {last + 1} · page = 0 (iteration 1 of 3), line 116"
    )
    assert all(line is not None for line in tab.evaluate("lines"))  # all of it is in the reader's own text


def test_buttons_the_slider_and_the_list_of_iterations(views: Open, runs: dict) -> None:
    tab = views("l2")
    starts = [i["first"] for i in runs["l2"]["steps"]["iterations"]]
    last = len(runs["l2"]["steps"]["steps"]) - 1
    for name, wanted in [
        ("One step forward", starts[0] + 1), ("Next iteration", starts[1]), ("One step back", starts[1] - 1),
        ("Previous iteration", starts[0]), ("Last step", last), ("First step", 0),
    ]:  # fmt: skip
        tab.get_by_role("button", name=name, exact=True).click()
        expect(slider(tab)).to_have_value(str(wanted))
    expect(tab.get_by_role("button", name="One step back")).to_have_attribute("aria-disabled", "true")
    tab.get_by_label("go to").select_option(label="page = 2 (iteration 3 of 3)")
    expect(slider(tab)).to_have_value(str(starts[2]))
    slider(tab).fill(str(starts[1]))  # as a drag does
    expect(tab.locator(".stepper-where")).to_contain_text("page = 1")


def test_what_changed_and_the_exact_values(views: Open, runs: dict) -> None:
    tab = views("l2")
    steps = runs["l2"]["steps"]
    at = next(i for i, s in enumerate(steps["steps"]) if "acc" in s["changed"] and s["at"] == 1)
    slider(tab).fill(str(at))
    expect(tab.locator(".stepper-changes li")).to_have_text(["acc 256 of the 256 shown elements differ"])
    tile = tab.locator(".stepper-tile", has=tab.locator("summary > code", has_text="acc"))
    cells = tile.locator("td[title]")
    shown = value_of(runs["l2"], "acc", at)
    assert shown["shape"] == [16, 32] and cells.count() == 256
    expect(tile).to_contain_text("the first 16 × 16 are shown")
    assert cells.locator("xpath=self::*[contains(@class, 'differs')]").count() == 256
    tab.get_by_label("All significant digits").check()
    read = "cells => cells.map(cell => Math.fround(Number(cell.textContent.replace('−', '-'))))"
    assert tile.locator("td[title]").evaluate_all(read) == [x for row in shown["data"] for x in row]
    first = tile.locator("td[title]").first
    assert first.get_attribute("title") == f"acc[0, 0] = {first.inner_text()}"
    for name in ("m_i", "l_i", "acc", "p"):  # the state and the weights are open without being asked for
        box = tab.locator(".stepper-variables > details").first.locator(
            "details", has=tab.locator(f"summary > code:text-is('{name}')")
        )
        assert box.first.evaluate("box => box.open"), name


def test_masked_scores_are_infinities(views: Open, runs: dict) -> None:
    tab = views("l2")
    steps = runs["l2"]["steps"]
    at = [i for i, s in enumerate(steps["steps"]) if "s" in s["changed"] and s["at"] == 2][-1]
    slider(tab).fill(str(at))
    tile = tab.locator(".stepper-tile", has=tab.locator("summary > code:text-is('s')"))
    assert tile.locator("tbody tr").first.locator("td").all_text_contents()[-8:] == ["−∞"] * 8
    expect(tile.locator("summary")).to_contain_text("least −∞")


def test_lines_of_another_file_are_shown_but_not_marked(views: Open, runs: dict) -> None:
    tab = views("l3")
    expect(tab.locator(".stepper-file")).to_contain_text("_split_kernel")
    expect(tab.locator(".stepper-file")).to_contain_text("kernels/l2_paged_decode.py line 116")
    assert tab.evaluate("lines") == [None]
    slider(tab).focus()
    tab.keyboard.press("Home")
    assert isinstance(tab.evaluate("lines.at(-1)"), int)  # the kernel itself is the reader's


def test_what_the_reader_closed_stays_closed(views: Open) -> None:
    tab = views("l2")
    tab.get_by_role("button", name="Last step").click()
    tab.get_by_role("button", name="Previous iteration").click()
    tile = tab.locator(".stepper-tile", has=tab.locator("summary > code:text-is('p')"))
    tile.locator("summary").click()
    assert not tile.evaluate("box => box.open")
    tab.get_by_role("button", name="One step forward").click()
    assert not tile.evaluate("box => box.open")


def test_another_program_is_asked_for(views: Open) -> None:
    tab = views("plain")
    expect(slider(tab)).to_have_count(0)
    form = tab.locator(".stepper form")
    expect(form).to_contain_text("It runs once more")
    y = form.get_by_label("program y")
    assert y.get_attribute("max") == "1"
    expect(form.get_by_label("program z")).to_be_hidden()
    form.get_by_label("program x").fill("1")
    y.fill("1")
    form.get_by_role("button").click()
    assert tab.evaluate("wants") == [{"kernel": "_paged_decode_kernel", "program": [1, 1, 0], "launch": 0}]
    y.fill("5")  # not in the grid: the browser says so
    form.get_by_role("button").click()
    assert len(tab.evaluate("wants")) == 1


def test_a_program_that_is_not_there(views: Open) -> None:
    tab = views("missing", "zh")
    expect(tab.locator(".stepper-note")).to_have_text(
        "_paged_decode_kernel 没有 program (0, 5, 0)：它的 grid 是 3 × 2 × 1。"
    )


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("options", [{}, {"dark": True}, PHONE], ids=["light", "dark", "phone"])
def test_no_axe_violation_and_nothing_wider_than_the_page(views: Open, lang: str, options: dict) -> None:
    tab = views("l2", lang, **options)
    tab.locator(".page-map-table td.page-cell").nth(1).click()
    tab.evaluate("document.querySelectorAll('.run-view details').forEach(box => { box.open = true })")
    tab.get_by_role("button", name="下一轮" if lang == "zh" else "Next iteration").click()
    found = Axe().run(tab, context="#views").response["violations"]
    assert not found, json.dumps(found, indent=1)[:4000]
    assert tab.evaluate("document.documentElement.scrollWidth") <= tab.viewport_size["width"]


def test_a_phone_steps_and_chooses_by_touch(views: Open) -> None:
    tab = views("l2", "zh", **PHONE)
    tab.locator(".page-map-table td.page-cell").first.tap()
    expect(tab.locator(".page-map-said")).to_contain_text("program (0, 0) 读的第 1 页：物理页 7")
    before = slider(tab).input_value()
    tab.get_by_role("button", name="前进一步").tap()
    assert int(slider(tab).input_value()) == int(before) + 1
    for button in tab.locator(".stepper-buttons button").all():
        box = button.bounding_box()
        assert box and box["width"] >= 24 and box["height"] >= 24
