"""Figures of the l0_shapes lesson."""

from math import prod

from scripts.figures._words import words_of
from scripts.svg import BG, FG, HIT, LINE, MUTED, SERIES, Drawing

WORDS = words_of("l0_shapes")
WIDTH = 720
CELL = 32  # one element


def _cells(d: Drawing, x: float, y: float, values: list, colors: list[str]) -> None:
    """A row of elements, one colour each."""
    for i, (value, color) in enumerate(zip(values, colors, strict=True)):
        d.rect(x + CELL * i, y, CELL, 26, fill=color, stroke=BG, opacity=0.18)
        text = str(value).replace("-", "−")
        d.text(x + CELL * (i + 0.5), y + 18, text, 13, anchor="middle", mono=True)
    d.rect(x, y, CELL * len(values), 26, stroke=LINE, radius=3)


def token_to_heads(trace: dict, lang: str) -> Drawing:
    """One token: flat projections, the same elements as heads, who reads whose K, and what is stored."""
    words, data = WORDS["token_to_heads"][lang], trace["token"]
    heads, flat, group = data["heads"], data["flat"], data["kv_head"]
    assert all([x for row in heads[name] for x in row] == flat[name] for name in "qkv")
    told = words["joiner"].join(
        words["head"].format(h, heads["q"][h], group[h], data["scores"][h]) for h in range(len(group))
    )
    d = Drawing("figure-l0-token-to-heads", WIDTH, 372, words["title"], words["desc"].format(told))
    left, middle, right = 16, 172, 500
    for x, name in ((left, "token"), (middle, "flat"), (right, "heads")):
        d.text(x, 24, words[name], 13.5, weight=600)
    _cells(d, left, 170, data["x"], [MUTED] * 3)
    d.text(left, 216, f"x [{len(data['x'])}]", 12.5, fill=MUTED, mono=True)
    for name, top in (("q", 44), ("k", 196), ("v", 280)):
        rows = heads[name]
        owner = group if name == "q" else range(len(rows))  # the KV head, which gives the colour
        colors = [SERIES[owner[h]] for h, row in enumerate(rows) for _ in row]
        center = top + 15.5 * len(rows)
        _cells(d, middle, center - 13, flat[name], colors)
        d.arrow(left + CELL * 3 + 4, 183, middle - 6, center, stroke=MUTED, width=1.2)
        shape = f"x W_{name.upper()}  [{len(flat[name])}]"
        d.text(middle, center + 30, shape, 12.5, fill=MUTED, mono=True)
        width = len(rows[0])
        for h, row in enumerate(rows):
            y = top + 31 * h
            d.arrow(middle + CELL * len(flat[name]) + 4, center, right - 6, y + 13, stroke=LINE, width=1.2)
            _cells(d, right, y, row, [SERIES[owner[h]]] * width)
            text = words["q_row"].format(h, owner[h]) if name == "q" else f"{name.upper()} head {h}"
            d.text(right + CELL * width + 10, y + 18, text, 12.5, fill=SERIES[owner[h]])
    d.rect(right - 10, 184, WIDTH - right, 166, stroke=MUTED, radius=6, dash="5 4")
    d.text(right + 2, 366, words["cached"], 12.5, fill=MUTED)
    return d


def stored(trace: dict, lang: str) -> Drawing:
    """Elements a token and layer, as bars of one scale."""
    words, rows = WORDS["stored"][lang], trace["stored"]
    told = words["joiner"].join(f"{r['name']} {r['elements']}" for r in rows)
    d = Drawing("figure-l0-stored", WIDTH, 222, words["title"], words["desc"].format(told))
    left, full = 172, 330
    largest = max(row["elements"] for row in rows)
    for i, row in enumerate(rows):
        y = 20 + 44 * i
        shapes = " + ".join(" × ".join(map(str, shape)) for shape in row["entries"].values())
        assert sum(prod(shape) for shape in row["entries"].values()) == row["elements"]
        d.text(16, y + 13, row["name"], 14, weight=600)
        d.text(16, y + 30, shapes, 12, fill=MUTED, mono=True)
        wide = full * row["elements"] / largest
        d.rect(left, y + 2, wide, 24, fill=SERIES[min(i, 3)], opacity=0.75, radius=2)
        text = words["bar"].format(f"{row['elements']:,}", f"{row['bytes']:,}")
        d.text(left + wide + 10, y + 19, text, 12.5)
    d.text(16, 213, words["note"], 12.5, fill=MUTED)
    return d


def _box(d: Drawing, x: float, y: float, w: float, name: str, shape: list[int] | str, color: str) -> None:
    d.rect(x, y, w, 44, fill=color, stroke=color, radius=5, opacity=0.14)
    d.text(x + w / 2, y + 18, name, 13, anchor="middle", weight=600)
    d.text(x + w / 2, y + 36, str(shape), 12, fill=MUTED, anchor="middle", mono=True)


def two_readings(trace: dict, lang: str) -> Drawing:
    """MLA read by rebuilding K and V, and read by folding the weights into q and o."""
    words, data = WORDS["two_readings"][lang], trace["readings"]
    rebuilt = prod(data["k"]) + prod(data["v"])
    read = prod(data["latent"])
    assert data["k_view"] == data["v_view"] == data["latent"]
    names = {"rebuilt": f"{rebuilt:,}", "read": f"{read:,}", "heads": data["q"][0]}
    d = Drawing("figure-l0-two-readings", WIDTH, 386, words["title"], words["desc"].format(**names))
    latent, q, kv, o = SERIES[2], SERIES[0], SERIES[1], SERIES[3]
    for top, name in ((8, "rebuild"), (200, "absorb")):
        d.text(16, top + 20, words[name], 14, weight=600)
        d.text(704, top + 20, words[f"{name}_cost"].format(**names), 12.5, fill=MUTED, anchor="end")
    # Above: the cache is widened to every head before attention.
    _box(d, 16, 44, 108, words["cache"], data["latent"], latent)
    _box(d, 236, 44, 128, "K", data["k"], kv)
    _box(d, 236, 100, 128, "V", data["v"], kv)
    _box(d, 16, 132, 108, "q", data["q"], q)
    _box(d, 468, 72, 104, words["attend"], "softmax", MUTED)
    _box(d, 608, 72, 96, "o", data["o"], o)
    d.arrow(126, 66, 234, 66, stroke=latent)
    d.text(180, 58, "W_UK", 12, anchor="middle", mono=True)
    d.arrow(126, 66, 234, 122, stroke=latent)
    d.text(180, 118, "W_UV", 12, anchor="middle", mono=True, halo=True)
    d.arrow(366, 66, 466, 88, stroke=kv)
    d.arrow(366, 122, 466, 98, stroke=kv)
    d.path("M124 160 L420 160 C450 160 440 108 464 108", stroke=q)
    d.head(468, 108, "right", q)
    d.arrow(574, 94, 606, 94, stroke=MUTED)
    d.line(16, 192, 704, 192)
    # Below: what is widened is the one query and the one result.
    _box(d, 16, 236, 108, words["cache"], data["latent"], latent)
    _box(d, 16, 324, 108, "q", data["q"], q)
    _box(d, 190, 324, 112, words["folded"], data["folded"], q)
    _box(d, 352, 280, 104, words["attend"], "softmax", MUTED)
    _box(d, 492, 280, 96, words["mixed"], data["mixed"], latent)
    _box(d, 626, 280, 78, "o", data["o"], o)
    d.arrow(126, 346, 188, 346, stroke=q)
    d.text(157, 338, "W_UK", 12, anchor="middle", mono=True)
    d.arrow(304, 346, 350, 314, stroke=q)
    d.path("M124 252 C250 252 260 292 346 292", stroke=latent)
    d.head(352, 292, "right", latent)
    d.text(236, 262, words["as_k"], 12.5, fill=latent, halo=True)
    d.arrow(458, 302, 490, 302, stroke=MUTED)
    d.arrow(590, 302, 624, 302, stroke=latent)
    d.text(606, 272, "W_UV", 12, anchor="middle", mono=True)
    return d


def selection(trace: dict, lang: str) -> Drawing:
    """W_UK and W_UV of GQA written as MLA: zeros and ones that copy a KV head to its group."""
    words, data = WORDS["selection"][lang], trace["selection"]
    d = Drawing("figure-l0-selection", WIDTH, 308, words["title"], words["desc"])
    size, top = 24, 72
    rows = ["K 0", "K 1", "V 0", "V 1"]
    for left, name in ((92, "w_uk"), (450, "w_uv")):
        w = data[name]
        assert len(w) == len(w[0]) == 8 and all(sum(column) == 1 for column in zip(*w, strict=True))
        d.text(left + 4 * size, 22, name.upper(), 14, anchor="middle", weight=600, mono=True)
        for h in range(4):
            d.text(left + size * (2 * h + 1), 46, words["head"].format(h), 12, anchor="middle", fill=MUTED)
            d.line(left + size * 2 * h, 54, left + size * 2 * h, top + 8 * size, stroke=LINE)
        for i, row in enumerate(w):
            for j, value in enumerate(row):
                x, y = left + size * j, top + size * i
                if value:
                    d.rect(x, y, size, size, fill=SERIES[i // 2 % 2], opacity=0.6)
                d.rect(x, y, size, size, stroke=LINE)
                d.text(x + size / 2, y + 16.5, str(value), 12, fill=FG if value else MUTED, anchor="middle",
                       mono=True)  # fmt: skip
        for i, text in enumerate(rows):
            d.text(left - 8, top + size * (2 * i + 1) + 4, text, 12.5, anchor="end", fill=MUTED)
    d.rect(12, 278, WIDTH - 24, 24, fill=HIT, opacity=0.55, radius=4)
    d.text(22, 294.5, words["note"], 12.5)
    return d


FIGURES = {
    "token_to_heads": token_to_heads,
    "stored": stored,
    "two_readings": two_readings,
    "selection": selection,
}
