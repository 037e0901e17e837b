"""Figures of the l3_split_kv_decode lesson: one head combined, and the merge worked by hand."""

import math

from scripts.figures._words import words_of
from scripts.svg import FG, HIT, LINE, MUTED, SERIES, Drawing, number

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
    for s in splits:
        y = top + pitch * s
        d.text(16, y + 19, words["split"].format(s), 13, weight=600)
        d.text(158, y + 19, number(data["lse_partial"][s], 3), 13, anchor="end", mono=True)
        cells(d, strip, y, cell, data["o_partial"][s])
        d.text(612, y + 19, number(data["factors"][s], 3), 13, anchor="end", mono=True)
        d.text(WIDTH - 16, y + 19, number(100 * shares[s], 1) + " %", 13, anchor="end", mono=True)
    y = top + pitch * len(splits) + 30
    d.arrow(strip + cell * 8, y - 32, strip + cell * 8, y - 5, stroke=MUTED, vertical=True)
    d.text(strip + cell * 8 + 12, y - 14, words["sum"], 12.5, fill=MUTED)
    d.text(612, y + 19, f"M = {number(max(data['lse_partial'][s] for s in splits if s not in empty), 3)}", 13,
           fill=MUTED, anchor="end", mono=True)  # fmt: skip
    d.text(16, y + 19, words["out"].format(**names), 13, weight=600)
    d.text(158, y + 19, number(data["lse"], 3), 13, anchor="end", mono=True)
    cells(d, strip, y, cell, data["o"])
    d.rect(strip + cell * column - 2, top - 4, cell + 2, y + 28 + 4 - top, stroke=FG, radius=3)
    parts = " + ".join(
        f"{number(shares[s], 3)} · {_signed(data['o_partial'][s][column])}" for s in splits if s not in empty
    )
    d.rect(12, 306, WIDTH - 24, 34, fill=HIT, opacity=0.55, radius=4)
    d.text(24, 328, words["column"].format(column, f"{parts} = {number(data['o'][column], 3)}"), 13)
    return d


def _signed(value: float) -> str:
    text = number(value, 3)
    return f"({text})" if value < 0 else text


def cells(d: Drawing, x: float, y: float, cell: float, values: list[float]) -> None:
    """A row of numbers as colours: blue above 0, orange below, the stronger the farther from it."""
    for i, value in enumerate(values):
        color = SERIES[0] if value > 0 else SERIES[1]
        d.rect(x + cell * i, y, cell - 2, 28, stroke=LINE, radius=2)
        if value:
            d.rect(x + cell * i, y, cell - 2, 28, fill=color, opacity=min(0.9, 0.08 + abs(value)), radius=2)


def merge_example(trace: dict, lang: str) -> Drawing:
    """[1, 2, 3, 0] in two splits: the states, the factors, the merged row."""
    words, data = WORDS["merge_example"][lang], trace["merge_example"]
    assert data["merged"] == data["one_pass"]
    splits, factors = data["splits"], data["factors"]
    told = words["joiner"].join(
        words["told"].format(s, number(x["m"], 0), number(x["l"], 3), number(x["o"], 2), number(x["lse"], 3))
        for s, x in enumerate(splits)
    )
    merged = {"o": number(data["merged"]["o"], 2), "lse": number(data["merged"]["lse"], 3)}
    names = {"told": told, **merged, "factors": words["comma"].join(number(f, 3) for f in factors)}
    d = Drawing("figure-l3-merge-example", WIDTH, 330, words["title"], words["desc"].format(**names))
    for s, split in enumerate(splits):
        x, color = 16 + 352 * s, SERIES[s]
        d.rect(x, 12, 336, 132, stroke=color, radius=6, width=1.5)
        d.text(x + 14, 36, words["split"].format(s), 14, fill=color, weight=600)
        listed = (("scores", _row(split["scores"])), ("values", _row(split["values"])))
        for i, (name, value) in enumerate(listed):
            d.text(x + 14, 64 + 22 * i, name, 13, fill=MUTED, mono=True)
            d.text(x + 154, 64 + 22 * i, value, 13, anchor="end", mono=True)
        for i, (name, value) in enumerate((("m", number(split["m"], 0)), ("l", number(split["l"], 3)))):
            d.text(x + 200, 64 + 22 * i, name, 13, fill=MUTED, mono=True)
            d.text(x + 322, 64 + 22 * i, value, 13, anchor="end", mono=True)
        d.line(x + 14, 98, x + 322, 98)
        kept = (("o", number(split["o"], 2), 14, 154), ("lse", number(split["lse"], 3), 200, 322))
        for name, value, left, right in kept:
            d.text(x + left, 124, name, 14, fill=MUTED, mono=True)
            d.text(x + right, 124, value, 14, anchor="end", mono=True, weight=600)
        d.arrow(x + 168, 146, x + 168, 180, stroke=color, vertical=True)
        exponent = f"exp({number(split['lse'], 3)} − {number(max(x['lse'] for x in splits), 3)})"
        d.text(x + 180, 168, f"{exponent} = {number(factors[s], 3)}", 12.5)
    d.rect(16, 184, WIDTH - 32, 84, stroke=SERIES[2], radius=6, width=1.5)
    d.text(30, 208, words["merge"], 14, fill=SERIES[2], weight=600)
    numerator = " + ".join(
        f"{number(f, 3)} · {number(x['o'], 2)}" for f, x in zip(factors, splits, strict=True)
    )
    denominator = " + ".join(number(f, 3) for f in factors)
    d.text(30, 232, f"o = ({numerator}) / ({denominator})", 13, mono=True)
    d.text(WIDTH - 30, 232, f"= {merged['o']}", 14, anchor="end", mono=True, weight=600)
    top = number(max(x["lse"] for x in splits), 3)
    d.text(30, 256, f"lse = {top} + log({denominator})", 13, mono=True)
    d.text(WIDTH - 30, 256, f"= {merged['lse']}", 14, anchor="end", mono=True, weight=600)
    d.rect(16, 282, WIDTH - 32, 34, fill=HIT, opacity=0.55, radius=6)
    d.text(30, 304, words["one_pass"], 13)
    d.text(WIDTH - 30, 304, f"o = {merged['o']}, lse = {merged['lse']}", 13, anchor="end", mono=True)
    return d


def _row(values: list[float]) -> str:
    return "[" + ", ".join(number(value, 0) for value in values) + "]"
