"""The page map in a browser."""

from collections.abc import Callable

from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

pytest_plugins = ["tests.site.recorded_runs"]
Open = Callable[..., Tab]


def lit_programs(tab: Tab) -> list[str]:
    return tab.locator(".page-map tbody th.lit").all_text_contents()


def rows(tab: Tab) -> list[list[str]]:
    """Program and pages of each row of the page map."""
    return [
        [row.locator("th").inner_text(), *row.locator("td.page-cell").all_text_contents()]
        for row in tab.locator(".page-map tbody tr").all()
    ]


def test_rows_are_programs_with_their_pages_in_order(views: Open) -> None:
    tab = views("l3")
    assert rows(tab)[:4] == [
        ["(0, 0, 0)", "7", "2"],
        ["(0, 0, 1)", "9"],
        ["(0, 1, 0)", "7", "2"],
        ["(0, 1, 1)", "9"],
    ]
    empty = tab.locator(".page-map tbody tr").last
    expect(empty).to_contain_text("read no page")
    figures = tab.locator(".page-map-figures")
    expect(figures).to_contain_text("30,720 B = K 15,360 B + V 15,360 B")
    expect(figures.locator("div").last).to_have_text("pages never read5")
    expect(tab.locator(".page-map-verdict")).to_have_text(
        "Every byte that is needed was read once: less is not possible."
    )


def test_pointing_at_a_page_lights_all_programs_that_read_it(views: Open) -> None:
    tab = views("l2")
    tab.locator(".page-map-table td", has_text="4").first.hover()
    assert lit_programs(tab) == ["(1, 0)", "(1, 1)"]
    assert tab.locator(".page-map .page-cell.lit").all_text_contents() == ["4", "4", "4"]  # in the pool, too
    tab.locator(".page-map-verdict").hover()
    assert lit_programs(tab) == []


def test_choosing_a_page_keeps_it_and_says_what_became_of_it(views: Open) -> None:
    tab = views("l2")
    tab.locator(".page-map-pool [data-page='7']").click()
    said = tab.locator(".page-map-said")
    expect(said).to_have_text(
        "Page 7, which holds 16 of 16 tokens: read by 2 programs, (0, 0) and (0, 1); "
        "KV heads 0 and 1; 8,192 B in all, no byte twice."
    )
    tab.locator(".page-map-verdict").hover()
    assert lit_programs(tab) == ["(0, 0)", "(0, 1)"]
    tab.keyboard.press("Escape")
    assert lit_programs(tab) == []


def test_the_map_by_keyboard_alone(views: Open) -> None:
    tab = views("l2")
    tab.locator(".page-map select").focus()
    tab.keyboard.press("Tab")  # the pool is one stop, the table the next
    for _ in range(4):
        tab.keyboard.press("ArrowRight")
    expect(tab.locator(".page-map-pool [data-page='4']")).to_be_focused()
    assert lit_programs(tab) == ["(1, 0)", "(1, 1)"]
    tab.keyboard.press("Tab")
    first = tab.locator(".page-map-table td.page-cell").first
    expect(first).to_be_focused()
    for key in ("End", "ArrowDown", "ArrowDown"):  # 9 of (0, 0), 9 of (0, 1), the last of (1, 0)
        tab.keyboard.press(key)
    expect(tab.locator(".page-map-said")).to_contain_text(
        "Page number 2 of program (1, 0): physical page 1, KV head 0, 4 of 16 tokens"
    )
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")  # below are programs that read nothing
    expect(tab.locator(".page-map-said")).to_contain_text("program (1, 1)")
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("button", name="Step through this program")).to_be_focused()
    tab.keyboard.press("Enter")
    assert tab.evaluate("wants") == [{"kernel": "_paged_decode_kernel", "program": [1, 1, 0], "launch": 1}]


def test_another_launch_and_bytes_that_were_read_again(views: Open) -> None:
    tab = views("l2", "zh")
    verdict = tab.locator(".page-map-verdict")
    expect(verdict).to_have_text("需要的每个字节恰好读了一次，这已经是下限。")  # the last launch comes first
    assert len(rows(tab)) == 6
    tab.locator(".page-map select").select_option(index=0)
    expect(verdict).to_have_text("需要的每个字节平均读了 4 次。")
    expect(tab.locator(".page-map-figures")).to_contain_text("4.00×")
    assert len(rows(tab)) == 24
    expect(tab.locator(".page-map-legend")).to_contain_text("有字节读了不止一次")


def test_the_map_in_words(views: Open) -> None:
    tab = views("l2")
    text = tab.locator(".page-map-text")
    text.locator("summary").click()
    lines = text.locator("li").all_text_contents()
    assert lines[0] == "Program (0, 0) read pages 7, 2, 9: K 5,120 B + V 5,120 B."
    assert lines[5] == "Program (2, 1) read no page."
    assert "Page 0, which holds no token: no program read it." in lines


def test_a_run_without_a_cache_says_so(views: Open) -> None:
    tab = views("nothing")
    expect(tab.locator(".page-map")).to_contain_text("This run read no KV cache")
    expect(tab.locator(".stepper")).to_contain_text("This run launched no kernel.")
    expect(tab.locator(".stepper form")).to_be_hidden()
