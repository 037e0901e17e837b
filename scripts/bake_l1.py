"""The charts and tables of lesson L1: memory policies and shared prefixes, and the measured layouts.

The simulation and the page counts are recorded in snippets/generated/traces/l1_paged_cache.json
(scripts/record_traces.py). A copy takes no measured time there: it is modelled as its bytes read and written
at the read bandwidth that L2's bench measured on the first card, and every place that shows it says so.
"""

import html
import json
import math
from dataclasses import dataclass

from scripts.bake_tables import us_cell
from scripts.bake_text import LANGS, WORDS, percent, ratio, table, us
from scripts.chart_spec import Axis, Chart, Point, Series
from scripts.chart_svg import figure
from scripts.records import ROOT
from scripts.svg import MUTED, SERIES

LESSON = "l1_paged_cache"
TRACE = ROOT / f"snippets/generated/traces/{LESSON}.json"
GIB = 2**30
PAGED, RESERVE = "page 16", "reserve"


def trace() -> dict:
    """What was recorded for the lesson."""
    return json.loads(TRACE.read_text(encoding="utf-8"))


def read_ceiling(loaded: list[dict]) -> tuple[str, float]:
    """(card, GB/s): the best read bandwidth in the first measured record of L2; ("–", NaN) without one."""
    for record in loaded:
        if record["kind"] == "measured" and record["lesson"] == "l2_paged_decode":
            return record["gpu"]["name"], max(ceiling["read_gbps"] for ceiling in record["ceilings"])
    return "–", math.nan


def figures_of(policy: dict, simulation: dict, gbps: float) -> dict[str, float]:
    """What is told of one policy; sizes in GiB, stall_us modelled."""
    token_bytes = simulation["bytes_per_token"]
    mean = policy["used"] / policy["steps"]
    return {
        "share": policy["used"] / policy["reserved"],
        "reserved_gib": policy["reserved"] / policy["steps"] * token_bytes / GIB,
        "needed_gib": policy["extent"] * token_bytes / GIB,
        "over": policy["extent"] / policy["peak_used"],
        "holes": 1 - policy["peak_reserved"] / policy["extent"],
        "copied": policy["copied"] / policy["generated"],
        "copied_gib": policy["copied"] * token_bytes / GIB,
        "copy_steps": policy["copy_steps"] / policy["steps"],
        "worst_mib": policy["worst_copy"] * token_bytes / 2**20,
        "stall_us": 2 * policy["worst_copy"] * token_bytes / gbps / 1e3,
        "read_us": mean * token_bytes / gbps / 1e3,
    }


def name_of(policy: str, lang: str) -> str:
    """ "grow 1.5" as the page calls it."""
    kind, _, value = policy.partition(" ")
    return WORDS[lang][f"l1_{kind}"].format(value)


# region policies
def policies(loaded: list[dict], lang: str) -> str:
    """Every policy on the trace."""
    words, simulation = WORDS[lang], trace()["simulation"]
    card, gbps = read_ceiling(loaded)
    rows = []
    for policy, summary in simulation["policies"].items():
        f = figures_of(summary, simulation, gbps)
        moves = summary["copied"] > 0
        rows.append([
            html.escape(name_of(policy, lang)), percent(f["share"]), f"{f['needed_gib']:.1f}",
            f"{f['over']:.2f}", percent(f["holes"]) if f["holes"] else "0",
            f"{f['copied']:.2f}" if moves else "0",
            percent(f["copy_steps"]) if moves else "0",
            ("–" if math.isnan(gbps) else us(f["stall_us"])) if moves else "0",
        ])  # fmt: skip
    names = ("used_share", "needed", "over", "holes", "copied", "copy_steps", "stall")
    head = [words["l1_policy"], *(words[f"l1_{name}"] for name in names)]
    note = words["l1_policies_note"].format(card=card, gbps=f"{gbps:.0f}")
    return f"<div>\n{scrolled(table(head, rows))}<p><small>{html.escape(note)}</small></p>\n</div>\n"


def growth(loaded: list[dict], lang: str) -> str:
    """Memory needed and tokens copied against the factor; paging and reserving as lines across."""
    words, simulation = WORDS[lang], trace()["simulation"]
    _, gbps = read_ceiling(loaded)
    told = {name: figures_of(p, simulation, gbps) for name, p in simulation["policies"].items()}
    grown = {float(name.split()[1]): told[name] for name in told if name.startswith("grow")}

    def points(key: str) -> tuple[Point, ...]:
        return tuple(Point(x, f[key], (f"{x:g}", f"{f[key]:.2f}")) for x, f in grown.items())

    def across(policy: str, colour: str, marker: str) -> Series:
        value = told[policy]["over"]
        point = Point(max(grown), value, ("–", f"{value:.2f}"))
        return Series(words[f"l1_short_{policy.split()[0]}"], colour, (point,), marker, rule=value)

    series = (
        Series(words["l1_needed_line"], SERIES[0], points("over")),
        Series(words["l1_copied_line"], SERIES[1], points("copied"), "square"),
        across(PAGED, SERIES[2], "diamond"),
        across(RESERVE, MUTED, "triangle"),
    )
    low, high = grown[min(grown)], grown[max(grown)]
    desc = words["l1_growth_desc"].format(
        low=f"{min(grown):g}", high=f"{max(grown):g}", low_over=f"{low['over']:.2f}",
        high_over=f"{high['over']:.2f}",
        low_copied=f"{low['copied']:.2f}", high_copied=f"{high['copied']:.2f}",
        paged=f"{told[PAGED]['over']:.2f}", reserve=f"{told[RESERVE]['over']:.2f}",
    )  # fmt: skip
    top = max(point.y for one in series for point in one.points)
    chart = Chart(
        "l1-growth", words["l1_growth_title"], desc,
        FactorAxis(words["l1_factor"], ("log",), min(grown), max(grown), tried=tuple(sorted(grown))),
        Axis(words["l1_growth_y"], ("linear", "log"), 0.8, top * 1.08), series,
        (words["l1_line"], words["l1_factor_short"], words["l1_value"]),
        notes=(words["l1_growth_note"],),
    )  # fmt: skip
    return figure(chart, lang) + "\n"


@dataclass(frozen=True)
class FactorAxis(Axis):
    """A log axis that marks the values that were tried."""

    tried: tuple[float, ...] = ()

    def ticks(self, scale: str, most: int) -> list[tuple[float, str]]:
        return [(x, f"{x:g}") for x in self.tried[:: 1 if len(self.tried) <= most else 2]]


def over_time(_: list[dict], lang: str) -> str:
    """Reserved and used memory, step by step."""
    words, simulation = WORDS[lang], trace()["simulation"]
    gib = simulation["bytes_per_token"] / GIB
    steps = simulation["sampled_steps"]
    curves = {name: simulation["curves"][name] for name in simulation["curves"]} | {
        "used": simulation["used"]
    }
    looks = {
        RESERVE: (MUTED, "triangle", None), "grow 2": (SERIES[1], "square", None),
        "grow 1.25": (SERIES[3], "square", "5 4"), "used": (SERIES[0], "circle", None),
        PAGED: (SERIES[2], "diamond", "5 4"),
    }  # fmt: skip
    series = tuple(
        Series(
            name_of(name, lang), colour,
            tuple(
                Point(step, tokens * gib, (str(step), f"{tokens * gib:.2f}"))
                for step, tokens in zip(steps, curves[name], strict=True)
            ),
            marker, 1.5, dash,
        )
        for name, (colour, marker, dash) in looks.items()
    )  # fmt: skip
    most = max(curves[RESERVE]) * gib
    chart = Chart(
        "l1-over-time", words["l1_time_title"], words["l1_time_desc"].format(
            used=f"{max(simulation['used']) * gib:.1f}", reserve=f"{most:.1f}",
            paged=f"{max(curves[PAGED]) * gib:.1f}", grow=f"{max(curves['grow 2']) * gib:.1f}",
        ),
        Axis(words["l1_step"], ("linear",), 0, steps[-1]), Axis(words["l1_gib"], ("linear",), 0, most * 1.05),
        series, (words["l1_line"], words["l1_step"], "GiB"), notes=(words["l1_time_note"],),
    )  # fmt: skip
    return figure(chart, lang) + "\n"


# endregion policies


def sharing(_: list[dict], lang: str) -> str:
    """Pages of n requests with a common prefix, forked off it and each for itself."""
    words, prefix = WORDS[lang], trace()["prefix"]
    rows = [
        [str(row["requests"]), str(row["pages_apart"]), str(row["pages"]), str(row["copies"]),
         ratio(row["pages_apart"] / row["pages"])]
        for row in prefix["rows"]
    ]  # fmt: skip
    names = ("requests", "pages_apart", "pages_shared", "pages_copied", "pages_ratio")
    return scrolled(table([words[f"l1_{name}"] for name in names], rows, texts=0))


# region measured
def writes(record: dict, lang: str) -> str | None:
    """A line a shape: the write kernel and indexing in both layouts, and a copy."""
    words, found = WORDS[lang], {}
    for row in record["rows"]:
        if row["kind"] == "write":
            what = row["variant"], row["kv_layout"]
            found.setdefault((row["batch_size"], row["ctx"]), {})[what] = row
    variants = [(what, layout) for what in ("write_kv", "index_put") for layout in ("NHD", "HND")]
    variants.append(("copy", "-"))
    rows = []
    for (batch_size, ctx), by_variant in found.items():
        kernel = by_variant["write_kv", "NHD"]
        rows.append([
            f"{batch_size} × {ctx}", *(us_cell(by_variant[what], lang) for what in variants),
            f"{kernel['bandwidth_gbps']:.0f}" if "bandwidth_gbps" in kernel else "–",
            f"{kernel['rotation_bytes'] / 1e6:.1f}",
        ])  # fmt: skip
    names = [
        words[f"l1_{name}"] + ("" if layout == "-" else f" {layout}") + ", us" for name, layout in variants
    ]
    head = [words["l1_new_tokens"], *names, words["l1_write_gbps"], words["l1_rotation"]]
    return table(head, rows) if rows else None


def reads(record: dict, lang: str) -> str | None:
    """L2's kernel in both layouts, side by side."""
    words, found = WORDS[lang], {}
    for row in record["rows"]:
        if row["kind"] == "read":
            key = row["batch_size"], row["ctx"], row["page_size"]
            found.setdefault(key, {})[row["kv_layout"]] = row
    rows = []
    for (batch_size, ctx, page_size), by_layout in found.items():
        nhd, hnd = by_layout["NHD"], by_layout["HND"]
        both = "latency_us" in nhd and "latency_us" in hnd
        rows.append([
            f"{batch_size} × {ctx}", str(page_size), us_cell(nhd, lang), us_cell(hnd, lang),
            f"{hnd['latency_us']['p50'] / nhd['latency_us']['p50']:.3f}" if both else "–",
        ])  # fmt: skip
    head = [words["shape"], words["page"], "NHD", "HND", "HND / NHD"]
    return table(head, rows) if rows else None


L1_TABLES = {"writes": writes, "reads": reads}  # of the record
# endregion measured


def scrolled(content: str) -> str:
    return f'<div class="table-scroll">\n{content}\n</div>\n'


def l1_pages(loaded: list[dict]) -> dict[str, str]:
    """{path below snippets/generated: content} of what follows from the recorded trace."""
    makers = {"policies": policies, "growth": growth, "over_time": over_time, "sharing": sharing}
    return {
        f"{LESSON}/{name}.{lang}.html": make(loaded, lang) for name, make in makers.items() for lang in LANGS
    }
