"""The tables of the page about the in-page runner: parity, findings, budgets."""

import html
import json
from collections import Counter

from scripts.bake_text import WORDS, table
from scripts.records import ROOT

PARITY = ROOT / "snippets/generated/runner_parity.json"
FINDINGS = ROOT / "snippets/generated/runner_findings.json"
BUDGETS = ROOT / "snippets/page_budgets.json"
GROUPS = ("feature", "program", "case")
STATUSES = ("identical", "close", "unsupported")


def parity(_: list[dict], lang: str) -> str:
    """How many of each group are the same in the page as on CPython with PyTorch."""
    words = WORDS[lang]
    rows_of = json.loads(PARITY.read_text(encoding="utf-8"))
    rows = []
    for group in GROUPS:
        mine = [row for row in rows_of if row["group"] == group]
        count = Counter(row["status"] for row in mine)
        largest = max((row["max_diff"] or 0.0 for row in mine), default=0.0)
        cells = [
            str(len(mine)),
            *(str(count[status]) for status in STATUSES),
            f"{largest:.0e}" if largest else "0",
        ]
        rows.append([words[f"runner_{group}"], *cells])
    head = ["group", "count", *STATUSES, "largest"]
    return table([words[f"runner_{name}"] for name in head], rows)


def unsupported(_: list[dict], lang: str) -> str:
    """Each operation that is refused, and in which words."""
    words = WORDS[lang]
    rows = [
        [
            f"<code>{html.escape(row['feature'])}</code>",
            html.escape(row.get("texts", {}).get(lang, row["message"])),
        ]
        for row in json.loads(PARITY.read_text(encoding="utf-8"))
        if row["status"] == "unsupported"
    ]
    return table([words["runner_name"], words["runner_says"]], rows, texts=2)


def findings(_: list[dict], lang: str) -> str:
    """Small mistakes in L2's kernel, and what the page says of each."""
    words = WORDS[lang]
    rows = []
    for row in json.loads(FINDINGS.read_text(encoding="utf-8")):
        code = f"<code>{html.escape(row['before'])}</code> → <code>{html.escape(row['after'])}</code>"
        rows.append([f"L{row['line']}", code, html.escape(" ".join(one[lang] for one in row["texts"]))])
    return table(["", words["runner_edit"], words["runner_finding"]], rows, texts=3)


def budgets(_: list[dict], lang: str) -> str:
    """Every budget with its figure: of the runner, then of the pages; and where it was measured."""
    words = WORDS[lang]
    if not BUDGETS.is_file():
        return f"<p>{words['none']}</p>"
    record = json.loads(BUDGETS.read_text(encoding="utf-8"))
    rows, pages = [], {}
    for row in record["rows"]:
        what, _, path = row["name"].rpartition(":")
        if what:
            pages.setdefault(path, {})[what] = row
            continue
        span = f"{row['low']:.3g}–{row['high']:.3g}" if row["runs"] > 1 else "–"
        rows.append([words[f"runner_{path}"], _limit(row), _figure(row, words), span])
    head = [words[f"runner_{name}"] for name in ("budget", "wanted", "median", "range")]
    first = next(iter(pages.values()))
    columns = [f"{words['runner_' + name.partition(':')[0]]} {name.partition(':')[2]}" for name in first]
    limits = [_limit(row) for row in first.values()]
    matrix = [["", *limits]] + [
        [_page(path, words), *(_figure(row, words) for row in of.values())] for path, of in pages.items()
    ]
    where = words["runner_measured"].format(date=record["date"], **record["environment"])
    source = f"{html.escape(where)} · <code>{html.escape(record['command'])}</code>"
    tables = f"{table(head, rows)}\n{table([words['runner_page'], *map(str.strip, columns)], matrix)}"
    return f'{tables}\n<p class="provenance"><small>{source}</small></p>'


def _limit(row: dict) -> str:
    return f"{'≥' if row['at_least'] else '≤'} {row['budget']:g} {row['unit']}".strip()


def _figure(row: dict, words: dict[str, str]) -> str:
    """The median; one that misses its budget says so."""
    return f"{row['value']:.3g}" + ("" if row["met"] else f" ({words['runner_missed']})")


def _page(path: str, words: dict[str, str]) -> str:
    page = path.removeprefix("en/").removeprefix("lessons/").strip("/")
    return f"{html.escape(page) or words['runner_home']}, {'en' if path.startswith('en/') else 'zh'}"


RUNNER_TABLES = {
    "runner/parity": parity,
    "runner/unsupported": unsupported,
    "runner/findings": findings,
    "runner/budgets": budgets,
}
