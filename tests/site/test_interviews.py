"""Interview pages: their plan of minutes, the clock over it, and the rubric that can be ticked."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.site.test_browser import PHONE, wait_until_drawn

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = sorted(file.stem for file in (DOCS / "zh/interviews").glob("*.md"))
PATH = "interviews/l2_paged_decode/"
SECTIONS = ["prompt", "clock", "clarify", "nudges", "rubric", "rubric-must", "rubric-hire", "rubric-strong",
            "follow-ups"]  # fmt: skip
Open = Callable[..., Page]


def text_of(lang: str, name: str) -> str:
    return (DOCS / lang / f"interviews/{name}.md").read_text(encoding="utf-8")


def minutes_of(text: str) -> list[int]:
    """The minutes of each phase, from the table in the clock's block."""
    block = re.search(r'<div class="interview-clock".*?</div>', text, re.S)[0]
    return [int(number) for number in re.findall(r"^\| [^|]+ \| (\d+) \| [^|]+ \|$", block, re.M)]


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_is_of_35_to_45_minutes_in_both_languages(name: str) -> None:
    zh, en = (text_of(lang, name) for lang in ("zh", "en"))
    minutes = minutes_of(zh)
    assert minutes == minutes_of(en) and len(minutes) >= 4
    assert 35 <= sum(minutes) <= 45
    for text in (zh, en):
        assert f'data-interview="{name}"' in text
        assert re.findall(rf"^.*\b{sum(minutes)}(?: 分钟| minutes)", text, re.M), "the total is said up front"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_interview_has_its_parts_and_names_lines(name: str, lang: str) -> None:
    text = text_of(lang, name)
    assert re.findall(r"\{#([\w-]+)\}", text)[1:] == SECTIONS
    rubric, follow_ups = text.split("{#rubric}")[1].split("{#follow-ups}")
    assert len(re.findall(r"^- ", rubric, re.M)) >= 15 and rubric.count("{{ line:") >= 8
    questions = re.findall(r"^\d+\. .*$", follow_ups, re.M)
    assert len(questions) >= 7
    assert all("{{ line:" in question or "](" in question for question in questions)


def open_interview(open_page: Open, path: str = PATH, **options: object) -> Page:
    """The page, where time passes only as the test says."""
    page = open_page("404.html", reduced_motion="reduce", **options)
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.goto(page.url.replace("404.html", path))
    expect(page.locator(".clock")).to_be_visible()
    return page


def face(page: Page) -> Locator:
    return page.get_by_role("timer")


@pytest.mark.parametrize(
    ("path", "start", "pause", "go_on", "reset"),
    [(PATH, "开始", "暂停", "继续", "归零"), (f"en/{PATH}", "Start", "Pause", "Go on", "Reset")],
)
def test_the_clock_starts_pauses_and_resets(
    open_page: Open, path: str, start: str, pause: str, go_on: str, reset: str
) -> None:
    page = open_interview(open_page, path)
    now = page.locator(".interview-clock tr[aria-current=step]")
    expect(face(page)).to_have_text("40:00")
    expect(now).to_have_count(0)
    page.get_by_role("button", name=start, exact=True).press("Enter")
    page.clock.run_for(61_000)
    expect(face(page)).to_have_text("38:59")
    expect(now).to_have_count(1)
    page.get_by_role("button", name=pause, exact=True).press("Space")
    page.clock.run_for(60_000)
    expect(face(page)).to_have_text("38:59")
    page.get_by_role("button", name=go_on, exact=True).click()
    page.clock.run_for(10_000)
    expect(face(page)).to_have_text("38:49")
    page.get_by_role("button", name=reset, exact=True).click()
    expect(face(page)).to_have_text("40:00")
    expect(page.get_by_role("button", name=start, exact=True)).to_be_visible()
    expect(now).to_have_count(0)


def test_it_speaks_where_a_phase_begins_and_when_time_is_up_and_not_else(open_page: Open) -> None:
    page = open_interview(open_page, f"en/{PATH}")
    spoken = page.locator(".clock [aria-live=polite]")
    rows = page.locator(".interview-clock tbody tr")
    minutes = [int(text) for text in rows.locator("td:nth-child(2)").all_text_contents()]
    assert minutes == minutes_of(text_of("en", "l2_paged_decode"))
    page.evaluate("""() => {
        window.told = []
        const spoken = document.querySelector(".clock [aria-live=polite]")
        new MutationObserver(() => told.push(spoken.textContent)).observe(spoken, { childList: true })
    }""")
    expect(spoken).to_have_text("")
    page.get_by_role("button", name="Start").click()
    for i, length in enumerate(minutes):
        page.clock.run_for(1000)
        expect(rows.nth(i)).to_have_attribute("aria-current", "step")
        page.clock.run_for(length * 60_000 - 1000)
    page.clock.run_for(95_000)
    expect(face(page)).to_have_text("+1:35")
    expect(page.locator("tr[aria-current]")).to_have_count(0)
    told = page.evaluate("told")
    assert len(told) == len(minutes) + 1 and told[-1] == "Time is up."
    names = rows.locator("td:first-child").all_text_contents()
    assert told[:-1] == [f"Now: {name}, {m} minutes." for name, m in zip(names, minutes, strict=True)]


def test_time_goes_on_through_a_reload_and_in_the_other_language(open_page: Open) -> None:
    page = open_interview(open_page)
    page.get_by_role("button", name="开始").click()
    page.locator(".rubric input").nth(2).check()
    page.clock.run_for(30_000)
    page.reload()
    expect(face(page)).to_have_text("39:30")
    page.clock.run_for(30_000)
    page.goto(page.url.replace(PATH, f"en/{PATH}"))
    expect(face(page)).to_have_text("39:00")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".rubric input").nth(2)).to_be_checked()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_a_running_clock_stays_in_view_and_covers_no_heading(open_page: Open, options: dict) -> None:
    page = open_interview(open_page, **options)
    page.get_by_role("button", name="开始").click()
    page.goto(f"{page.url}#follow-ups")
    expect(face(page)).to_be_in_viewport()
    clock, heading = (page.locator(box).bounding_box() for box in (".clock", "#follow-ups"))
    assert clock["y"] + clock["height"] <= heading["y"]


def test_points_are_ticked_counted_and_cleared(open_page: Open) -> None:
    page = open_interview(open_page, f"en/{PATH}")
    lists = page.locator(".rubric ul.ticks")
    expect(lists).to_have_count(3)
    count = page.locator(".rubric .ticked").first
    size = lists.first.locator("input").count()
    expect(count).to_have_text(f"0 of {size} ticked")
    lists.first.locator("label").first.click(position={"x": 60, "y": 8})
    lists.first.locator("input").nth(1).press("Space")
    expect(count).to_have_text(f"2 of {size} ticked")
    for box in page.locator(".rubric input").all():
        assert box.evaluate("e => e.labels[0].textContent.trim()")
    page.get_by_role("button", name="Clear the ticks").click()
    expect(count).to_have_text(f"0 of {size} ticked")
    expect(page.locator(".rubric input:checked")).to_have_count(0)


def test_a_line_in_a_point_is_a_link_and_ticks_nothing(open_page: Open) -> None:
    page = open_interview(open_page)
    page.locator(".rubric a.line-ref").first.click()
    page.wait_for_url("**/source/**#L*")
    page.go_back()
    expect(page.locator(".rubric input:checked")).to_have_count(0)


@pytest.mark.parametrize("lang", ["", "en/"])
def test_without_scripts_plan_and_rubric_are_text(open_page: Open, lang: str) -> None:
    page = open_page(lang + PATH, java_script_enabled=False)
    expect(page.locator(".clock")).to_have_count(0)
    for part in (".interview-clock table", "#rubric-must", ".rubric li"):
        expect(page.locator(part).first).to_be_visible()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("lang", "options"),
    [("", {"color_scheme": "light"}), ("en/", {"color_scheme": "dark", **PHONE})],
    ids=["zh-light", "en-dark-phone"],
)
def test_no_serious_barrier(open_page: Open, name: str, lang: str, options: dict) -> None:
    for folder in ("interviews", "problems"):
        if not (DOCS / f"zh/{folder}/{name}.md").is_file():
            continue
        page = open_page(f"{lang}{folder}/{name}/", reduced_motion="reduce", **options)
        wait_until_drawn(page)
        if folder == "interviews":
            page.locator(".clock-run").click()
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        violations = Axe().run(page).response["violations"]
        serious = [
            f"{page.url} {violation['id']}: {node['target']} {node['failureSummary']}"
            for violation in violations
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]
        assert not serious, "\n".join(serious)
