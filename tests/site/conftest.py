"""The real site, built strictly into a temporary folder and served, and a browser that keeps what it saw."""

import functools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from scripts.browsers import CHROMIUM_FLAGS, WAKE, chromium

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / ".artifacts"
SITE_URL = "https://site.example/"
REPO_URL = "https://github.com/owner/repository"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    target = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "SITE_URL": SITE_URL, "REPO_URL": REPO_URL, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    build = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert build.returncode == 0, f"{' '.join(command)}\n{build.stdout}{build.stderr}"
    return target


class _Handler(SimpleHTTPRequestHandler):
    """Serves files as a static host does, its 404 page included; says nothing."""

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the built site is served, with a slash at the end."""
    handler = functools.partial(_Handler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        if not path and not Path(playwright.chromium.executable_path).exists():
            wanted = "install chromium, set CHROMIUM to the path of one, or run `playwright install chromium`"
            pytest.fail(f"no browser: {wanted}", pytrace=False)
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(
    browser: Browser, address: str, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """open_page(path, wake=True, **context options): the page, loaded, and awake as if somebody read it.

    At the end no page may have had an error on its console or asked another server for anything; where the
    test failed, a screenshot of each page is kept in .artifacts/.
    """
    pages, problems = [], []

    def open_page(path: str, wake: bool = True, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        wake = wake and options.get("java_script_enabled", True)
        if wake:  # whatever is loaded into it later, too
            context.add_init_script(f"addEventListener('load', {WAKE})")
        page = context.new_page()
        pages.append(page)
        page.on("console", lambda m: problems.append(f"{page.url}: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
        page.on("request", lambda r: None if _is_ours(r.url, address) else problems.append(f"asks {r.url}"))
        page.goto(address + path)
        if wake:
            page.evaluate(WAKE)
        return page

    yield open_page
    if problems or getattr(request.node, "failed", False):
        ARTIFACTS.mkdir(exist_ok=True)
        for number, page in enumerate(pages):
            name = re.sub(r"\W+", "-", f"{request.node.name}-{number}")
            page.screenshot(path=ARTIFACTS / f"{name}.png")
    for page in pages:
        page.context.close()
    assert not problems, "\n".join(problems)


def _is_ours(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.failed = report.failed
    return report
