"""The specs of L7's charts: achieved bandwidth against bytes for every implementation, and the ladder."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from scripts.bake_l7 import (
    OURS,
    Case,
    cases,
    ceiling_of,
    differences,
    name_of,
    setting_cell,
    variants,
)
from scripts.bake_tables import p50
from scripts.bake_text import WORDS, shape_text, us
from scripts.chart_rows import measured_cells, measured_columns, span_axis
from scripts.chart_spec import Axis, Chart, Point, Series
from scripts.chart_svg import figure
from scripts.svg import FG, MUTED, SERIES

# A project has a colour, its variants differ by marker and dashes: (colour, marker, width, dash).
STYLES = {
    OURS: (SERIES[0], "circle", 3.0, None),
    "fast_decode_no_pdl": (SERIES[0], "diamond", 1.5, "6 3"),
    "split_kv_decode": (SERIES[5], "square", 1.5, None),
    "paged_decode": (SERIES[5], "triangle", 1.5, "6 3"),
    "flashinfer_tc": (SERIES[1], "square", 1.5, None),
    "flashinfer_cuda": (SERIES[1], "triangle", 1.5, "6 3"),
    "flashinfer_xqa": (SERIES[1], "diamond", 1.5, "2 3"),
    "vllm_decode": (SERIES[3], "square", 1.5, None),
    "vllm_unified": (SERIES[3], "triangle", 1.5, "6 3"),
    "sdpa_cudnn": (SERIES[2], "square", 1.5, None),
    "sdpa_flash": (SERIES[2], "triangle", 1.5, "6 3"),
    "flash_attention_paged": (SERIES[4], "square", 1.5, None),
    "read": (FG, "circle", 1.5, "2 3"),
    "paged_read": (MUTED, "circle", 1.5, "2 3"),
}
OTHER = (SERIES[4], "diamond", 1.5, "2 3")
APART = 1.08  # shapes of the same size stand this factor apart


def bandwidth(record: dict, lang: str) -> str | None:
    """GB/s against KV bytes, a line for every implementation and for both ceilings."""
    words, gpu = WORDS[lang], record["gpu"]
    found = [case for case in cases(record) if case.plain]
    if not found:
        return None
    places = _places(found)
    points: dict[str, list[Point]] = {name: [] for name in (*variants(found), "read", "paged_read")}
    for case in found:
        for name, row in [*case.rows.items(), *_ceilings(record, case)]:
            if p50(row):
                points[name].append(_bandwidth_point(case, row, places[case.name], lang))
    every = [point for line in points.values() for point in line]
    chart = Chart(
        name=f"bandwidth-{gpu['slug']}",
        title=f"{words['bandwidth_title']} · {gpu['name']}",
        desc=words["bandwidth_desc"].format(gpu=gpu["name"], lines=_told(found, lang)),
        x=Axis(words["bandwidth_x"], ("log",), min(p.x for p in every) / 1.1, max(p.x for p in every) * 1.1),
        y=Axis(
            words["bandwidth_y"], ("linear", "log"),
            min(p.y for p in every) * 0.9, max(p.y for p in every) * 1.06,
        ),
        series=tuple(
            Series(name_of(name, lang), colour, tuple(sorted(line, key=lambda p: p.x)), marker, width, dash)
            for name, line in points.items()
            if line
            for colour, marker, width, dash in [STYLES.get(name, OTHER)]
        ),
        columns=(
            words["implementation"], words["shape"], words["setting"], words["kv_mb"], *measured_columns(lang)
        ),
        text_columns=3,
        notes=(words["bandwidth_case"], words["bandwidth_note"], words["span"]),
    )  # fmt: skip
    return figure(chart, lang)


def _places(found: list[Case]) -> dict[str, float]:
    """MB of each case on the x axis."""
    sizes, seen = Counter(case.kv_bytes for case in found), Counter()
    places = {}
    for case in found:
        middle = (sizes[case.kv_bytes] - 1) / 2
        places[case.name] = case.kv_bytes / 1e6 * APART ** (seen[case.kv_bytes] - middle)
        seen[case.kv_bytes] += 1
    return places


def _bandwidth_point(case: Case, row: dict, x: float, lang: str) -> Point:
    latency, gbps = row["latency_us"], row["bandwidth_gbps"]
    cells = (
        case.text(lang),
        setting_cell(row),
        f"{case.kv_bytes / 1e6:.1f}",
        *measured_cells(row),
    )
    ends = (gbps * latency["p50"] / latency["p80"], gbps * latency["p50"] / latency["p20"])
    return Point(x, gbps, cells, ends)


def _ceilings(record: dict, case: Case) -> list[tuple[str, dict]]:
    """("read" or "paged_read", a row) of a case's shape."""
    row = ceiling_of(record, case.first) or {}
    return [
        (
            kind,
            {"latency_us": row[f"{kind}_us"], "bandwidth_gbps": row[f"{kind}_gbps"],
             "setting": row.get(f"{kind}_config")},
        )
        for kind in ("read", "paged_read")
        if f"{kind}_us" in row
    ]  # fmt: skip


def _told(found: list[Case], lang: str) -> str:
    lines = []
    for case in found:
        others = [row for row in case.rows.values() if row["kind"] == "peer" and p50(row)]
        if others and p50(case.rows.get(OURS, {})):
            best = min(others, key=p50)
            lines.append(WORDS[lang]["bandwidth_line"].format(
                shape=case.text(lang), ours=f"{case.rows[OURS]['bandwidth_gbps']:.0f}",
                name=name_of(best["variant"], lang), best=f"{best['bandwidth_gbps']:.0f}",
            ))  # fmt: skip
    return "".join(lines).strip()


def rungs(record: dict) -> tuple[list[str], set[str]]:
    """(the ladder in its order, then fast_decode, then what was not kept; what was not kept)."""
    rows = sorted((row for row in record["rows"] if row["kind"] == "rung"), key=lambda row: row["rung"])
    kept = {row["variant"]: row.get("kept", True) for row in rows}
    left = [name for name in kept if not kept[name]]
    return [*(name for name in kept if kept[name]), *([OURS] if kept else []), *left], set(left)


def ladder(record: dict, lang: str) -> str | None:
    """Latency of every rung, a line a shape; predictions hollow, the paged-read floor a rule."""
    words, gpu = WORDS[lang], record["gpu"]
    order, left = rungs(record)
    if not order:
        return None
    rows = [row for row in record["rows"] if row["variant"] in order and p50(row) and not differences(row)]
    shapes = dict.fromkeys((r["batch_size"], r["ctx"]) for r in rows if r["kind"] == "rung")
    series, told, measured, floors, predicted = [], [], [], [], []
    for (batch_size, ctx), colour in zip(shapes, SERIES, strict=False):
        own = {row["variant"]: row for row in rows if (row["batch_size"], row["ctx"]) == (batch_size, ctx)}
        line = [own[name] for name in order if name in own]
        floor = (ceiling_of(record, line[0]) or {}).get("paged_read_us", {}).get("p50")
        points = tuple(
            _ladder_point(row, order.index(row["variant"]), row["variant"] in left) for row in line
        )
        series.append(Series(shape_text(line[0]), colour, points, rule=floor))
        ends = [row for row in line if row["variant"] not in left]
        told.append(words["ladder_line"].format(
            shape=shape_text(line[0]), first=us(p50(ends[0])), last=us(p50(ends[-1])),
            floor=us(floor) if floor else "–",
        ))  # fmt: skip
        measured += line
        floors += [floor] if floor else []
        predicted += [point.predicted for point in points if point.predicted]
    x = span_axis(words["ladder_x"], measured, ("log", "near"), floors + predicted)
    near = (min(floors, default=x.low) * 0.94, max(floors, default=x.high) * 1.3)
    chart = Chart(
        name=f"ladder-{gpu['slug']}",
        title=f"{words['ladder_title']} · {gpu['name']}",
        desc=words["ladder_desc"].format(gpu=gpu["name"], lines="".join(told).strip()),
        x=replace(x, near=near),
        y=Axis(words["rung"], labels=tuple((name, words.get(f"rung_{name}", "")) for name in order)),
        series=tuple(series),
        columns=(
            words["shape"], words["rung"], words["setting"], words["predicted"], *measured_columns(lang)
        ),
        text_columns=3,
        notes=(words["ladder_floor"], words["ladder_hollow"], words["span"], words["near_note"]),
    )  # fmt: skip
    return figure(chart, lang)


def _ladder_point(row: dict, index: int, left: bool) -> Point:
    latency, predicted = row["latency_us"], row.get("prediction", {}).get("us")
    cells = (
        row["variant"], setting_cell(row), us(predicted) if predicted else "–", *measured_cells(row),
    )  # fmt: skip
    span = (latency["p20"], latency["p80"])
    return Point(latency["p50"], index, cells, span, predicted, joined=not left)


L7_CHARTS: dict[str, Callable[[dict, str], str | None]] = {"bandwidth": bandwidth, "ladder": ladder}
