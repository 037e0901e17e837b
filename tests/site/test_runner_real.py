"""The real runner on the real pages: no fake client here, so each test starts Python in the browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from scripts.browsers import WAKE
from scripts.page_server import Host, served
from scripts.run_program import program
from scripts.runner_site import RUNNER
from tests.site.runner_panel import link

Open = Callable[..., Page]
L2 = "lessons/l2_paged_decode/"
START = 120_000  # ms: other tests may have the machine's cores


def run(page: Page) -> None:
    """Press Run, and wait for the end of it."""
    page.evaluate(WAKE)
    page.locator(".runner [data-act=run]").click()
    expect(page.locator(".runner-stop")).to_be_visible(timeout=START)
    expect(page.locator(".runner-stop")).to_be_hidden(timeout=START)


def edit(page: Page, before: str, after: str) -> None:
    """Put an edited program into the editor, by a link, as a reader may get it."""
    source = program("l2_paged_decode")
    assert source.count(before) == 1
    page.evaluate("hash => { location.hash = hash }", link(source.replace(before, after)))
    expect(page.locator(".runner-notice")).to_be_visible(timeout=START)


@pytest.mark.parametrize("lang", ["", "en/"])
def test_the_lesson_s_kernel_runs(open_page: Open, lang: str) -> None:
    page = open_page(lang + L2)
    run(page)
    expect(page.locator(".runner-printed")).to_contain_text("o [2, 8, 64], lse [2, 8]")
    expect(page.locator(".runner-error")).to_have_count(0)


def test_a_read_of_another_sequence_is_told_with_its_line(open_page: Open) -> None:
    page = open_page(f"en/{L2}")
    edit(page, "range(page_end - page_begin):", "range(page_end - page_begin + 1):")
    run(page)
    error = page.locator(".runner-error")
    expect(error).to_contain_text("block_table_ptr[1, 0]", timeout=START)
    expect(error).to_contain_text("program (0, 0, 0)")
    line = error.locator("button.runner-line")
    expect(line).to_contain_text("57")
    line.click()
    expect(page.locator(".cm-activeLine")).to_contain_text("tl.load(table_row_ptr + page)")


def test_what_a_gpu_refuses_is_a_warning(open_page: Open) -> None:
    page = open_page(f"en/{L2}")
    edit(page, 'm_i = tl.full([BLOCK_G], -float("inf"), tl.float32)', 'm_i = -float("inf")')
    run(page)
    expect(page.locator(".runner-warnings")).to_contain_text("Loop-carried variable m_i", timeout=START)
    expect(page.locator(".runner-printed")).to_contain_text("lse [2, 8]")


def test_an_endless_kernel_is_stopped_and_the_next_run_works(open_page: Open) -> None:
    page = open_page(f"en/{L2}")
    edit(
        page,
        "        m_i = m_new\n",
        "        m_i = m_new\n        while page >= 0:\n            page += 0\n",
    )
    page.locator(".runner [data-act=run]").click()
    page.wait_for_timeout(8000)  # it runs, and goes on
    expect(page.locator(".runner-stop")).to_be_visible()
    page.locator(".runner-stop").click()
    expect(page.locator(".runner-status")).to_contain_text("Stopped")
    page.get_by_role("button", name="Reset").click()
    run(page)
    expect(page.locator(".runner-printed")).to_contain_text("lse [2, 8]", timeout=START)


def test_check_names_the_mistake(open_page: Open) -> None:
    """A known wrong kernel, on the problem page: the name that drill.py gives it."""
    page = open_page("en/problems/online_softmax/")
    wrong = wrong_program("online_softmax/acc_not_rescaled")
    page.evaluate("hash => { location.hash = hash }", link(wrong, "loop"))
    expect(page.locator(".runner-notice")).to_be_visible(timeout=START)
    page.locator(".runner [data-act=check]").click()
    expect(page.locator(".runner-report")).to_contain_text(
        name_of("online_softmax/acc_not_rescaled"), timeout=START
    )


def test_a_python_that_is_gone_is_replaced(open_page: Open) -> None:
    page = open_page("en/" + L2)
    edit(page, "import triton\n", "import triton\nimport os\nos._exit(0)\n")
    page.locator(".runner [data-act=run]").click()
    expect(page.locator(".runner-status")).to_contain_text("The runner failed", timeout=START)
    page.locator(".runner").get_by_role("button", name="Reset").click()
    run(page)
    expect(page.locator(".runner-printed")).to_contain_text("lse [2, 8]", timeout=START)


def wrong_program(mutant_id: str) -> str:
    from scripts import mutant_files

    mutant = mutant_files.load(mutant_id)
    return mutant.apply((Path(mutant_files.ROOT) / mutant.file).read_text(encoding="utf-8"))


def name_of(mutant_id: str) -> str:
    from scripts import mutant_files

    return mutant_files.load(mutant_id).name["en"]


@pytest.fixture
def host(site: Path):
    with served(site) as host:
        yield host


def test_it_is_loaded_on_the_first_click_and_kept(browser, host: Host) -> None:
    """No byte of it before; all of it once; nothing but the manifest on the next visit."""
    context = browser.new_context(base_url=host.address)
    page = context.new_page()
    page.goto(L2, wait_until="networkidle")
    assert not [path for path, _ in host.sent if RUNNER in path or "codemirror" in path]
    run(page)
    expect(page.locator(".runner-printed")).to_contain_text("lse [2, 8]", timeout=START)
    # A run that is slow starts the spare worker meanwhile, and that reads the manifest, too.
    asked = [path for path, _ in host.sent if RUNNER in path and not path.endswith("manifest.json")]
    assert len(asked) == len(set(asked)) > 5
    host.sent.clear()
    page.goto(f"en/{L2}", wait_until="networkidle")
    run(page)
    expect(page.locator(".runner-printed")).to_contain_text("lse [2, 8]", timeout=START)
    again = [path for path, _ in host.sent if RUNNER in path]
    assert [path for path in again if not path.endswith(("manifest.json", "pyodide.mjs"))] == []
    context.close()
