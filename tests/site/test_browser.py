"""The site as a reader meets it, in Chromium."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from scripts.browsers import WAKE
from tests.site.test_built_site import LANGUAGES, pages, resolve

LESSON = "lessons/l2_paged_decode/"
PHONE = {"viewport": {"width": 360, "height": 740}}
Open = Callable[..., Page]


def wait_until_drawn(page: Page) -> None:
    """Until fonts no longer move what stands below."""
    page.evaluate("document.fonts.ready.then(() => null)")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_loads_and_fits_a_phone(open_page: Open, site: Path, address: str, lang: str) -> None:
    """No error and no outside request (open_page), no sideways scrolling."""
    page = open_page("404.html", **PHONE)
    for path in ["404.html", *pages(site, lang)]:
        page.goto(address + LANGUAGES[lang] + path)
        wait_until_drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_language_switch_stays_on_the_page_and_in_the_section(open_page: Open, lang: str) -> None:
    page = open_page(LANGUAGES[lang] + LESSON)
    heading = page.locator(".md-content h2[id]").nth(1)
    anchor = heading.get_attribute("id")
    page.evaluate("id => document.getElementById(id).scrollIntoView()", anchor)
    page.locator("a.language-switch").click()
    other = next(language for language in LANGUAGES if language != lang)
    page.wait_for_url(f"**/{LANGUAGES[other]}{LESSON}#{anchor}")
    expect(page.locator("html")).to_have_attribute("lang", other)


@pytest.mark.parametrize(
    ("lang", "query"), [("zh", "带宽"), ("zh", "block table"), ("en", "bandwidth"), ("en", "block table")]
)
def test_search_finds_words_of_both_languages(open_page: Open, lang: str, query: str) -> None:
    page = open_page(LANGUAGES[lang])
    box = page.locator("input.md-search__input")
    box.click()
    box.fill(query)
    box.press("End")  # the search listens to keys
    found = page.locator(f'.md-search-result__link[href*="{LESSON}"]').first
    expect(found).to_be_attached()
    url = urlsplit(
        page.locator(f'.md-search-result__link[href*="{LESSON}?h="][href*="#"]').first.get_attribute("href")
    )
    assert url.path == f"/{LANGUAGES[lang]}{LESSON}"
    assert parse_qs(url.query)["h"] == [query], "found by a part of the query only"


def reading(page: Page) -> int:
    """Index of the first reading block whose listing is long enough to scroll by."""
    counts = page.locator(".reading").evaluate_all(
        "all => all.map(e => e.querySelectorAll('a[data-lines]').length)"
    )
    return next(i for i, count in enumerate(counts) if count >= 3)


def scroll_to(page: Page, selector: str, index: int) -> None:
    """Bring an element's top just above the eye line of reading.mjs."""
    page.evaluate(
        """([selector, index]) => {
            const top = document.querySelectorAll(selector)[index].getBoundingClientRect().top
            scrollBy({ top: top - innerHeight * 0.4 + 4, behavior: "instant" })
        }""",
        [selector, index],
    )


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_listing_stays_in_view_and_lights_what_is_spoken_of(open_page: Open, lang: str) -> None:
    page = open_page(LANGUAGES[lang] + LESSON, reduced_motion="reduce")
    wait_until_drawn(page)
    block = page.locator(".reading").nth(reading(page))
    steps = block.locator(".reading-prose :is(p, li):has(> a[data-lines])")
    all_steps = page.locator(".reading-prose :is(p, li):has(> a[data-lines])")
    first = all_steps.evaluate_all("(all, step) => all.indexOf(step)", steps.first.element_handle())
    for i in range(steps.count()):
        scroll_to(page, ".reading-prose :is(p, li):has(> a[data-lines])", first + i)
        expect(steps.nth(i)).to_have_class(re.compile("being-read"))
        refs = steps.nth(i).locator("a[data-lines]").evaluate_all("all => all.map(a => a.dataset.lines)")
        spans = [tuple(map(int, ref.split("-"))) for ref in refs]
        shown = block.locator(".row .no").evaluate_all("all => all.map(a => Number(a.dataset.no))")
        wanted = [no for no in shown if any(first <= no <= last for first, last in spans)]
        lit = block.locator(".row.lit .no").evaluate_all("all => all.map(a => Number(a.dataset.no))")
        assert lit == wanted
        code = block.locator("pre > code").bounding_box()
        row = block.locator(".row.lit").first.bounding_box()
        assert max(48, code["y"]) <= row["y"]
        assert row["y"] + row["height"] <= min(900, code["y"] + code["height"])


def test_pointing_at_a_reference_lights_it_alone(open_page: Open) -> None:
    page = open_page(LESSON, reduced_motion="reduce")
    wait_until_drawn(page)
    block = page.locator(".reading").nth(reading(page))
    ref = block.locator("a[data-lines]").nth(1)
    ref.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    ref.focus()
    first, last = map(int, ref.get_attribute("data-lines").split("-"))
    lit = block.locator(".row.lit .no").evaluate_all("all => all.map(a => Number(a.dataset.no))")
    assert lit[0] == first and lit[-1] == last
    ref.click()
    assert page.evaluate("scrollY") == before and "#" not in page.url


def test_on_a_phone_the_listing_stands_above_its_prose(open_page: Open) -> None:
    page = open_page(LESSON, **PHONE)
    block = page.locator(".reading").first
    code, prose = (block.locator(box).bounding_box() for box in (".reading-code", ".reading-prose"))
    assert code["y"] + code["height"] <= prose["y"] + 1
    inside = block.locator("pre > code").evaluate("e => [e.scrollWidth > e.clientWidth, e.clientWidth]")
    assert inside[0] and inside[1] <= 360


def test_a_line_number_leads_to_its_line_of_the_source(open_page: Open) -> None:
    page = open_page(LESSON)
    number = page.locator(".listing .no").first
    no = number.get_attribute("data-no")
    number.click()
    page.wait_for_url(f"**/source/**#L{no}")
    expect(page.locator(f"#L{no}")).to_be_in_viewport()


def test_copied_code_has_no_line_numbers(open_page: Open) -> None:
    page = open_page(LESSON)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    listing = page.locator(".listing").first
    lines = [line.rstrip("\n") for line in listing.locator(".row").all_text_contents()]
    listing.scroll_into_view_if_needed()  # then the theme looks after it
    listing.locator("button[data-md-type=copy], .md-clipboard, .md-code__button").first.click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text !== '')")
    assert page.evaluate("navigator.clipboard.readText()").rstrip("\n").split("\n") == lines
    listing.locator("code").evaluate("e => getSelection().selectAllChildren(e)")
    assert page.evaluate("String(getSelection())").rstrip("\n").split("\n") == lines


def test_the_gpu_choice_holds_for_all_tables_and_is_kept(open_page: Open) -> None:
    page = open_page(LESSON)
    sets = page.locator(".gpu-set.picked")
    expect(sets.first).to_be_visible()
    gpu = sets.first.locator("option").nth(1).get_attribute("value")
    sets.first.locator("select").select_option(gpu)
    for _ in range(2):
        for i in range(sets.count()):
            panels = sets.nth(i).locator(".gpu-panel")
            shown = panels.evaluate_all("all => all.filter(e => !e.hidden).map(e => e.dataset.gpu)")
            assert len(shown) == 1
            if panels.and_(page.locator(f'[data-gpu="{gpu}"]')).count():
                assert shown == [gpu]
        page.reload()
        expect(sets.first).to_be_visible()


def test_without_scripts_everything_can_be_read(open_page: Open) -> None:
    page = open_page(LESSON, java_script_enabled=False)
    for selector in (".gpu-panel", ".reading-prose", ".reading-code"):
        for element in page.locator(selector).all():
            expect(element).to_be_visible()


BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def test_the_scheme_follows_the_system_and_can_be_chosen(open_page: Open) -> None:
    assert open_page("", color_scheme="light").evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    page = open_page("", color_scheme="dark")
    assert page.evaluate(BACKGROUND) == "rgb(20, 24, 28)"
    page.locator("[data-md-component=palette] label:visible").click()
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("path", "scheme"), [("", "light"), ("en/", "dark"), (LESSON, "light"), (f"en/{LESSON}", "dark")]
)
def test_no_serious_barrier(open_page: Open, path: str, scheme: str) -> None:
    """axe-core's rules; folded answers are opened first, so that their text is looked at too."""
    page = open_page(path, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    violations = Axe().run(page).response["violations"]
    serious = [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert not serious, "\n".join(serious)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", [LESSON, "lessons/l3_split_kv_decode/"])
def test_a_lesson_is_light(open_page: Open, site: Path, address: str, lang: str, lesson: str) -> None:
    """What a first visit fetches before any click, compressed as a host would; and once all has been read."""
    page = open_page("404.html", wake=False)
    page.wait_for_load_state("networkidle")
    urls: set[str] = set()
    page.on("request", lambda request: urls.add(request.url))

    def weight() -> int:
        return sum(size(resolve(site, site / "index.html", urlsplit(url).path)) for url in urls)

    page.goto(address + LANGUAGES[lang] + lesson, wait_until="networkidle")
    assert not [url for url in urls if "search_index" in url]
    assert weight() < 250_000
    page.mouse.wheel(0, 500)
    page.evaluate(WAKE)
    wait_until_drawn(page)
    assert weight() < 350_000


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_index_is_fetched_when_somebody_searches(open_page: Open, site: Path, lang: str) -> None:
    page = open_page(LANGUAGES[lang] + LESSON)
    page.wait_for_load_state("networkidle")
    with page.expect_request("**/search_index.json"):
        page.keyboard.press("/")
    index = site / LANGUAGES[lang] / "search/search_index.json"
    assert 0 < size(index) < 220_000  # of the whole site: it grows with every lesson


def size(file: Path) -> int:
    data = file.read_bytes()
    return len(data if file.suffix == ".woff2" else gzip.compress(data))
