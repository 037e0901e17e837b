"""The `compiled` block: its HTML without scripts, its errors, and the view that a script makes of it."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab

from scripts.compiled_evidence import FOLDER, evidence
from scripts.compiled_page import link, render
from scripts.library import Library
from scripts.listing import PageError
from scripts.macros import Page, expand, shown_files, shown_kernels
from scripts.site_hook import _named
from tests.site.test_built_site import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
LESSON = "lessons/l2_paged_decode/"
PHONE = {"viewport": {"width": 360, "height": 740}}
Open = Callable[..., Tab]


@pytest.fixture
def library() -> Library:
    return Library(ROOT)


def block(library: Library, *names: str, lang: str = "en") -> BeautifulSoup:
    return BeautifulSoup(render(list(names), library, lang, "../../{}".format), "html.parser")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_table_says_what_the_records_say(library: Library, lang: str) -> None:
    soup = block(library, "l2_packed", "l2_naive", lang=lang)
    assert [table.caption.code.text for table in soup.select("table")] == [
        "_paged_decode_kernel",
        "_naive_paged_decode_kernel",
    ]
    rows = soup.select("#compiled-l2_packed tbody tr")
    assert [row.th.text.split()[0] for row in rows] == ["sm_80", "sm_90", "sm_120", "gfx942"]
    seen = evidence("l2_packed", "sm_90")
    cells = [cell.text for cell in rows[1].select("td")]
    assert cells[:4] == ["1 × 7", str(seen.num_regs), str(seen.shared_bytes), "0"]
    assert int(cells[4]) == seen.opcodes().total()
    assert cells[8] == str(seen.count("HMMA", loop=True)) == "32"
    assert all(len(row.find_all(["td", "th"])) == 13 for row in rows)


def test_the_source_is_that_of_the_functions_with_their_line_numbers(library: Library) -> None:
    template = block(library, "l3_split").template
    files = [file["data-file"] for file in template.select("[data-file]")]
    assert files == ["kernels/l3_split_kv_decode.py", "kernels/l2_paged_decode.py"]
    for file in template.select("[data-file]"):
        source = library.source(file["data-file"])
        for row in file.select("[data-no]"):
            text = "".join(row.find_all(string=True))
            assert text.split() == source.lines[int(row["data-no"])].split()


def test_the_data_name_files_and_stages(library: Library) -> None:
    about = json.loads(block(library, "l2_packed").div["data-compiled"])["l2_packed"]
    assert about["targets"]["sm_90"] == {
        "gpu": "H100, H200", "url": "../../compiled/l2_packed.sm_90.json", "stages": ["ttgir", "ptx", "sass"],
    }  # fmt: skip
    assert about["targets"]["gfx942"]["stages"] == ["ttgir", "amdgcn"]


def test_a_link_names_the_line_that_most_comes_from(library: Library) -> None:
    soup = BeautifulSoup(link("l2_packed.sm_90.sass:k_as_stored", library), "html.parser")
    no = soup.a.text.removeprefix("L")
    assert "tl.trans(tl.load(" in library.source("kernels/l2_paged_decode.py").lines[int(no)]
    assert soup.a["data-compiled"] == f"l2_packed.sm_90.sass:l2_paged_decode:L{no}"
    assert soup.a["href"] == "#compiled-l2_packed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```compiled\nl2_pakced\n```", r"no kernel 'l2_pakced' in .*; there are l2_naive, l2_packed"),
        ("```compiled\n```", r"names no kernel; wanted one a line"),
        ("{{ compiled:nope.sm_90.sass:pv }}", r"no kernel 'nope'"),
        ("{{ compiled:l2_packed.sm_70.sass:pv }}", r"'l2_packed' has no sm_70.sass; it has sm_80"),
        ("{{ compiled:l2_packed.gfx942.sass:pv }}", r"'l2_packed' has no gfx942.sass"),
        ("{{ compiled:l2_packed:pv }}", r"'l2_packed' has no \."),
        ("{{ compiled:l2_packed.sm_90.sass:nope }}", r"no line is named 'nope' in kernels/l2_paged"),
    ],
)  # fmt: skip
def test_what_does_not_exist_is_refused_by_page_and_name(text: str, message: str, library: Library) -> None:
    with pytest.raises(PageError, match=message):
        expand(text, Page("en", url=str), library)
    with pytest.raises(PluginError, match=f"lessons/demo.md: .*{message}"), _named("lessons/demo.md"):
        expand(text, Page("en", url=str), library)


def test_a_source_that_has_changed_is_refused(tmp_path: Path) -> None:
    for folder in ("kernels", FOLDER):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    kernel = tmp_path / "kernels/l2_paged_decode.py"
    kernel.write_text("\n" + kernel.read_text())
    with pytest.raises(PageError, match=r"'l2_packed': its source has changed.*compiled_view\.py"):
        render(["l2_packed"], Library(tmp_path), "en", str)


def test_what_a_page_shows() -> None:
    text = "```compiled\nl2_packed\nl2_naive\n```\n```python\nl3_split\n```\n"
    assert shown_kernels(text) == {"l2_packed", "l2_naive"}
    assert shown_files(text, "") == set()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_records_stand_in_the_site(site: Path, lang: str) -> None:
    for kernel in ("l2_packed", "l2_naive", "l3_split", "l3_combine"):
        name = f"{kernel}.sm_90.json"
        assert (site / LANGUAGES[lang] / "compiled" / name).read_bytes() == (
            ROOT / FOLDER / name
        ).read_bytes()


def opened(open_page: Open, path: str = LESSON, **options: object) -> Tab:
    page = open_page(path, reduced_motion="reduce", **options)
    page.locator(".compiled-open").click()
    expect(page.locator(".compiled-pane").nth(1).locator("[role=option]").first).to_be_attached()
    return page


def row_of(page: Tab, text: str) -> Locator:
    return page.locator(".compiled-pane").first.locator("[role=option]", has_text=text).first


def radio(page: Tab, value: str) -> Locator:
    return page.locator(f".compiled-choices input[value='{value}']")


def lit(page: Tab) -> list[str]:
    return page.locator(".compiled-pane").nth(1).locator(".lit").all_text_contents()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_is_fetched_before_it_is_asked_for(open_page: Open, lang: str) -> None:
    page = open_page("404.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page.url.replace("404.html", LANGUAGES[lang] + LESSON), wait_until="networkidle")
    assert not any("/compiled/" in url for url in asked)
    page.locator(".compiled-open").click()
    expect(page.locator(".compiled-figures")).to_contain_text("Triton")
    assert [url for url in asked if "/compiled/" in url and url.endswith("l2_packed.sm_90.json")]


def test_a_source_line_lights_what_it_became_and_goes_there(open_page: Open) -> None:
    page = opened(open_page)
    row_of(page, "acc = tl.dot(p.to(v.dtype)").click()
    rows = lit(page)
    assert sum("HMMA" in row for row in rows) == 16
    expect(page.locator(".compiled-pane").nth(1).locator(".lit").first).to_be_in_viewport()
    expect(page.locator(".compiled-status")).to_contain_text(str(len(rows)))
    assert re.search(r"#compiled=l2_packed\.sm_90\.sass:L\d+$", page.url)
    assert page.locator(".compiled-ruler").nth(1).locator("i").count() > 1


def test_a_line_of_the_other_side_lights_its_source_and_the_call(open_page: Open) -> None:
    page = opened(open_page)
    page.locator(".compiled-pane").nth(1).locator("[role=option]", has_text="HMMA").first.click()
    source = page.locator(".compiled-pane").first
    expect(source.locator(".lit")).to_have_count(1)
    expect(source.locator(".lit")).to_contain_text("tl.dot(")
    expect(source.locator(".lit")).to_be_in_viewport()
    expect(source.locator(".lit-around")).to_contain_text("HEAD_DIM, PAGE_SIZE, BLOCK_G, SWAP_K_STRIDES")


def test_pointing_lights_and_leaving_restores(open_page: Open) -> None:
    page = opened(open_page)
    row_of(page, "p = tl.exp(").click()
    chosen = lit(page)
    row_of(page, "l_i = l_i * alpha").hover()
    assert lit(page) != chosen
    page.locator(".compiled-figures").hover()
    assert lit(page) == chosen


def test_keys_walk_the_lines(open_page: Open) -> None:
    page = opened(open_page)
    box = page.locator(".compiled-lines").first
    box.focus()
    for key in ("End", "ArrowUp", "ArrowUp", "PageUp", "ArrowDown"):
        box.press(key)
        active = page.locator(f"#{box.get_attribute('aria-activedescendant')}")
        expect(active).to_be_in_viewport()
        expect(active).to_have_attribute("aria-selected", "true")
    assert page.evaluate("document.querySelectorAll('.compiled-lines [aria-selected=true]').length") == 1


def test_target_and_stage_keep_the_source_line(open_page: Open) -> None:
    page = opened(open_page)
    row_of(page, "acc = tl.dot(p.to(v.dtype)").click()
    radio(page, "gfx942").check()
    expect(radio(page, "amdgcn")).to_be_checked()
    expect(radio(page, "gfx942")).to_be_focused()
    assert sum("v_mfma" in row for row in lit(page)) == 24  # in the loop, and in what stands behind it
    radio(page, "ttgir").check()
    expect(page.locator(".compiled-lines").nth(1)).to_have_attribute("aria-label", "TTGIR, gfx942")
    assert any("tt.dot" in row for row in lit(page))
    radio(page, "l2_naive").check()
    expect(page.locator(".compiled-pane").first).to_contain_text("def _naive_paged_decode_kernel")
    assert lit(page) == []
    page.reload()
    expect(radio(page, "gfx942")).to_be_checked()


def test_search_counts_and_walks_the_hits(open_page: Open) -> None:
    page = opened(open_page)
    box, hits = page.locator(".compiled-find input"), page.locator(".compiled-find output")
    box.fill("ldgsts.e.bypass.128")
    expect(hits).to_have_text("1 / 64")
    for key, text in (
        ("Enter", "2 / 64"),
        ("Shift+Enter", "1 / 64"),
        ("Shift+Enter", "64 / 64"),
        ("Enter", "1 / 64"),
    ):
        box.press(key)
        expect(hits).to_have_text(text)
        expect(page.locator(".hit-now")).to_be_in_viewport()
    box.fill("no such text")
    expect(page.locator(".hit")).to_have_count(0)
    page.locator(".compiled-codes button.code-m").click()
    expect(hits).to_have_text("1 / 32")
    expect(box).to_have_value("")
    page.locator(".compiled-codes button.code-m").click()
    expect(page.locator(".hit")).to_have_count(0)


def test_links_open_the_view_at_a_line(open_page: Open) -> None:
    page = open_page("lessons/l3_split_kv_decode/#compiled=l3_split.sm_120.ptx:l2_paged_decode:L132")
    expect(radio(page, "sm_120")).to_be_checked()
    expect(radio(page, "ptx")).to_be_checked()
    expect(page.locator(".compiled-pane").first.locator(".lit")).to_contain_text("132")
    expect(page.locator(".compiled-view")).to_be_in_viewport()
    page.locator("a[data-compiled^='l3_combine']").first.click()
    expect(page.locator(".compiled-pane").first).to_contain_text("def _combine_kernel")
    expect(page.locator(".lit", has_text="LDG.E.128")).to_have_count(16)


def test_on_a_phone_the_panes_stand_one_above_the_other(open_page: Open) -> None:
    page = opened(open_page, **PHONE)
    source, output = (page.locator(".compiled-pane").nth(i).bounding_box() for i in range(2))
    assert source["y"] + source["height"] <= output["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    row_of(page, "p = tl.exp(").click()
    assert lit(page)


def test_a_record_that_cannot_be_read_is_named(open_page: Open) -> None:
    page = open_page(LESSON)
    page.route("**/compiled/*.json", lambda route: route.fulfill(status=200, body="not JSON"))
    page.locator(".compiled-open").click()
    expect(page.locator(".compiled-figures")).to_contain_text("compiled/l2_packed.sm_90.json")
    page.unroute("**/compiled/*.json")
    radio(page, "sm_80").check()
    expect(page.locator(".compiled-figures")).to_contain_text("Triton")


def test_without_scripts_the_table_stands(open_page: Open) -> None:
    page = open_page(LESSON, java_script_enabled=False)
    expect(page.locator("#compiled-l2_packed table")).to_be_visible()
    expect(page.locator("template[data-kernel]").first).to_be_hidden()


def test_in_print_the_table_stands_and_the_view_does_not(open_page: Open) -> None:
    page = opened(open_page)
    page.emulate_media(media="print")
    expect(page.locator(".compiled-view")).to_be_hidden()
    expect(page.locator("#compiled-l2_packed table")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_view_has_no_serious_barrier(open_page: Open, scheme: str) -> None:
    page = opened(open_page, "en/" + LESSON, color_scheme=scheme)
    row_of(page, "p = tl.exp(").click()
    violations = Axe().run(page, context={"include": [[".compiled"]]}).response["violations"]
    serious = [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert not serious, "\n".join(serious[:10])
