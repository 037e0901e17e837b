"""From a chart's spec to a page's HTML: two SVGs (wide, and for a phone), a legend, a table of its points.

All of it can be read without JavaScript. What the reader may change is laid out here too: an element that
moves with the scale of the measured axis holds its place under each (data-log, ...), and ticks say whose
scale they are. So docs/assets/javascripts/chart.mjs computes no place and knows no word.
"""

import html
from collections.abc import Callable
from functools import partial

from scripts.bake_text import WORDS, table
from scripts.chart_spec import Chart, Point, Series, apart
from scripts.svg import BG, FG, MUTED, Drawing, element

# The shape of a marker around (0, 0).
MARKERS = {
    "circle": "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z",
    "square": "M-3.2-3.2H3.2V3.2H-3.2Z",
    "diamond": "M0-4.6L4.6 0L0 4.6L-4.6 0Z",
    "triangle": "M0-4.4L4.4 3.4H-4.4Z",
}
LANE = 8  # px between the series of one category
ROW = 27  # px of a category: its name, and to this a lane for each series
ENDS = 110  # px for the names at the ends of the lines


class Plot:
    """One SVG of a chart: where its values lie, and what is drawn there."""

    def __init__(self, chart: Chart, narrow: bool) -> None:
        width = 340 if narrow else 720
        rows = len(chart.y.labels) * (ROW + LANE * len(chart.series))
        height = 62 + rows if chart.steps else (330 if narrow else 430)
        self.chart, self.narrow = chart, narrow
        self.left, self.right = (14 if chart.steps else 46 if narrow else 58), width - 16
        self.top, self.bottom = (16 if chart.steps else 36), height - 46
        self.scales = chart.measured.scales
        suffix = "-narrow" if narrow else ""
        smallest = 0.8 if narrow else 0.78
        self.drawing = Drawing(f"{chart.name}{suffix}", width, height, chart.title, chart.desc, smallest)

    def x(self, value: float, scale: str | None) -> float:
        ends = ENDS if self.chart.end_labels and not self.narrow else 0
        inset = 0 if self.chart.steps else 10
        room = self.right - ends - self.left - 2 * inset
        return self.left + inset + self.chart.x.share(value, scale) * room

    def y(self, value: float, scale: str | None) -> float:
        if self.chart.steps:
            return self.top + (self.bottom - self.top) * value / len(self.chart.y.labels)
        return self.bottom - self.chart.y.share(value, scale) * (self.bottom - self.top)

    def place(self, point: Point, scale: str, lane: int, value: float | None = None) -> tuple[float, float]:
        """Where a point is; or where it would be with another measured value."""
        if self.chart.steps:
            down = self.y(point.y, None) + ROW + LANE * lane
            return self.x(point.x if value is None else value, scale), down
        return self.x(point.x, self.chart.x.scales[0]), self.y(point.y if value is None else value, scale)

    def moving(self, name: str, make: Callable[[str], str]) -> dict[str, str]:
        """An attribute as it shows first, and as it is under each scale where there are several."""
        places = {f"data-{scale}": make(scale) for scale in self.scales}
        return {name: make(self.scales[0]), **(places if len(places) > 1 else {})}

    def draw(self) -> str:
        self.axes()
        for i, series in enumerate(self.chart.series):
            with self.drawing.group(data_series=i, stroke=series.colour, fill=series.colour):
                self.curve(series, i)
        self.category_names()
        if self.chart.end_labels and not self.narrow:
            self.end_labels()
        for i, series in enumerate(self.chart.series):
            with self.drawing.group(data_series=i, fill=series.colour):
                self.marks(series, i)
        return self.drawing.svg()

    def axes(self) -> None:
        """Grid lines and their numbers, of the measured axis once a scale; the names of the axes."""
        chart, drawing = self.chart, self.drawing
        if not chart.steps:
            self.x_ticks(chart.x.scales[0])
        for scale in self.scales:
            hidden = None if scale == self.scales[0] else "none"
            with drawing.group(data_scale=scale, display=hidden):
                (self.x_ticks if chart.steps else self.y_ticks)(scale)
        for i in range(len(chart.y.labels)):
            drawing.line(self.left, self.y(i, None), self.right, self.y(i, None))
        drawing.text((self.left + self.right) / 2, self.bottom + 37, chart.x.name, 12, FG, "middle")
        if not chart.steps:
            drawing.text(12 if self.narrow else self.left, self.top - 14, chart.y.name, 12, FG)

    def category_names(self) -> None:
        """At the head of each row, over what crosses it."""
        for i, (label, note) in enumerate(self.chart.y.labels):
            at = self.y(i, None) + 16
            self.drawing.text(self.left, at, label, 12, FG, weight=600, halo=True)
            if not self.narrow:
                self.drawing.text(self.left + 150, at, note, 12, MUTED, halo=True)

    def x_ticks(self, scale: str) -> None:
        for value, text in self.chart.x.ticks(scale, 5 if self.narrow else 10):
            at = self.x(value, scale)
            self.drawing.line(at, self.top, at, self.bottom)
            self.drawing.text(at, self.bottom + 17, text, 12, MUTED, "middle")

    def y_ticks(self, scale: str) -> None:
        for value, text in self.chart.y.ticks(scale, 9):
            at = self.y(value, scale)
            self.drawing.line(self.left, at, self.right, at)
            self.drawing.text(self.left - 8, at + 4, text, 12, MUTED, "end")

    def curve(self, series: Series, lane: int) -> None:
        """The line through the points, their p20 to p80, what was predicted, and the rule."""

        def through(scale: str) -> str:
            places = [_at(*self.place(point, scale, lane)) for point in series.points if point.joined]
            return f"M{'L'.join(places)}" if len(places) > 1 else ""

        def spans(scale: str) -> str:
            ends = [(point, value) for point in series.points for value in point.span or ()]
            places = [_at(*self.place(point, scale, lane, value)) for point, value in ends]
            return "".join(f"M{a}L{b}" for a, b in zip(places[::2], places[1::2], strict=True))

        def predictions(scale: str) -> str:
            places = []
            for point in series.points:
                if point.predicted is not None:
                    x, y = self.place(point, scale, lane, point.predicted)
                    places.append(f"M{_at(x - 3.5, y)}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0")
            return "".join(places)

        def rule(scale: str) -> str:
            if self.chart.steps:
                at = self.x(series.rule, scale)
                return f"M{_at(at, self.top)}L{_at(at, self.bottom)}"
            at = self.y(series.rule, scale)
            return f"M{_at(self.left, at)}L{_at(self.right, at)}"

        if series.rule is not None:
            self._path(rule, dash="2 3", width=1.5)
        self._path(through, dash=series.dash, width=1 if self.chart.steps else series.width)
        self._path(spans, width=5, opacity=0.35)
        self._path(predictions, width=1.5)

    def _path(
        self, make: Callable[[str], str], width: float, dash: str | None = None, opacity: float | None = None
    ) -> None:
        if make(self.scales[0]):
            style = {
                "fill": "none",
                "stroke-width": width,
                "stroke-dasharray": dash,
                "stroke-opacity": opacity,
            }
            self.drawing.add("path", self.moving("d", make) | style)

    def marks(self, series: Series, lane: int) -> None:
        """The points on top of all lines; each names its row of the table."""
        first = sum(len(other.points) for other in self.chart.series[:lane])
        for row, point in enumerate(series.points, first):
            place = self.moving("transform", partial(_moved, self, point, lane))
            if point.ringed:
                ring = {"r": 7, "fill": BG, "stroke": series.colour, "stroke-width": 2.5}
                self.drawing.add("circle", place | ring)
            self.drawing.add("path", {"d": MARKERS[series.marker], **place, "data-row": row})

    def end_labels(self) -> None:
        """Each series' name beside its last point, none on another."""
        for scale in self.scales:
            ends = []
            for i, series in enumerate(self.chart.series):
                x, y = self.place(series.points[-1], scale, i)
                ends.append((y + 4, x + 10, i, series))
            with self.drawing.group(data_scale=scale, display=None if scale == self.scales[0] else "none"):
                for y, x, i, series in apart(ends, 15):
                    with self.drawing.group(data_series=i):
                        self.drawing.text(x, y, series.name, 12, series.colour, weight=600)


def _at(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"


def _moved(plot: Plot, point: Point, lane: int, scale: str) -> str:
    return f"translate({_at(*plot.place(point, scale, lane))})"


def figure(chart: Chart, lang: str) -> str:
    """The chart as a page holds it."""
    words = WORDS[lang]
    rows = [[html.escape(s.name), *point.cells] for s in chart.series for point in s.points]
    data = table(list(chart.columns), rows, chart.text_columns)
    along = "y" if chart.steps else "x"
    svgs = "".join(
        f'<div class="chart-{size}">{Plot(chart, size == "narrow").draw()}</div>\n'
        for size in ("wide", "narrow")
    )
    keys = "".join(
        f'<li data-series="{i}">{_swatch(series)}<span>{html.escape(series.name)}</span></li>'
        for i, series in enumerate(chart.series)
    )
    notes = (
        f'<p class="chart-notes">{"<br>".join(map(html.escape, chart.notes))}</p>\n' if chart.notes else ""
    )
    return (
        f'<figure class="chart" data-along="{along}" data-search-exclude>\n{_scale_buttons(chart, lang)}'
        f'<div class="chart-plot" data-help="{html.escape(words["chart_help"])}">\n{svgs}</div>\n'
        f'<ul class="chart-legend">{keys}</ul>\n{notes}'
        f'<details class="chart-data"><summary>{html.escape(words["chart_data"])}</summary>\n'
        f'<div class="table-scroll">\n{data}\n</div></details>\n</figure>'
    )


def _scale_buttons(chart: Chart, lang: str) -> str:
    """Hidden until chart.mjs makes them work."""
    scales = chart.measured.scales
    if len(scales) < 2:
        return ""
    buttons = "".join(
        f'<button type="button" data-scale="{scale}" aria-pressed="{str(scale == scales[0]).lower()}">'
        f"{WORDS[lang][f'chart_{scale}']}</button>"
        for scale in scales
    )
    name = html.escape(chart.measured.name)
    box = f'<div class="chart-scales" role="group" aria-label="{name}" hidden>'
    return f"{box}<span>{name}</span>{buttons}</div>\n"


def _swatch(series: Series) -> str:
    line = {"d": "M1 7H27", "stroke-width": series.width, "stroke-dasharray": series.dash, "fill": "none"}
    mark = {"d": MARKERS[series.marker], "transform": "translate(14 7)", "stroke": "none"}
    size = {"viewBox": "0 0 28 14", "width": 28, "height": 14, "aria-hidden": "true"}
    return element(
        "svg",
        {**size, "stroke": series.colour, "fill": series.colour},
        element("path", line) + element("path", mark),
    )
