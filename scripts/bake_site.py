"""The tables that are not of one lesson's record: the cards, what each target takes, the launch sweep."""

import html
import json

from scripts.bake_ladder import evidence
from scripts.bake_text import WORDS, table, us
from scripts.records import ROOT, SWEEPS, outdated

COMPILE_GRID = ROOT / "snippets/generated/compile_grid.json"
TARGETS = {"sm_80": "A100", "sm_90": "H100, H200", "sm_120": "RTX 5090", "gfx942": "MI300X"}
DTYPES = {"fp16": "fp16, bf16", "fp32": "fp32"}


def gpus(loaded: list[dict], lang: str) -> str:
    """Every card with a record of a lesson: measured here or cited, with what software, when."""
    words = WORDS[lang]
    cards: dict[str, list[dict]] = {}
    for record in loaded:
        if record["lesson"] not in SWEEPS:
            cards.setdefault(record["gpu"]["slug"], []).append(record)
    rows = []
    for records in cards.values():
        first = records[0]
        software = first.get("software", {})
        versions = ", ".join(
            f"{name} {html.escape(software[key])}"
            for name, key in ((words["driver"], "driver"), ("torch", "torch"), ("triton", "triton"))
            if key in software
        )
        lessons = ", ".join(f"<code>{html.escape(record['lesson'])}</code>" for record in records)
        kind = words["cited" if first["kind"] == "cited" else "measured"]
        rows.append([
            html.escape(first["gpu"]["name"]), kind, str(first["gpu"].get("num_sms", "–")), lessons,
            versions or "–", first.get("date", "–"),
        ])  # fmt: skip
    head = [words[key] for key in ("gpu", "kind", "sms", "lessons", "software", "date")]
    return table(head, rows, texts=len(head))


def targets(_: list[dict], lang: str) -> str:
    """The largest group that each (target, dtype, page size, head dim) takes, from the compile record."""
    words = WORDS[lang]
    taken: dict[tuple, int] = {}
    for row in json.loads(COMPILE_GRID.read_text(encoding="utf-8"))["rows"]:
        if row["kernel"] == "packed" and "refused" not in row:
            key = row["target"], row["dtype"], row["page_size"], row["head_dim"]
            taken[key] = max(taken.get(key, 0), 16, row["group_size"])
    dims = sorted({key[3] for key in taken})
    parts = []
    for target, cards in TARGETS.items():
        rows = [
            [f"{names}, {words['page']} {page_size}", *(
                str(taken.get((target, dtype, page_size, dim), "–")) for dim in dims
            )]
            for dtype, names in DTYPES.items()
            for page_size in sorted({key[2] for key in taken})
        ]  # fmt: skip
        head = [words["largest_group"], *(f"D {dim}" for dim in dims)]
        parts.append(f"<h4>{target} ({cards})</h4>\n{table(head, rows)}")
    return "\n".join(parts)


def launch_sweep(loaded: list[dict], lang: str) -> str:
    """Latency of the lesson's own case over warps and stages, for each card with a sweep."""
    words = WORDS[lang]
    parts = []
    for record in (record for record in loaded if record["lesson"] == "launch_sweep"):
        for batch_size, ctx in ((64, 1024), (1, 32768)):
            found = {
                (row["num_warps"], row["num_stages"]): row["latency_us"]["p50"]
                for row in record["rows"]
                if row["kernel"] == "packed"
                and (row["batch_size"], row["ctx"]) == (batch_size, ctx)
                and (row["dtype"], row["head_dim"], row["page_size"]) == ("fp16", 128, 16)
            }
            best = min(found.values())
            stages = sorted({key[1] for key in found})
            rows = [
                [str(warps), *(_best(found[warps, n], best) for n in stages)]
                for warps in sorted({key[0] for key in found})
            ]
            parts.append(f"<p>{batch_size} × {ctx}{words['sweep_caption']}</p>")
            parts.append(table(["warps \\ stages", *map(str, stages)], rows))
        if "kernels/l2_paged_decode.py" in outdated(record):
            stale = words["stale"].format("kernels/l2_paged_decode.py")
            parts.append(f'<p class="stale">{stale}</p>')
        software = record["software"]
        source = " · ".join([
            record["gpu"]["name"], f"{words['driver']} {software['driver']}", f"torch {software['torch']}",
            f"triton {software['triton']}", record["date"], words["cold"],
        ])  # fmt: skip
        command = html.escape(record["command"])
        parts.append(f"<p><small>{html.escape(source)} · <code>{command}</code></small></p>")
    return "\n".join(parts)


def _best(value: float, best: float) -> str:
    return f"<strong>{us(value)}</strong>" if value == best else us(value)


SITE_TABLES = {
    "method/gpus": gpus,
    "run/targets": targets,
    "l2_paged_decode/launch_sweep": launch_sweep,
    "l7_fast_decode/evidence": evidence,
}
