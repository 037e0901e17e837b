"""What a chart says, apart from how it is drawn: its axes, its series of points, its words.

A chart is a frozen value that scripts/bake_charts.py and scripts/bake_l7_charts.py build from a record and
scripts/chart_svg.py turns into a page's HTML: an SVG, a legend, and a table of every point. The table is the
only copy of the figures; marks name its rows, and docs/assets/javascripts/chart.mjs shows them from there.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A quantity, with its unit in `name`, or categories from the top down.

    scales: of "log", "linear" and "near": the first is what shows without JavaScript, the reader may switch.
    low, high: what the log scale spans; the linear one spans 0 to high.
    near: what a linear close-up spans; what is beyond stands at its edge.
    labels: the categories, each with a note; a point's value is an index into them, and there are no scales.
    base: of the log scale's round numbers, 10 (1, 2, 5, 10, ...) or 2.
    """

    name: str
    scales: tuple[str, ...] = ()
    low: float = 1.0
    high: float = 1.0
    labels: tuple[tuple[str, str], ...] = ()
    base: int = 10
    near: tuple[float, float] = (0.0, 1.0)

    def share(self, value: float, scale: str | None) -> float:
        """Where a value lies between the axis's ends: 0 to 1."""
        if scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        if scale:
            low, high = self.near if scale == "near" else (0.0, self.high)
            return min(max((value - low) / (high - low), 0.0), 1.0)
        return (value + 0.5) / len(self.labels)

    def ticks(self, scale: str, most: int) -> list[tuple[float, str]]:
        """At most about `most` (value, text) pairs of round numbers."""
        if scale == "log" and self.base == 2:
            first, last = math.ceil(math.log2(self.low)), math.floor(math.log2(self.high))
            values = [float(2**e) for e in range(first, last + 1)]
        elif scale == "log":
            dense = decades(self.low, self.high)
            values = dense if len(dense) <= most else decades(self.low, self.high, (1,))
        else:
            low, high = self.near if scale == "near" else (0.0, self.high)
            rough = (high - low) / most
            unit = 10 ** math.floor(math.log10(rough))
            step = next(s * unit for s in (1, 2, 5, 10) if s * unit >= rough)
            values = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
        return [(value, f"{value:g}") for value in values]


@dataclass(frozen=True)
class Point:
    """One measurement. `cells` are its row of the chart's table, as HTML."""

    x: float
    y: float
    cells: tuple[str, ...]
    span: tuple[float, float] | None = None  # p20 and p80, along the axis that has scales to measure it
    predicted: float | None = None  # a hollow mark at this value
    ringed: bool = False
    joined: bool = True  # the series' line goes through it


@dataclass(frozen=True)
class Series:
    """Points of one kind and the line that joins them; `rule`: a value that a line across the plot marks."""

    name: str
    colour: str
    points: tuple[Point, ...]
    marker: str = "circle"
    width: float = 2.0
    dash: str | None = None
    rule: float | None = None


@dataclass(frozen=True)
class Chart:
    """`name` is unique on its page; `columns` head the table, the series first, then the points' cells."""

    name: str
    title: str
    desc: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    columns: tuple[str, ...]
    text_columns: int = 1  # so many of them are text, the others figures
    notes: tuple[str, ...] = ()  # what rings, hollow marks and dashed lines are
    end_labels: bool = False  # write each series' name at its last point, where there is room

    @property
    def steps(self) -> bool:
        """Whether the points follow each other down a y axis of categories; else along x."""
        return bool(self.y.labels)

    @property
    def measured(self) -> Axis:
        """The axis of the measured quantity, the one whose scale the reader may switch."""
        return self.x if self.steps else self.y


def decades(low: float, high: float, steps: tuple[int, ...] = (1, 2, 5)) -> list[float]:
    """Round numbers from low to high: 1, 2, 5, 10, 20, ..."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for e in exponents for s in steps if low <= (tick := float(f"{s}e{e}")) <= high]


def apart(labels: list[tuple], least: float) -> list[tuple]:
    """Labels (y, ...) moved down so that no two are closer than `least`."""
    placed: list[tuple] = []
    for y, *rest in sorted(labels):
        placed.append((max(y, placed[-1][0] + least) if placed else y, *rest))
    return placed
