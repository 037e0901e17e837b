"""Hold the site to its budgets, in a real browser: time to a first run, bytes, Lighthouse, accessibility.

    python scripts/bench_page.py site               # `make site` made it; prints every budget and its figure
    python scripts/bench_page.py site --record      # also writes snippets/page_budgets.json, for a page
    python scripts/bench_page.py site --only runner # or: weight, axe, lighthouse

The exit status is 1 if a budget is missed. Browsers start with an empty profile, and the site is served from
this machine by scripts/page_server.py. Let the machine do nothing else meanwhile: the figures are times.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rich.console import Console
from rich.table import Table

from scripts import browsers
from scripts.browsers import CHROMIUM_FLAGS, WAKE, node
from scripts.generated import write_or_check
from scripts.page_server import Host, served

RECORD = ROOT / "snippets/page_budgets.json"
COMMAND = "python scripts/bench_page.py site --record"
RUNS = 5
L2, L3 = "lessons/l2_paged_decode/", "lessons/l3_split_kv_decode/"
PAGES = ("", L2, L3, "en/", f"en/{L2}", f"en/{L3}")
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
# Presses Run and waits until the result is shown; milliseconds.
PRESS = """async () => {
  const panel = document.querySelector(".runner"), part = name => panel.querySelector(name)
  const run = part("[data-act=run]"), began = performance.now()
  const shown = () => !run.hidden && part(".runner-printed")?.textContent.includes("lse")
  for (const old of panel.querySelectorAll(".runner-printed")) old.textContent = ""
  run.click()
  while (!shown()) {
    await new Promise(resolve => setTimeout(resolve, 5))
    if (part(".runner-error")) throw new Error(part(".runner-error").textContent)
  }
  return performance.now() - began
}"""


# Goes down a page, half a window at a time.
READ = """async () => {
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight / 2) {
    scrollTo(0, y)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}"""


def chromium() -> str:
    found = browsers.chromium()
    if not found:
        sys.exit("no Chromium; install one, or set CHROMIUM to its path")
    return found


@contextmanager
def fresh_page(host: Host) -> Iterator:
    """A page of a browser that has never been here."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_FLAGS))
        host.sent.clear()
        yield browser.new_context(base_url=host.address).new_page()
        browser.close()


def runner(host: Host) -> list[dict]:
    """Time to the result of L2's lesson case: of a first run, and of later ones; and what was downloaded."""
    first, later, megabytes = [], [], []
    for _ in range(RUNS):
        with fresh_page(host) as page:
            page.goto(L2, wait_until="networkidle")
            page.evaluate(WAKE)
            page.wait_for_timeout(500)
            host.sent.clear()
            first.append(page.evaluate(PRESS) / 1000)
            later += [page.evaluate(PRESS) / 1000 for _ in range(3)]
            megabytes.append(host.sent_bytes / 1e6)
    return [
        row("first_run", "s", 4.0, first),
        row("later_run", "s", 0.5, later),
        row("download", "MB", 6.5, megabytes),
    ]


def weight(host: Host) -> list[dict]:
    """What a page costs before any click, compressed: untouched; and read to its end."""
    rows = []
    for path in PAGES:
        with fresh_page(host) as page:
            page.goto(path, wait_until="networkidle")
            page.wait_for_timeout(1000)
            rows.append(row(f"weight:{path}", "kB", 350, [host.sent_bytes / 1e3]))
            page.evaluate(WAKE)
            page.evaluate(READ)
            page.wait_for_load_state("networkidle")
            rows.append(row(f"read:{path}", "kB", 350, [host.sent_bytes / 1e3]))
    return rows


def axe(host: Host) -> list[dict]:
    """Violations that axe-core finds, in both colour schemes."""
    from axe_playwright_python.sync_playwright import Axe

    rows = []
    for path in PAGES:
        found = 0
        with fresh_page(host) as page:
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.goto(path, wait_until="networkidle")
                page.evaluate(WAKE)
                found += len(Axe().run(page).response["violations"])
        rows.append(row(f"axe:{path}", "", 0, [found]))
    return rows


def lighthouse(host: Host) -> list[dict]:
    """The median score of several runs with Lighthouse's own preset, a slow phone."""
    rows = []
    for path in PAGES:
        scores: dict[str, list[float]] = {category: [] for category in CATEGORIES}
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "report.json"
                flags = " ".join(("--headless=new", *CHROMIUM_FLAGS))
                subprocess.run(
                    [node(), str(ROOT / "node_modules/lighthouse/cli/index.js"), host.address + path,
                     "--quiet", "--output=json", f"--output-path={out}", f"--chrome-flags={flags}"],
                    env=os.environ | {"CHROME_PATH": chromium()}, check=True,
                )  # fmt: skip
                report = json.loads(out.read_text(encoding="utf-8"))["categories"]
            for category in CATEGORIES:
                scores[category].append(100 * report[category]["score"])
        rows += [row(f"lighthouse:{c}:{path}", "", 95, values, at_least=True) for c, values in scores.items()]
    return rows


def row(name: str, unit: str, budget: float, values: list[float], at_least: bool = False) -> dict:
    """A budget, the median of what was measured, and whether it is met."""
    value = statistics.median(values)
    met = value >= budget if at_least else value <= budget
    return {
        "name": name, "unit": unit, "budget": budget, "at_least": at_least, "value": round(value, 3),
        "low": round(min(values), 3), "high": round(max(values), 3), "runs": len(values), "met": met,
    }  # fmt: skip


PARTS: dict[str, Callable[[Host], list[dict]]] = {
    "runner": runner, "weight": weight, "axe": axe, "lighthouse": lighthouse,
}  # fmt: skip


def environment() -> dict:
    """What the figures depend on."""
    version = subprocess.run([chromium(), "--version"], capture_output=True, text=True, check=True).stdout
    cpu = next((line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())  # fmt: skip
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return {"browser": version.strip(), "cpu": cpu, "cores": os.cpu_count(),
            "lighthouse": packages["node_modules/lighthouse"]["version"]}  # fmt: skip


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, help="the folder of a built site")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be given again")
    parser.add_argument("--record", action="store_true", help="write snippets/page_budgets.json")
    args = parser.parse_args()
    before = json.loads(RECORD.read_text(encoding="utf-8")) if args.only and RECORD.is_file() else {}
    if args.record and args.only and before.get("environment") != environment():
        parser.error(f"--record --only keeps the other parts of {RECORD.name}, which is not of this machine")
    if not (args.site / "index.html").is_file():
        parser.error(f"{args.site} holds no index.html; wanted the folder that `make site` makes")
    console, rows = Console(), []
    with served(args.site) as host:
        for name in args.only or PARTS:
            with console.status(f"measuring: {name}"):
                rows += PARTS[name](host)
    table = Table("budget", "wanted", "median", "from", "to", "runs", "met")
    for one in rows:
        wanted = f"{'>=' if one['at_least'] else '<='} {one['budget']:g} {one['unit']}"
        figures = (f"{one[key]:.3g}" for key in ("value", "low", "high"))
        table.add_row(one["name"], wanted, *figures, str(one["runs"]), "yes" if one["met"] else "NO")
    console.print(table)
    if args.record:
        measured = {one["name"]: one for one in rows}
        rows = [measured.pop(one["name"], one) for one in before.get("rows", [])] + list(measured.values())
        record = {"date": datetime.date.today().isoformat(), "command": COMMAND, "environment": environment(),
                  "rows": rows}  # fmt: skip
        write_or_check({RECORD: json.dumps(record, indent=1) + "\n"}, [], False, "")
    return 0 if all(one["met"] for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
