"""The map of the regret: what a rule for the number of splits loses at each point of the sweep, as HTML.

For L7's page, from the records split_choice.json: our kernels' own choices, the rules of others on the same
measured times, and a table of both. Regret is time / the best measured time - 1.
"""

import html
from collections.abc import Callable
from typing import NamedTuple

from scripts.bake_text import WORDS, percent, table
from scripts.split_regret import (
    BATCH_SIZES,
    CTXS,
    KV_HEADS,
    SPLITS,
    Point,
    best_splits,
    point_of,
    regret,
    summary,
)
from scripts.split_rules import RULES
from scripts.svg import BG, FG, LINE, MUTED, SERIES, Drawing

KERNELS = ("l3", "fast")
UNSPLIT = "unsplit"  # the base: what it costs never to split
WIDTH, LEFT, GAP, CELL_HEIGHT = 720, 50, 14, 20
CELL = (WIDTH - LEFT - 2 * GAP - 6) / (len(KV_HEADS) * len(CTXS))
Found = dict[Point, tuple[float, int, int]]


class Step(NamedTuple):
    """Cells up to this regret: the fill, its opacity, and the text on it."""

    most: float
    fill: str
    opacity: float | None
    text: str


STEPS = (
    Step(0.02, BG, None, MUTED),
    Step(0.05, SERIES[1], 0.14, FG),
    Step(0.15, SERIES[1], 0.36, FG),
    Step(0.5, SERIES[1], None, BG),
    Step(float("inf"), FG, None, BG),
)


def kernels_of(record: dict) -> list[str]:
    """The kernels that the sweep timed, ours to show last."""
    present = {row["kernel"] for row in record["rows"]}
    return [kernel for kernel in KERNELS if kernel in present]


def own_map(record: dict, lang: str) -> str | None:
    """The regret of what each kernel chose."""
    kernels = kernels_of(record)
    maps = {WORDS[lang][f"regret_{kernel}"]: regret(None, record, kernel) for kernel in kernels}
    return heat_maps("regret", maps, record, lang) if maps else None


def rules_map(record: dict, lang: str) -> str | None:
    """The regret of the rules of others, on the times of the fastest kernel that there is."""
    kernels = kernels_of(record)
    if not kernels:
        return None
    maps = {WORDS[lang][f"rule_{name}"]: regret(rule, record, kernels[-1]) for name, rule in RULES.items()}
    return heat_maps("regret-rules", maps, record, lang)


def heat_maps(name: str, maps: dict[str, Found], record: dict, lang: str) -> str:
    """One row of panels a rule, one panel a number of KV heads: B downwards, ctx to the right, % in cells."""
    words, height = WORDS[lang], 70 + len(BATCH_SIZES) * CELL_HEIGHT
    told = " ".join(summary_text(label, found, words) for label, found in maps.items())
    title = f"{words[name.replace('-', '_')]} · {record['gpu']['name']}"
    slug = f"{name}-{record['gpu']['slug']}"
    drawing = Drawing(slug, WIDTH, len(maps) * height + 58, title, f"{words['regret_desc']} {told}", 1.0)
    for i, (label, found) in enumerate(maps.items()):
        top = i * height
        drawing.text(6, top + 18, label, 13, FG, weight=600)
        for j, heads in enumerate(KV_HEADS):
            left = LEFT + j * (len(CTXS) * CELL + GAP)
            panel(drawing, left, top + 44, heads, found, named=j == 0)
    legend(drawing, len(maps) * height + 14, words)
    return f'<figure class="drawing">{drawing.svg()}</figure>'


def panel(drawing: Drawing, left: float, top: float, heads: int, found: Found, named: bool) -> None:
    """The cells of one number of KV heads; `named`: with the batch sizes at its left."""
    drawing.text(left, top - 7, f"Hkv {heads}", 12, MUTED)
    for y, batch_size in enumerate(BATCH_SIZES):
        middle = top + y * CELL_HEIGHT + 14
        if named:
            drawing.text(left - 6, middle, f"B {batch_size}" if not y else str(batch_size), 11, MUTED, "end")
        for x, ctx in enumerate(CTXS):
            place = left + x * CELL, top + y * CELL_HEIGHT
            if (point := Point(batch_size, ctx, heads)) in found:
                value = found[point][0]
                step = next(step for step in STEPS if value <= step.most)
                drawing.rect(*place, CELL, CELL_HEIGHT, step.fill, LINE, 0.5, opacity=step.opacity)
                text = cell_text(value)
                size = 11 if len(text) < 4 else 9
                drawing.text(place[0] + CELL / 2, middle, text, size, step.text, "middle")
            else:
                drawing.text(place[0] + CELL / 2, middle, "·", 11, MUTED, "middle")
    for x, ctx in enumerate(CTXS):
        name = str(ctx) if ctx < 1024 else f"{ctx // 1024}k"
        below = top + len(BATCH_SIZES) * CELL_HEIGHT + 14
        drawing.text(left + (x + 0.5) * CELL, below, name, 10, MUTED, "middle")


def cell_text(value: float) -> str:
    """Per cent without its sign, 0 for anything faster than the best of the comparison; ten times: "x11"."""
    return f"×{1 + value:.0f}" if value >= 9.995 else f"{max(0.0, 100 * value):.0f}"


def slower(value: float) -> str:
    """A regret outside the map: "3.2%", "48%"; from ten times the best time on: "×11"."""
    return cell_text(value) if value >= 9.995 else percent(max(0.0, value))


def legend(drawing: Drawing, y: float, words: dict[str, str]) -> None:
    """What the cells' fills mean, and what is in them."""
    x, least = LEFT, 0.0
    for step in STEPS:
        drawing.rect(x, y, 22, 14, step.fill, LINE, 0.5, opacity=step.opacity)
        most = f"≤ {100 * step.most:.0f} %" if step.most < 10 else f"> {100 * least:.0f} %"
        drawing.text(x + 28, y + 11, most, 11, FG)
        x, least = x + 92, step.most
    drawing.text(LEFT, y + 34, words["regret_cells"], 11, MUTED)


def summary_text(label: str, found: Found, words: dict[str, str]) -> str:
    """A rule's figures in one sentence."""
    told = summary(found)
    return words["regret_told"].format(
        name=label, within=percent(told["within_5"]), worst=slower(told["worst"]), at=worst_at(found)
    )


def worst_at(found: Found) -> str:
    """Where a rule loses most: "8 × 4096, Hkv 2"."""
    point = max(found, key=lambda point: found[point][0])
    return f"{point.batch_size} × {point.ctx}, Hkv {point.num_kv_heads}"


def judged(record: dict, kernel: str) -> dict[str, Found]:
    """{rule: regret}: the kernel's own first ("chosen", and on a wide table), then those of others."""
    found = {"chosen": regret(None, record, kernel), "wide": regret(None, record, kernel, wide=True)}
    found |= {name: regret(rule, record, kernel) for name, rule in RULES.items()}
    found[UNSPLIT] = regret(lambda *_: 1, record, kernel)
    return {name: points for name, points in found.items() if points}


def summary_table(record: dict, lang: str) -> str | None:
    """Every rule on the times of every kernel: shares of points, the worst, and where it is."""
    words, rows = WORDS[lang], []
    for kernel in kernels_of(record):
        for name, found in judged(record, kernel).items():
            told = summary(found)
            rows.append([
                html.escape(words[f"regret_{kernel}"]), html.escape(words[f"rule_{name}"]),
                str(told["points"]), percent(told["within_5"]), percent(told["within_15"]),
                slower(told["p90"]), slower(told["worst"]), worst_at(found),
            ])  # fmt: skip
    names = ("kernel", "rule", "points", "within_5", "within_15", "regret_p90", "regret_worst", "worst_at")
    return table([words[name] for name in names], rows, texts=2) if rows else None


def split_facts(record: dict, key: str) -> dict[str, str]:
    """<key>.<kernel>.<rule>.<what>: rules as in `judged`; and how flat the valley around the best is."""
    facts = {}
    for kernel in kernels_of(record):
        for name, found in judged(record, kernel).items():
            at, told = f"{key}.{kernel}.{name}", summary(found)
            point = max(found, key=lambda point: found[point][0])
            facts |= {
                f"{at}.points": str(told["points"]), f"{at}.worst_at": worst_at(found),
                f"{at}.worst_splits": str(found[point][1]), f"{at}.worst_best": str(found[point][2]),
            }  # fmt: skip
            for what in ("within_5", "within_15", "p50", "p80", "p90", "worst"):
                facts[f"{at}.{what}"] = slower(told[what])
        rows = [row for row in record["rows"] if row["kernel"] == kernel and not row["wide"]]
        close = sorted(len(close_splits(row)) for row in rows)
        best = [best_splits(row) for row in rows]
        facts |= {
            f"{key}.{kernel}.close_splits": str(close[len(close) // 2]),
            f"{key}.{kernel}.best_unsplit": percent(sum(splits == 1 for splits in best) / len(best)),
            f"{key}.{kernel}.narrowest": str(close[0]),
        }
        hardest = min(rows, key=lambda row: (len(close_splits(row)), -row["batch_size"] * row["ctx"]))
        point = point_of(hardest)
        facts[f"{key}.{kernel}.narrowest_at"] = worst_at({point: (0.0, 1, 1)})
    return facts


def close_splits(row: dict) -> list[int]:
    """The numbers of the comparison that are within 5 % of the best at a point."""
    least = row["us"][str(best_splits(row))]
    return [s for s in SPLITS if str(s) in row["us"] and row["us"][str(s)] <= 1.05 * least]


SPLIT_TABLES: dict[str, Callable[[dict, str], str | None]] = {
    "regret": own_map,
    "regret_rules": rules_map,
    "regret_summary": summary_table,
}
