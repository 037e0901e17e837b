"""A small SVG writer for figures and charts that stand inside a page, in light and in dark.

Colours are the site's CSS properties, each with a fallback, so that a file also shows alone. Styles are
attributes of the elements: a <style> inside an inlined SVG would reach the whole page. Arrow heads are drawn,
not referenced, so the only ids are those of the title and the description.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from scripts import ties

FG = "var(--fig-fg, #1d2329)"
MUTED = "var(--fig-muted, #566069)"
LINE = "var(--fig-line, #c9d0d6)"
BG = "var(--fig-bg, #fff)"
HIT = "var(--fig-hit, #ffe9a3)"
# Six categories that colour-blind readers can tell apart, strong enough for text on BG.
SERIES = tuple(
    f"var(--fig-{i}, {fallback})"
    for i, fallback in enumerate(("#0b63b0", "#b34700", "#007257", "#93418a", "#7d6000", "#56616b"), 1)
)
SANS = "var(--md-text-font-family, system-ui, sans-serif)"
MONO = "var(--md-code-font-family, ui-monospace, monospace)"
# A figure shrinks to this share of its natural width; on narrower screens it scrolls inside its frame.
SMALLEST = 0.78


class Drawing:
    """One figure, in user units that are CSS pixels at its natural width.

    name: unique on a page, prefix of the ids. title: what it is. desc: what it says, for who cannot see it.
    smallest: the share of its natural width to which it shrinks.
    """

    def __init__(
        self, name: str, width: int, height: int, title: str, desc: str, smallest: float = SMALLEST
    ) -> None:
        self.name, self.width, self.height, self.title, self.desc = name, width, height, title, desc
        self.smallest = smallest
        self._parts: list[str] = []

    def add(self, tag: str, attributes: dict, content: str = "") -> None:
        self._parts.append(element(tag, attributes, content))

    @contextmanager
    def group(self, **attributes: str | float | None) -> Iterator[None]:
        """All that is drawn inside it is one <g>; "data_row" becomes data-row."""
        outside, self._parts = self._parts, []
        yield
        inside, self._parts = self._parts, outside
        self.add(
            "g", {name.replace("_", "-"): value for name, value in attributes.items()}, "\n".join(inside)
        )

    @contextmanager
    def node(self, name: str, x, y, w, h, label: str | None = None) -> Iterator[None]:
        """What is drawn inside is a node of a graph. Its frame shows only where a page lights it.

        docs/assets/javascripts/diagram_links.mjs lights a node with its edges and what they lead to; `label`
        is what it is called there, where its name will not do.
        """
        with self.group(data_node=name, data_label=label):
            self.rect(x, y, w, h, fill=BG, radius=5, opacity=0)
            yield

    @contextmanager
    def edge(self, source: str, target: str, shown: bool = True) -> Iterator[None]:
        """What is drawn inside leads from one node to another, or to several: names with spaces between.

        Not shown: it appears when one of its nodes is lit.
        """
        hidden = None if shown else "hidden"
        with self.group(data_from=source, data_to=target, visibility=hidden):
            yield

    def rect(
        self, x, y, w, h, fill="none", stroke="none", width=1.0, radius=0, opacity=None, dash=None
    ) -> None:
        """A rectangle; `opacity` is the fill's alone."""
        box = {"x": x, "y": y, "width": w, "height": h, "rx": radius or None}
        self.add("rect", {**box, "fill": fill, "fill-opacity": opacity, **_stroke(stroke, width, dash)})

    def line(self, x1, y1, x2, y2, stroke=LINE, width=1.0, dash=None) -> None:
        self.add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, **_stroke(stroke, width, dash)})

    def circle(self, x, y, r, fill="none", stroke="none", width=1.0) -> None:
        self.add("circle", {"cx": x, "cy": y, "r": r, "fill": fill, **_stroke(stroke, width)})

    def path(self, d: str, stroke=FG, width=1.5, fill="none", dash=None, opacity=None) -> None:
        self.add("path", {"d": d, "fill": fill, "fill-opacity": opacity, **_stroke(stroke, width, dash)})

    def text(
        self, x, y, text: str, size=13, fill=FG, anchor="start", weight=None, mono=False, halo=False
    ) -> None:
        """One line of text; y is its baseline, anchor start, middle or end; a halo: readable over lines."""
        style = {
            "font-size": size, "fill": fill, "text-anchor": None if anchor == "start" else anchor,
            "font-weight": weight, "font-family": MONO if mono else None,
            **({"paint-order": "stroke", "stroke": BG, "stroke-width": 4} if halo else {}),
        }  # fmt: skip
        self.add("text", {"x": x, "y": y, **style}, escaped(text))

    def head(self, x, y, direction: str, fill=FG, size=6.0) -> None:
        """An arrow head whose tip is at (x, y), pointing "right", "left", "down" or "up"."""
        along, across = size * 1.3, size * 0.6
        dx, dy = {"right": (-1, 0), "left": (1, 0), "down": (0, -1), "up": (0, 1)}[direction]
        bx, by = x + dx * along, y + dy * along
        corners = [(x, y), (bx + dy * across, by + dx * across), (bx - dy * across, by - dx * across)]
        self.path("M" + " L".join(f"{_num(a)} {_num(b)}" for a, b in corners) + "Z", "none", fill=fill)

    def arrow(self, x1, y1, x2, y2, stroke=FG, width=1.5, dash=None, vertical=False) -> None:
        """A curve from (x1, y1) to (x2, y2) that leaves and arrives along one axis."""
        if not vertical:
            direction, tip = ("right", (x2 - 4, y2)) if x2 > x1 else ("left", (x2 + 4, y2))
            bend = (x1 + x2) / 2
            control = (bend, y1, bend, y2)
        else:
            direction, tip = ("down", (x2, y2 - 4)) if y2 > y1 else ("up", (x2, y2 + 4))
            bend = (y1 + y2) / 2
            control = (x1, bend, x2, bend)
        c = " ".join(map(_num, (*control, *tip)))
        straight = x1 == x2 or y1 == y2
        curve = f"L{_num(tip[0])} {_num(tip[1])}" if straight else f"C{c}"
        self.path(f"M{_num(x1)} {_num(y1)} {curve}", stroke, width, dash=dash)
        self.head(x2, y2, direction, stroke)

    def band(self, x1, top1, bottom1, x2, top2, bottom2, fill: str, opacity=0.16) -> None:
        """A ribbon from one vertical edge to another."""
        a, b, c, e, bend = map(_num, (top1, bottom1, top2, bottom2, (x1 + x2) / 2))
        x1, x2 = _num(x1), _num(x2)
        d = f"M{x1} {a} C{bend} {a} {bend} {c} {x2} {c} L{x2} {e} C{bend} {e} {bend} {b} {x1} {b} Z"
        self.path(d, "none", fill=fill, opacity=opacity)

    def svg(self) -> str:
        """The whole file, without an XML declaration: it is inlined into HTML as it is."""
        size = {"viewBox": f"0 0 {self.width} {self.height}", "width": self.width, "height": self.height}
        root = {
            "xmlns": "http://www.w3.org/2000/svg", **size, "font-family": SANS, "role": "img",
            "aria-labelledby": f"{self.name}-title {self.name}-desc",
            "style": f"max-width:100%;min-width:{round(self.width * self.smallest)}px;height:auto",
        }  # fmt: skip
        parts = [
            element("title", {"id": f"{self.name}-title"}, escaped(self.title)),
            element("desc", {"id": f"{self.name}-desc"}, escaped(self.desc)),
            element("rect", {"width": self.width, "height": self.height, "fill": BG}),
            *self._parts,
        ]
        return element("svg", root, "\n" + "\n".join(parts) + "\n") + "\n"


def element(tag: str, attributes: dict, content: str = "") -> str:
    """An element; attributes that are None are left out, numbers are printed short."""
    pairs = (
        f' {name}="{_num(value) if isinstance(value, int | float) else escaped(value, quotes=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{''.join(pairs)}>{content}</{tag}>" if content else f"<{tag}{''.join(pairs)}/>"


def escaped(text: str, quotes: bool = False) -> str:
    """Text as XML has it; with `quotes`, also for an attribute. (The page's Python has no html module.)"""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;") if quotes else text


def _stroke(stroke: str, width: float, dash: str | None = None) -> dict:
    if stroke == "none":
        return {}
    return {"stroke": stroke, "stroke-width": None if width == 1 else width, "stroke-dasharray": dash}


def _num(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def number(value: float | str, decimals: int) -> str:
    """A number as figures print it, with a true minus sign; a tie is refused, its digits cannot settle it."""
    if not isinstance(value, str) and ties.refused() and abs(value * 10**decimals % 1 - 0.5) < 1e-6:
        raise ValueError(f"{value} is halfway between numbers of {decimals} decimals; wanted other data")
    text = "-∞" if value in ("-inf", -float("inf")) else f"{round(value, decimals) + 0.0:.{decimals}f}"
    return text.replace("-", "−")


def text_width(text: str, size: float, mono: bool = False) -> float:
    """About how wide a text is: Chinese is as wide as it is high, Latin about half of that."""
    latin = 0.6 if mono else 0.5
    return size * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else latin for c in text)


def typed(value: float) -> str:
    """A number as a reader would type it, with as many decimals as it has, and a true minus sign."""
    return f"{value + 0.0:.10g}".replace("-", "−")
