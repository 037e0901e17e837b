"""Firefox on the real pages, with the real runner: what test_runner_real.py and others have Chromium do."""

import os
import re
import shutil
import time
from collections.abc import Iterator

import pytest

from scripts.run_program import program
from tests.site.conftest import ARTIFACTS
from tests.site.firefox import TEXTS, Firefox
from tests.site.runner_panel import link
from tests.site.test_diagram_links import KERNELS
from tests.site.test_explorers import L1, L3, PAGES
from tests.site.test_runner_explorers import CHANGES
from tests.site.test_runner_real import L2, name_of, wrong_program

OWN = program("l2_paged_decode")  # what the page of L2 runs
# The stepper's tile of lse, and the first numbers that it shows.
TILE = (
    "[...document.querySelectorAll('.stepper-tile')].find(e => e.querySelector('code').innerText === 'lse')"
)
NUMBERS = f"() => [...{TILE}.querySelectorAll('td[title]')].slice(0, 4).map(e => (+e.innerText).toFixed(4))"


@pytest.fixture(scope="module")
def firefox(address: str) -> Iterator[Firefox]:
    path = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    if not path:
        pytest.skip("no Firefox here; install one, or set FIREFOX to its path")
    firefox = Firefox(path, address)
    assert "firefox" in firefox.ask("version").lower()
    yield firefox
    firefox.close()


@pytest.fixture
def tab(firefox: Firefox, request: pytest.FixtureRequest) -> Iterator[Firefox]:
    """At the end the page may have had no error, nor asked another server for anything."""
    yield firefox
    problems = firefox.ask("problems")
    if problems or getattr(request.node, "failed", False):
        ARTIFACTS.mkdir(exist_ok=True)
        name = re.sub(r"\W+", "-", f"{request.node.name}-firefox")
        firefox.ask("screenshot", str(ARTIFACTS / f"{name}.png"))
    assert not problems, "\n".join(problems)


def give(tab: Firefox, source: str, level: str = "") -> None:
    """Put a program into the editor of the page that is open, by a link."""
    tab.evaluate("hash => { location.hash = hash }", link(source, level))
    tab.holds(source)


def edit(tab: Firefox) -> None:
    """Open the editor, with the cursor at the beginning."""
    tab.push("Edit")
    tab.has_focus(".cm-content")
    tab.press("Control+Home")


def run(tab: Firefox) -> None:
    tab.push("Run")
    tab.shows(".runner-status", "Done in")


@pytest.mark.parametrize(("lang", "name", "done"), [("", "运行", "运行结束"), ("en/", "Run", "Done in")])
def test_the_lesson_s_kernel_runs(tab: Firefox, lang: str, name: str, done: str) -> None:
    tab.open(lang + L2)
    tab.push(name)
    tab.shows(".runner-status", done)
    tab.shows(".runner-printed", "o [2, 8, 64], lse [2, 8]")
    assert tab.texts(".runner-error, .runner-warnings") == []


def test_a_page_of_the_map_says_who_read_it(tab: Firefox) -> None:
    tab.open("en/" + L2)
    run(tab)
    tab.click(".page-map-pool [data-page='7']")
    tab.shows(
        ".page-map-said",
        "Page 7, which holds 16 of 16 tokens: read by 2 programs, (0, 0) and (0, 1); "
        "KV heads 0 and 1; 16,384 B in all, no byte twice.",
    )
    tab.hover(".page-map-verdict")  # what was chosen stays lit
    tab.until(TEXTS, ["(0, 0)", "(0, 1)"], ".page-map tbody th.lit")
    tab.press("Escape")
    tab.until(TEXTS, [], ".page-map .lit")


def test_keys_step_through_a_program_and_its_values_show(tab: Firefox) -> None:
    tab.open("en/" + L2)
    run(tab)
    [printed] = tab.texts(".runner-printed")
    by_head = re.search("100 tokens, lse by head: (.*)", printed)[1].split()
    tab.push("Record every step")  # of program (0, 0)
    tab.has_focus(".stepper [type=range]")
    tab.shows(".stepper-where", "page = 0 (iteration 1 of 7)")
    tab.press("ArrowRight")
    tab.shows(".stepper-changes", "page_id = 9")
    tab.press("PageUp", "ArrowRight")
    tab.shows(".stepper-where", "page = 1 (iteration 2 of 7)")
    tab.shows(".stepper-changes", "page_id = 3")
    tab.press("End")
    tab.shows(".stepper-where", "outside the loops")
    assert tab.evaluate(NUMBERS) == []  # this step did not change them: they are there when asked for
    tab.evaluate(f"() => {TILE}.querySelector('summary').focus()")
    tab.press("Enter")
    tab.click(".stepper label:has([type=checkbox])")  # all significant digits
    tab.until(NUMBERS, by_head[:4])
    tab.hover(".cm-scroller")  # a line is drawn once it is in the window
    tab.shows(".cm-step-line", "tl.store(lse_ptr + out, lse, mask=mask_g)")


def test_a_read_out_of_bounds_is_told_with_its_line(tab: Firefox) -> None:
    """Typed into the editor, and run by a key."""
    loop = "    for page in range(page_end - page_begin):"
    above = OWN.splitlines().index(loop)
    tab.open("en/" + L2)
    edit(tab)
    tab.press(*["ArrowDown"] * above, "End", "ArrowLeft", "ArrowLeft")
    tab.type(" + 1")
    tab.holds(OWN.replace(loop, loop.replace("):", " + 1):")))
    tab.press("Control+Enter")
    tab.shows(".runner-error", "block_table_ptr[1, 0]")
    tab.shows(".runner-error", "program (0, 0, 0)")
    tab.push(f"line {above + 3}")
    tab.has_focus(".cm-content")
    for line in (".cm-activeLine", ".cm-error-line"):
        tab.shows(line, "page_id = tl.load(table_row_ptr + page)")


def test_what_a_gpu_refuses_is_a_warning(tab: Firefox) -> None:
    tile = 'tl.full([BLOCK_G], -float("inf"), tl.float32)'
    assert OWN.count(tile) == 1
    tab.open("en/" + L2)
    give(tab, OWN.replace(tile, '-float("inf")'))
    run(tab)
    tab.shows(".runner-warnings", "Loop-carried variable m_i")
    tab.shows(".runner-printed", "lse [2, 8]")


def test_tab_indents_and_escape_leaves_the_editor(tab: Firefox) -> None:
    tab.open("en/" + L2)
    edit(tab)
    tab.shows(".runner-help", "Tab indents. Press Escape, then Tab, to leave the editor")
    tab.press("Tab")
    tab.holds("    " + OWN)
    tab.press("Escape", "Shift+Tab")
    tab.until("() => document.activeElement.textContent", "Copy a link")
    tab.press("Tab")
    tab.has_focus(".cm-content")
    tab.press("Escape", "Tab")
    tab.until(
        """() => {
          const where = document.querySelector(".cm-editor").compareDocumentPosition(document.activeElement)
          return where === Node.DOCUMENT_POSITION_FOLLOWING
        }""",
        True,
    )
    tab.holds("    " + OWN)


def test_reset_and_the_last_version_also_of_an_earlier_visit(tab: Firefox) -> None:
    tab.open("en/" + L2)
    edit(tab)
    tab.type("# mine\n")
    tab.push("Reset")
    tab.shows(".runner-status", "own program")
    tab.holds(OWN)
    tab.push("Load my last version")
    tab.shows(".runner-status", "your version of")
    tab.holds("# mine\n" + OWN)
    tab.reload()
    edit(tab)
    tab.holds(OWN)  # until another is asked for
    tab.push("Load my last version")
    tab.shows(".runner-status", "your version of")
    tab.holds("# mine\n" + OWN)


def test_a_check_names_the_mistake_and_passes_the_solution(tab: Firefox) -> None:
    mistake = "online_softmax/acc_not_rescaled"
    tab.open("en/problems/online_softmax/")
    give(tab, wrong_program(mistake), "loop")
    tab.push("Check")
    tab.shows(".runner-report:not(.passed)", name_of(mistake))
    give(tab, program("online_softmax"), "loop")
    tab.push("Check")
    tab.shows(".runner-status", "The check passes")
    assert len(tab.texts(".runner-report.passed")) == 1


def test_a_program_of_a_link_waits_for_run_and_is_stopped(tab: Firefox) -> None:
    loaded = "() => performance.getEntriesByType('resource').some(entry => entry.name.endsWith('client.mjs'))"
    source = "print('it runs')\nwhile True:\n    pass\n"
    tab.open("en/" + L2 + link(source))
    tab.shows(".runner-notice", "came from a link")
    tab.holds(source)
    assert not tab.evaluate(loaded), "what runs it is not even there"
    tab.push("Run")
    tab.shows(".runner-printed", "it runs")
    assert tab.evaluate(loaded)
    tab.push("Stop")
    tab.shows(".runner-status", "Stopped")
    tab.push("Reset")
    tab.holds(OWN)
    run(tab)
    tab.shows(".runner-printed", "lse [2, 8]")


def test_run_at_once_waits_for_the_program_of_the_link(tab: Firefox) -> None:
    tab.open("en/" + L2)
    tab.evaluate(
        """hash => {
          const run = document.querySelector(".runner [data-act=run]")
          addEventListener("hashchange", () => run.click(), { once: true }) // the page hears of it first
          location.hash = hash
        }""",
        link("print('the program of the link')\n"),
    )
    tab.shows(".runner-status", "Done in")
    assert tab.texts(".runner-printed") == ["the program of the link\n"]


@pytest.mark.parametrize("path", [L1, L3])
def test_explorers_draw_a_change(tab: Firefox, path: str) -> None:
    tab.open("en/" + path)
    for name in (name for name in PAGES if PAGES[name] == path):
        field, value, number = CHANGES[name]
        block = f".explorer:has(#explore-{name}-status)"
        [still] = tab.texts(f"{block} figure svg")
        assert number not in still
        tab.fill(f"{block} [name={field}]", value)
        tab.press("Tab")  # who types is done when the field is left
        tab.shows(f"{block} figure svg", number)
        assert tab.texts(f"{block} .explorer-status") == [""]


def test_a_node_of_a_diagram_lights_its_connections(tab: Firefox) -> None:
    tab.open("en/" + L3)
    svg = f"svg:has(#{KERNELS})"
    lit = f"""attribute => [...document.querySelectorAll(`{svg} [${{attribute}}].lit`)]
      .map(element => element.getAttribute(attribute)).sort()"""
    tab.hover(f"{svg} [data-node=o_partial]")
    tab.until(lit, ["combine", "o_partial", "split"], "data-node")
    tab.until(lit, ["o_partial", "split"], "data-from")
    tab.evaluate(f"() => document.querySelector('{svg} [data-node=q]').focus()")
    tab.until(lit, ["q", "split"], "data-node")
    tab.press("ArrowRight")
    tab.until(lit, ["k_cache", "split"], "data-node")


def test_what_goes_wrong_in_a_page_is_seen(firefox: Firefox) -> None:
    """Or else no test here could fail by it."""
    elsewhere = firefox.address.replace("127.0.0.1", "localhost")
    firefox.open("en/" + L2)
    assert firefox.ask("problems") == []
    firefox.evaluate(
        """async elsewhere => {
          console.error("a word")
          setTimeout(() => { throw new Error("a throw") })
          await fetch("nowhere")
          await fetch(elsewhere, { mode: "no-cors" })
        }""",
        elsewhere,
    )
    wanted = {"says a word", "throws Error: a throw", f"asks {elsewhere}"}
    end = time.monotonic() + 120
    while not wanted < set(found := firefox.ask("problems")) and time.monotonic() < end:
        time.sleep(0.1)
    assert {one for one in found if not one.startswith("404 ")} == wanted and len(found) == 4
