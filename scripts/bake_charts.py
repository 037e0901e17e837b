"""The measured charts of the lessons: log-log plots, one inline SVG for each GPU's panel."""

import math
import tomllib
from collections.abc import Callable

from scripts.bake_tables import find, one, p50, shapes
from scripts.bake_text import WORDS, ratio, shape_text, us
from scripts.chart_rows import measured_cells, measured_columns, span_axis
from scripts.chart_spec import Axis, Chart, Point, Series, decades
from scripts.chart_svg import figure
from scripts.records import ROOT, slug_of
from scripts.svg import BG, FG, MUTED, SERIES, Drawing

LEFT, RIGHT, TOP, BOTTOM = 58, 24, 34, 46


class LogPlot:
    """Two logarithmic axes on a drawing; `x` and `y` give the place of a value."""

    def __init__(self, drawing: Drawing, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        self.drawing, self.x_range, self.y_range = drawing, x_range, y_range
        self.right, self.bottom = drawing.width - RIGHT, drawing.height - BOTTOM

    def x(self, value: float) -> float:
        low, high = map(math.log, self.x_range)
        return LEFT + (math.log(value) - low) / (high - low) * (self.right - LEFT)

    def y(self, value: float) -> float:
        low, high = map(math.log, self.y_range)
        return self.bottom - (math.log(value) - low) / (high - low) * (self.bottom - TOP)

    def axes(self, x_ticks: list[float], y_ticks: list[float], x_name: str, y_name: str) -> None:
        """Grid lines, their numbers, and the names of the axes."""
        for tick in x_ticks:
            self.drawing.line(self.x(tick), TOP, self.x(tick), self.bottom)
            self.drawing.text(self.x(tick), self.bottom + 17, f"{tick:g}", 12, MUTED, "middle")
        for tick in y_ticks:
            self.drawing.line(LEFT, self.y(tick), self.right, self.y(tick))
            self.drawing.text(LEFT - 8, self.y(tick) + 4, f"{tick:g}", 12, MUTED, "end")
        self.drawing.text((LEFT + self.right) / 2, self.bottom + 37, x_name, 12, FG, "middle")
        self.drawing.text(LEFT, TOP - 12, y_name, 12, FG)

    def curve(
        self, points: list[tuple[float, float]], stroke: str, width: float = 2, dash: str | None = None
    ) -> None:
        """Straight lines through the points."""
        places = " L".join(f"{self.x(a):.1f} {self.y(b):.1f}" for a, b in points)
        self.drawing.path(f"M{places}", stroke, width, dash=dash)


def sweep(record: dict, lang: str) -> str | None:
    """Latency against the number of splits, one line a shape; the chosen number has a ring."""
    words, lines = WORDS[lang], []
    for shape in shapes(record):
        rows = [row for row in find(record, "split", **shape) if "latency_us" in row]
        if len(rows) > 1:
            lines.append((shape, sorted(rows, key=lambda row: row["num_splits"])))
    if not lines:
        return None
    every = [row for _, rows in lines for row in rows]
    most = max(row["num_splits"] for row in every)
    told = "".join(_sweep_line(shape, rows, words) for shape, rows in lines).strip()
    gpu = record["gpu"]
    chart = Chart(
        name=f"sweep-{gpu['slug']}",
        title=f"{words['sweep_title']} · {gpu['name']}",
        desc=words["sweep_desc"].format(gpu=gpu["name"], lines=told),
        x=Axis(words["sweep_x"], ("log",), 1, most, base=2),
        y=span_axis(words["sweep_y"], every, ("log", "linear")),
        series=tuple(
            Series(shape_text(shape), colour, tuple(_sweep_point(row, lang) for row in rows))
            for (shape, rows), colour in zip(lines, SERIES, strict=False)
        ),
        columns=(words["shape"], words["num_splits"], *measured_columns(lang)),
        notes=(words["ring"], words["span"]),
        end_labels=True,
    )
    return figure(chart, lang)


def _sweep_point(row: dict, lang: str) -> Point:
    quantiles, splits = row["latency_us"], row["num_splits"]
    name = f"{splits} ({WORDS[lang]['chosen']})" if row["chosen"] else str(splits)
    return Point(
        splits, quantiles["p50"], (name, *measured_cells(row)), (quantiles["p20"], quantiles["p80"]),
        ringed=row["chosen"],
    )  # fmt: skip


def _sweep_line(shape: dict, rows: list[dict], words: dict) -> str:
    best = min(rows, key=p50)
    chosen = next((row for row in rows if row["chosen"]), best)
    return words["sweep_line"].format(
        shape=shape_text(shape), first=us(p50(rows[0])), best=us(p50(best)), best_splits=best["num_splits"],
        chosen=chosen["num_splits"], chosen_us=us(p50(chosen)),
    )  # fmt: skip


def nominal(gpu_name: str) -> dict | None:
    """The vendor's figures of a card, from the table of cited sources, if they are there."""
    text = (ROOT / "snippets/production.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(text).get("hardware", {}).values():
        if f"{slug_of(entry['title'])}-".startswith(f"{slug_of(gpu_name)}-"):
            return entry["figures"]
    return None


def roofline(record: dict, lang: str) -> str | None:
    """Our points under the card's roofs: the vendor's, where it names them, and the measured read ceiling."""
    ceilings = record.get("ceilings")
    if not ceilings:
        return None
    words, name = WORDS[lang], record["gpu"]["name"]
    read = max(ceiling["read_gbps"] for ceiling in ceilings)
    known = nominal(name)
    if known:
        bandwidth, roofs = known["memory_gb_per_s"], [("tensor_roof", known["fp16_tensor_tflops"], SERIES[3])]
        roofs.append(("cuda_roof", known["fp32_tflops"], SERIES[4]))
    else:
        bandwidth, roofs = read, [("matmul_roof", record["matmul_tflops"], SERIES[3])]
    points = []
    for variant, colour in (("naive", SERIES[1]), ("packed", SERIES[0])):
        for shape in shapes(record):
            row = one(record, variant, **shape, page_size=16)
            if row and "latency_us" in row:
                points.append(
                    (
                        variant,
                        colour,
                        shape,
                        row["flop"] / row["bytes_requested"],
                        row["flop"] / p50(row) / 1e6,
                    )
                )
    ridges = [(roof, tflops, 1e3 * tflops / bandwidth, colour) for roof, tflops, colour in roofs]
    ridge_text = "".join(
        words["ridge_text"].format(roof=words[roof].format(f"{tflops:g}"), ridge=f"{ridge:.0f}")
        for roof, tflops, ridge, _ in ridges
    )
    point_text = "".join(
        words["point_text"].format(
            name=words[f"{variant}_short"], shape=shape_text(shape), tflops=ratio(tflops)
        )
        for variant, _, shape, _, tflops in points
    ).strip()
    desc = words["roof_desc"].format(gpu=name, ridges=ridge_text, points=point_text)
    drawing = Drawing(f"roofline-{record['gpu']['slug']}", 720, 430, f"{words['roof_title']} · {name}", desc)
    high = max(tflops for _, tflops, _, _ in ridges)
    low = min([tflops for *_, tflops in points], default=1.0)
    plot = LogPlot(drawing, (0.5, 4096), (low * 0.6, high * 1.8))
    plot.axes(
        [float(4**e) for e in range(7)], decades(*plot.y_range, steps=(1,)), words["roof_x"], words["roof_y"]
    )

    start = 0.5
    top = max(ridge for _, _, ridge, _ in ridges)
    if known:
        plot.curve([(start, start * bandwidth / 1e3), (top, top * bandwidth / 1e3)], MUTED, 1.5, "5 4")
    for roof, tflops, ridge, colour in ridges:
        plot.curve([(ridge, tflops), (4096, tflops)], colour, 2, "5 4" if known else None)
        drawing.circle(plot.x(ridge), plot.y(tflops), 4, BG, colour, 2)
        drawing.text(
            plot.x(ridge) - 8,
            plot.y(tflops) - 7,
            words["ridge"].format(f"{ridge:.0f}"),
            12,
            colour,
            "end",
            600,
        )
        drawing.text(plot.right - 4, plot.y(tflops) - 7, words[roof].format(f"{tflops:g}"), 12, colour, "end")
    plot.curve([(start, start * read / 1e3), (top, top * read / 1e3)], SERIES[2], 2.5)
    drawing.text(plot.x(18), plot.y(10 * read / 1e3), words["read_roof"].format(f"{read:.0f}"), 12, SERIES[2])
    if known:
        drawing.text(
            plot.x(18), plot.y(10 * read / 1e3) + 17, words["nominal_bw"].format(f"{bandwidth:g}"), 12, MUTED
        )
    for _, colour, shape, intensity, tflops in points:
        drawing.circle(plot.x(intensity), plot.y(tflops), 5, colour)
        # The label keeps off the roof: above a point that is over it, else to the right.
        if tflops > intensity * read / 1e3:
            drawing.text(plot.x(intensity), plot.y(tflops) - 10, shape_text(shape), 12, colour, "middle")
        else:
            drawing.text(plot.x(intensity) + 10, plot.y(tflops) + 4, shape_text(shape), 12, colour)
    if any(tflops > intensity * read / 1e3 for *_, intensity, tflops in points):
        drawing.text(plot.right, TOP - 12, words["above"], 12, MUTED, "end")
    for i, (variant, colour) in enumerate((("naive", SERIES[1]), ("packed", SERIES[0]))):
        y = plot.bottom - 42 + 18 * i
        drawing.circle(plot.right - 200, y - 4, 5, colour)
        drawing.text(plot.right - 188, y, words[f"{variant}_short"], 12, FG)
    return f'<figure class="drawing">{drawing.svg()}</figure>'


CHARTS: dict[str, dict[str, Callable[[dict, str], str | None]]] = {
    "l2_paged_decode": {"roofline": roofline},
    "l3_split_kv_decode": {"sweep": sweep},
}
