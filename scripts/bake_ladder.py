"""The tables of L7's ladder: what each rung was expected to take, what it took, and what was compiled."""

import html
import json
import tomllib

from scripts.bake_l7 import differences, setting_cell
from scripts.bake_tables import p50
from scripts.bake_text import WORDS, percent, shape_name, table, us
from scripts.records import ROOT

EVIDENCE = ROOT / "snippets/generated/l7_fast_decode/evidence.json"
PREDICTIONS = ROOT / "snippets/l7_predictions.toml"
TARGETS = {"sm_90": "H100, H200", "sm_120": "RTX 5090"}
# Instructions of the page loop that a rung is about, by the start of their opcodes.
COUNTED = ("LDGSTS.E.BYPASS.128", "UTMALDG", "LDG", "HMMA", "FMUL", "FSEL", "IMAD", "LDS", "BAR")


def predictions(record: dict, lang: str) -> str | None:
    """A line a rung: expected and measured at each shape, the share of the paged read, the reason."""
    words, told = WORDS[lang], tomllib.loads(PREDICTIONS.read_text(encoding="utf-8"))
    found: dict[str, dict[str, dict]] = {}
    for row in sorted((r for r in record["rows"] if r["kind"] == "rung"), key=lambda r: r["rung"]):
        if p50(row) and not differences(row):
            found.setdefault(row["variant"], {})[shape_name(row)] = row
    if not found:
        return None
    shapes = list(dict.fromkeys(shape for rung in found.values() for shape in rung))
    rows = []
    for name, measured in found.items():
        reason = told.get(name, {}).get(lang, "")
        setting = setting_cell(next(iter(measured.values())))
        first = f"{_unbroken(name)}<br><small>{setting}</small>"
        rows.append([first, *(_pair(measured.get(shape)) for shape in shapes), _wrapped(reason)])
    head = [words["rung"], *(shape.replace("x", " × ") for shape in shapes), words["reason"]]
    return table(head, rows) + f"\n<p><small>{html.escape(words['predictions_note'])}</small></p>"


def _unbroken(text: str) -> str:
    """On one line: a phone would break a name between any two letters."""
    return f'<span style="white-space:nowrap">{html.escape(text)}</span>'


def _wrapped(text: str) -> str:
    """Small prose in a column of figures, wide enough for a few words a line."""
    style = "display:block;min-width:16rem;text-align:left;white-space:normal"
    return f'<small style="{style}">{html.escape(text)}</small>'


def _pair(row: dict | None) -> str:
    """Expected, measured, share of the paged read."""
    if row is None:
        return "–"
    expected = row.get("prediction", {}).get("us")
    share = percent(row["share_of_paged_read"]) if "share_of_paged_read" in row else "–"
    told = f"{us(expected) if expected else '–'} → "
    return _unbroken(told) + f"<strong>{us(p50(row))}</strong><br><small>{share}</small>"


def evidence(_: list[dict], lang: str) -> str:
    """A table a target: registers, shared memory, programs an SM, and the instructions of the page loop."""
    words, compiled = WORDS[lang], json.loads(EVIDENCE.read_text(encoding="utf-8"))
    names = [name for name in compiled["rungs"] if f"rung_{name}" in words]
    keys = ("rung", "launch_nws", "registers", "shared_kib", "programs_sm", "loop_all")
    head = [*(words[key] for key in keys), *(opcode.split(".")[0] for opcode in COUNTED)]
    parts = []
    for target, cards in TARGETS.items():
        rows = [
            _evidence_row(name, compiled["rungs"][name][target])
            for name in names
            if target in compiled["rungs"][name]
        ]
        parts.append(f"<h4>{target} ({cards})</h4>\n{table(head, rows, texts=2)}")
    note = words["evidence_note"].format(triton=compiled["triton"])
    return "\n".join([*parts, f"<p><small>{html.escape(note)}</small></p>"])


def _evidence_row(name: str, row: dict) -> list[str]:
    tile = f"{row.get('block_n', 16)} × {row['num_warps']} × {row['num_stages']}"
    counts = [
        sum(n for opcode, n in row["loop"].items() if opcode.startswith(start) and _own(opcode, start))
        for start in COUNTED
    ]
    return [
        _unbroken(name), _unbroken(tile), str(row["num_regs"]), f"{row['shared_bytes'] / 1024:.1f}",
        str(row["programs_per_sm"]), str(sum(row["loop"].values())),
        *(str(n) if n else "–" for n in counts),
    ]  # fmt: skip


def _own(opcode: str, start: str) -> bool:
    """LDG is not LDGSTS or LDGDEPBAR, LDS is not LDSM."""
    return opcode.split(".")[0] == start.split(".")[0] or start == "UTMALDG"
