"""Figures of the l3_split_kv_decode lesson: one head combined, and the merge worked by hand."""

import math

from scripts.figures._words import words_of
from scripts.svg import FG, HIT, LINE, MUTED, SERIES, Drawing, number, text_width, typed

WORDS = words_of("l3_split_kv_decode")
WIDTH = 720


def combine_head(trace: dict, lang: str) -> Drawing:
    """One program of the combine kernel: its splits, their factors, the row that it writes."""
    words, data = WORDS["combine_head"][lang], trace["combine_head"]
    splits, head = data["reads"]["splits"], data["head"]
    assert data["reads"] == {**data["reads"], "heads": [head], "lse_splits": splits}
    assert data["writes"] == {"heads": [head], "columns": data["reads"]["columns"], "lse_heads": [head]}
    shares = [factor / sum(data["factors"]) for factor in data["factors"]]
    column = 5
    terms = [share * row[column] for share, row in zip(shares, data["o_partial"], strict=True)]
    assert math.isclose(sum(terms), data["o"][column], abs_tol=1e-3)
    empty = [s for s in splits if data["lse_partial"][s] == "-inf"]
    assert empty == [3] and not any(data["o_partial"][3]) and data["factors"][3] == 0
    grid = ", ".join(map(str, data["grid"]))
    names = {
        "ctx": data["ctx"], "head": head, "n": len(splits), "d": len(data["o"]), "grid": grid,
        "lse": words["comma"].join(number(x, 3) for x in data["lse_partial"]),
        "factors": words["comma"].join(number(x, 3) for x in data["factors"]), "out": number(data["lse"], 3),
    }  # fmt: skip
    d = Drawing(
        "figure-l3-combine-head", WIDTH, 356, words["title"].format(**names), words["desc"].format(**names)
    )
    strip, cell, top, pitch = 176, 20, 60, 40
    d.text(16, 26, words["program"].format(**names), 14, weight=600)
    headings = (
        (158, "end", "lse_s"),
        (strip, "start", "o_s [D]"),
        (612, "end", "exp(lse_s − M)"),
        (WIDTH - 16, "end", words["share"]),
    )
    for x, anchor, name in headings:
        d.text(x, 50, name, 12.5, fill=MUTED, anchor=anchor)
    y = top + pitch * len(splits) + 30
    for s in splits:
        connect(d, s, top + pitch * s, y, finite=s not in empty)
    with d.edge("M", "lse", shown=False):
        route(d, [(570, y + 30), (570, y + 46), (112, y + 46), (112, y + 31)], "up")
    for s in splits:
        at = top + pitch * s
        d.text(16, at + 19, words["split"].format(s), 13, weight=600)
        with d.node(f"lse{s}", 100, at - 1, 64, 30, label=f"lse_{s}"):
            d.text(158, at + 19, number(data["lse_partial"][s], 3), 13, anchor="end", mono=True)
        with d.node(f"o{s}", strip - 4, at - 3, cell * len(data["o"]) + 6, 34, label=f"o_{s}"):
            cells(d, strip, at, cell, data["o_partial"][s])
        with d.node(f"w{s}", 554, at - 1, 156, 30, label=words["weight"].format(s)):
            d.text(612, at + 19, number(data["factors"][s], 3), 13, anchor="end", mono=True)
            d.text(WIDTH - 16, at + 19, number(100 * shares[s], 1) + " %", 13, anchor="end", mono=True)
    d.arrow(strip + cell * 8, y - 32, strip + cell * 8, y - 5, stroke=MUTED, vertical=True)
    d.text(strip + cell * 8 + 12, y - 14, words["sum"], 12.5, fill=MUTED)
    most = number(max(data["lse_partial"][s] for s in splits if s not in empty), 3)
    with d.node("M", 532, y - 1, 84, 30):
        d.text(612, y + 19, f"M = {most}", 13, fill=MUTED, anchor="end", mono=True)
    d.text(16, y + 19, words["out"].format(**names), 13, weight=600)
    with d.node("lse", 100, y - 1, 64, 30):
        d.text(158, y + 19, number(data["lse"], 3), 13, anchor="end", mono=True)
    with d.node("o", strip - 4, y - 3, cell * len(data["o"]) + 6, 34):
        cells(d, strip, y, cell, data["o"])
    d.rect(strip + cell * column - 2, top - 4, cell + 2, y + 28 + 4 - top, stroke=FG, radius=3)
    parts = " + ".join(
        f"{number(shares[s], 3)} · {_signed(data['o_partial'][s][column])}" for s in splits if s not in empty
    )
    d.rect(12, 306, WIDTH - 24, 34, fill=HIT, opacity=0.55, radius=4)
    d.text(24, 328, words["column"].format(column, f"{parts} = {number(data['o'][column], 3)}"), 13)
    return d


def connect(d: Drawing, s: int, y: float, out: float, finite: bool) -> None:
    """What split s gives to its factor, to M and to the row below, at `out`: routes that light up."""
    lse, o, w, right = f"lse{s}", f"o{s}", f"w{s}", WIDTH - 6
    with d.edge(lse, w, shown=False):
        route(d, [(140, y + 30), (140, y + 35), (590, y + 35), (590, y + 31)], "up")
    if finite:  # an empty split has no say in the largest
        with d.edge(lse, "M", shown=False):
            route(d, [(120, y + 30), (120, y + 35), (522, y + 35), (522, out + 14), (530, out + 14)], "right")
    with d.edge("M", w, shown=False):
        route(d, [(542, out - 2), (542, y + 14), (552, y + 14)], "right")
    with d.edge(o, "o", shown=False):
        route(d, [(500, y + 14), (508, y + 14), (508, out + 14), (500, out + 14)], "left")
    with d.edge(w, "o", shown=False):
        route(
            d,
            [(right - 3, y + 14), (right, y + 14), (right, out + 40), (400, out + 40), (400, out + 33)],
            "up",
        )
    with d.edge(w, "lse", shown=False):
        route(
            d,
            [(right - 3, y + 14), (right, y + 14), (right, out + 43), (132, out + 43), (132, out + 31)],
            "up",
        )


def route(d: Drawing, points: list[tuple[float, float]], direction: str) -> None:
    """A line through these points, with a head at the last."""
    d.path("M" + " L".join(f"{x:g} {y:g}" for x, y in points), FG, 1.5)
    d.head(*points[-1], direction)


def _signed(value: float, decimals: int = 3) -> str:
    text = number(value, decimals)
    return f"({text})" if value < 0 else text


def cells(d: Drawing, x: float, y: float, cell: float, values: list[float]) -> None:
    """A row of numbers as colours: blue above 0, orange below, the stronger the farther from it."""
    for i, value in enumerate(values):
        color = SERIES[0] if value > 0 else SERIES[1]
        d.rect(x + cell * i, y, cell - 2, 28, stroke=LINE, radius=2)
        if value:
            d.rect(x + cell * i, y, cell - 2, 28, fill=color, opacity=min(0.9, 0.08 + abs(value)), radius=2)


def merge_example(trace: dict, lang: str) -> Drawing:
    """Scores in two splits: the states, the factors, the merged row; and the same in one pass."""
    words, data = WORDS["merge_example"][lang], trace["merge_example"]
    splits, factors = data["splits"], data["factors"]
    largest = max(abs(value) for split in splits for value in split["values"])
    assert math.isclose(data["merged"]["lse"], data["one_pass"]["lse"], rel_tol=1e-5, abs_tol=2e-4)
    assert math.isclose(data["merged"]["o"], data["one_pass"]["o"], abs_tol=2e-3 + 1e-5 * largest)
    # A row too long for half of its box has the box's width, and m and l stand below it.
    lines = [_row(split[name]) for split in splits for name in ("scores", "values")]
    long = 44 if max(text_width(line, 13, mono=True) for line in lines) > 86 else 0
    told = words["joiner"].join(
        words["told"].format(s, _typed(x["m"]), number(x["l"], 3), number(x["o"], 2), number(x["lse"], 3))
        for s, x in enumerate(splits)
    )
    merged = {"o": number(data["merged"]["o"], 2), "lse": number(data["merged"]["lse"], 3)}
    scores = _row([score for split in splits for score in split["scores"]])
    names = {"told": told, **merged, "scores": scores,
             "factors": words["comma"].join(number(f, 3) for f in factors)}  # fmt: skip
    d = Drawing("figure-l3-merge-example", WIDTH, 330 + long, words["title"].format(**names),
                words["desc"].format(**names))  # fmt: skip
    wide, below = 322 if long else 154, 64 + long
    largest_lse = max(float(split["lse"]) for split in splits)  # JSON has -inf as text
    top = number(largest_lse, 3)
    for s, split in enumerate(splits):
        x, color = 16 + 352 * s, SERIES[s]
        d.rect(x, 12, 336, 132 + long, stroke=color, radius=6, width=1.5)
        d.text(x + 14, 36, words["split"].format(s), 14, fill=color, weight=600)
        listed = (("scores", _row(split["scores"])), ("values", _row(split["values"])))
        for i, (name, value) in enumerate(listed):
            d.text(x + 14, 64 + 22 * i, name, 13, fill=MUTED, mono=True)
            d.text(x + wide, 64 + 22 * i, value, 13, anchor="end", mono=True)
        for i, (name, value) in enumerate((("m", _typed(split["m"])), ("l", number(split["l"], 3)))):
            d.text(x + 200, below + 22 * i, name, 13, fill=MUTED, mono=True)
            d.text(x + 322, below + 22 * i, value, 13, anchor="end", mono=True)
        d.line(x + 14, 98 + long, x + 322, 98 + long)
        kept = (("o", number(split["o"], 2), 14, 154), ("lse", number(split["lse"], 3), 200, 322))
        for name, value, left, right in kept:
            d.text(x + left, 124 + long, name, 14, fill=MUTED, mono=True)
            d.text(x + right, 124 + long, value, 14, anchor="end", mono=True, weight=600)
        d.arrow(x + 168, 146 + long, x + 168, 180 + long, stroke=color, vertical=True)
        minus = f"+ {number(-largest_lse, 3)}" if largest_lse < 0 else f"− {top}"
        exponent = f"exp({number(split['lse'], 3)} {minus}) = {number(factors[s], 3)}"
        if x + 180 + text_width(exponent, 12.5) <= WIDTH:
            d.text(x + 180, 168 + long, exponent, 12.5)
        else:
            d.text(x + 172, 168 + long, exponent, 12)
    d.rect(16, 184 + long, WIDTH - 32, 84, stroke=SERIES[2], radius=6, width=1.5)
    d.text(30, 208 + long, words["merge"], 14, fill=SERIES[2], weight=600)
    numerator = " + ".join(
        f"{number(f, 3)} · {_signed(x['o'], 2)}" for f, x in zip(factors, splits, strict=True)
    )
    denominator = " + ".join(number(f, 3) for f in factors)
    d.text(30, 232 + long, f"o = ({numerator}) / ({denominator})", 13, mono=True)
    d.text(WIDTH - 30, 232 + long, f"= {merged['o']}", 14, anchor="end", mono=True, weight=600)
    d.text(30, 256 + long, f"lse = {top} + log({denominator})", 13, mono=True)
    d.text(WIDTH - 30, 256 + long, f"= {merged['lse']}", 14, anchor="end", mono=True, weight=600)
    d.rect(16, 282 + long, WIDTH - 32, 34, fill=HIT, opacity=0.55, radius=6)
    d.text(30, 304 + long, words["one_pass"].format(**names), 13)
    again = f"o = {number(data['one_pass']['o'], 2)}, lse = {number(data['one_pass']['lse'], 3)}"
    d.text(WIDTH - 30, 304 + long, again, 13, anchor="end", mono=True)
    return d


def _row(values: list[float]) -> str:
    return "[" + ", ".join(map(typed, values)) + "]"


def _typed(value: float | str) -> str:
    return "−∞" if value == "-inf" else typed(value)
