"""Figures of the l1_paged_cache lesson: tokens to slots, the life of a free list, copy-on-write."""

from scripts.figures import _l1_pool, _l1_waste
from scripts.figures._words import words_of
from scripts.svg import FG, HIT, LINE, MUTED, SERIES, Drawing

WORDS = words_of("l1_paged_cache")
WIDTH = 720
COLOURS = dict(zip("ABC", SERIES, strict=False))


def block_table(trace: dict, lang: str) -> Drawing:
    """Sequence A of the worked example: its 68 tokens, its row of the table, the pages they lie in."""
    words, data = WORDS["block_table"][lang], trace["example"]
    state, size = data["states"][0], data["page_size"]
    row, tokens = state["rows"]["A"], state["lens"]["A"]
    token = 40
    logical, offset = divmod(token, size)
    assert len(row) == -(-tokens // size) and str(token) in data["slots"]
    assert (
        data["slots"][str(token)] == row[logical] * size + offset
        and [row[logical], offset] in data["written"]
    )
    names = {
        "tokens": tokens, "size": size, "row": words["comma"].join(map(str, row)), "token": token,
        "logical": logical, "offset": offset, "page": row[logical], "slot": data["slots"][str(token)],
        "last": tokens - size * (len(row) - 1), "empty": size * len(row) - tokens,
    }  # fmt: skip
    d = Drawing(
        "figure-l1-block-table", WIDTH, 352, words["title"].format(**names), words["desc"].format(**names)
    )
    d.text(16, 24, words["sequence"].format(**names), 14, weight=600)
    pitch, left = 9.6, 32
    for t in range(tokens):
        d.rect(left + pitch * t, 34, pitch - 1.4, 16, fill=SERIES[t // size], opacity=0.7, radius=1.5)
    d.rect(left + pitch * token - 2, 32, pitch + 2.6, 20, stroke=FG, width=1.5, radius=2)
    for p in range(len(row)):
        first, last = p * size, min(tokens, (p + 1) * size) - 1
        middle = left + pitch * (first + last + 1) / 2
        d.text(middle, 68, f"{first}–{last}", 12.5, fill=MUTED, anchor="middle")
    d.text(16, 112, words["table"], 13, fill=MUTED)
    for p, page in enumerate(row):
        x = 252 + 100 * p
        middle = left + pitch * (p * size + min(tokens, (p + 1) * size)) / 2
        d.arrow(middle, 74, x + 36, 92, stroke=SERIES[p], vertical=True)
        d.rect(x, 94, 72, 28, fill=SERIES[p], stroke=SERIES[p], radius=4, opacity=0.15)
        d.text(x + 36, 113, str(page), 14, anchor="middle", mono=True)
    cells(d, data, words, row, tokens, 182)
    d.rect(12, 308, WIDTH - 24, 30, fill=HIT, opacity=0.55, radius=4)
    d.text(24, 328, words["example"].format(**names), 13)
    return d


def cells(d: Drawing, data: dict, words: dict, row: list[int], tokens: int, top: int) -> None:
    """All pages of the cache, in the order of their addresses; A's filled slots, others' pages grey."""
    size, state = data["page_size"], data["states"][0]
    step, box = 69.2, 60
    for page in range(data["num_pages"]):
        x = 16 + step * page
        mine = row.index(page) if page in row else None
        used = min(size, tokens - mine * size) if mine is not None else 0
        colour = SERIES[mine] if mine is not None else LINE
        d.rect(x, top, box, box, stroke=colour, radius=4, width=1.5 if used else 1)
        for slot in range(size if used else 0):
            sx, sy = x + 3.4 + 6.8 * (slot % 8), top + 6 + 12.6 * (slot // 8)
            if slot < used:
                d.rect(sx, sy, 5.4, 10, fill=colour, opacity=0.75, radius=1)
            else:
                d.rect(sx + 0.4, sy + 0.4, 4.6, 9.2, stroke=MUTED, radius=1, dash="2 2")
        owner = next((name for name, pages in state["rows"].items() if page in pages), None)
        if mine is None:
            text = words["free"] if owner is None else words["other"].format(owner)
            d.text(x + box / 2, top + 35, text, 12, fill=MUTED, anchor="middle")
        d.text(x + box / 2, top + box + 18, str(page), 13, fill=FG if used else MUTED, anchor="middle",
               weight=600 if used else None, mono=True)  # fmt: skip
        if mine is not None:
            d.arrow(252 + 100 * mine + 36, 123, x + box / 2, top - 2, stroke=colour, vertical=True)
            d.text(x + box / 2, top + box + 36, words["filled"].format(used), 12, colour, "middle",
                   weight=600)  # fmt: skip
    d.text(16, top + box + 56, words["cache"].format(size=size), 12.5, fill=MUTED)


def pages_life(trace: dict, lang: str) -> Drawing:
    """A line an operation: who has each page after it, and the free list with the page to be taken next."""
    words, states = WORDS["pages_life"][lang], trace["free_list"]
    num_pages = len(states[0]["references"])
    for state in states:
        held = {page for pages in state["rows"].values() for page in pages}
        assert held.isdisjoint(state["free"]) and len(held) + len(state["free"]) == num_pages
    told = [words[state["what"]].format(**state) for state in states]
    desc = words["desc"].format(
        pages=num_pages,
        told=words["joiner"].join(
            words["line"].format(text, words["comma"].join(map(str, state["free"])))
            for text, state in zip(told, states, strict=True)
        ),
    )
    top, pitch = 54, 40
    d = Drawing("figure-l1-pages-life", WIDTH, top + pitch * len(states) + 12, words["title"], desc)
    left, cell = 216, 34
    d.text(16, 22, words["operation"], 13, weight=600)
    d.text(left, 22, words["owners"], 13, weight=600)
    d.text(544, 22, words["stack"], 13, weight=600)
    for page in range(num_pages):
        d.text(left + 38 * page + cell / 2, 42, str(page), 12, fill=MUTED, anchor="middle", mono=True)
    for i, (state, text) in enumerate(zip(states, told, strict=True)):
        y = top + pitch * i
        d.text(16, y + 20, text, 13)
        for page in range(num_pages):
            owners = [name for name, pages in state["rows"].items() if page in pages]
            assert len(owners) == state["references"][page]
            x = left + 38 * page
            if owners:
                for k, name in enumerate(owners):
                    share = cell / len(owners)
                    d.rect(x + share * k, y, share, 30, fill=COLOURS[name], opacity=0.2)
                d.rect(x, y, cell, 30, stroke=COLOURS[owners[0]], radius=4, width=1.5)
                d.text(x + cell / 2, y + 20, " ".join(owners), 13, anchor="middle", weight=600)
            else:
                d.rect(x, y, cell, 30, stroke=LINE, radius=4, dash="3 3")
        for k, page in enumerate(state["free"]):
            x = 544 + 20 * k
            if k == 0:
                d.rect(x - 1, y + 5, 18, 21, fill=HIT, opacity=0.9, radius=3)
            d.text(x + 8, y + 20, str(page), 13, anchor="middle", mono=True, weight=600 if k == 0 else None)
    return d


def copy_on_write(trace: dict, lang: str) -> Drawing:
    """C is forked off A, then gets a token: the page that is begun is copied, the others stay shared."""
    words, data = WORDS["copy_on_write"][lang], trace["example"]
    (source, target, used), size = data["copies"][0], data["page_size"]
    before, forked, after = data["states"]
    assert forked["rows"]["C"] == before["rows"]["A"] == after["rows"]["A"]
    assert after["rows"]["C"][:-1] == after["rows"]["A"][:-1] and after["rows"]["C"][-1] == target
    assert data["new_slots"] == [target * size + used]
    names = {"source": source, "target": target, "used": used, "slot": data["new_slots"][0], "size": size}
    d = Drawing("figure-l1-copy-on-write", WIDTH, 352, words["title"], words["desc"].format(**names))
    for i, (state, key) in enumerate(((before, "before"), (forked, "forked"), (after, "after"))):
        stage(d, 16 + 236 * i, words[key], words, state, size)
    x = 16 + 236 * 2
    order = after["rows"]["C"] + [p for p in after["rows"]["A"] if p not in after["rows"]["C"]]
    places = {page: x + 8 + 56 * k for k, page in enumerate(sorted(order, key=_order(after)))}
    d.arrow(places[source] + 24, 254, places[target] + 24, 254, stroke=SERIES[1], width=2)
    d.text(x + 216, 278, words["copied"].format(**names), 12.5, fill=SERIES[1], anchor="end", weight=600)
    d.rect(12, 308, WIDTH - 24, 30, fill=HIT, opacity=0.55, radius=4)
    d.text(24, 328, words["example"].format(**names), 13)
    return d


def _order(state: dict):
    """Pages as they stand in a panel: A's by logical page, then those that only C has."""
    row = state["rows"]["A"]
    return lambda page: (row.index(page) if page in row else len(row), page)


def stage(d: Drawing, x: float, heading: str, words: dict, state: dict, size: int) -> None:
    """One panel: the rows of A and C, and their pages with what they hold and how many have them."""
    d.rect(x, 12, 228, 284, stroke=LINE, radius=6)
    d.text(x + 12, 36, heading, 13.5, weight=600)
    rows = {name: row for name, row in state["rows"].items() if name != "B"}
    pages = sorted({page for row in rows.values() for page in row}, key=_order(state))
    left = {page: x + 8 + 56 * k for k, page in enumerate(pages)}
    for i, (name, row) in enumerate(rows.items()):
        y = 52 + 44 * i
        d.text(x + 12, y + 19, name, 14, fill=COLOURS[name], weight=600)
        for p, page in enumerate(row):
            d.rect(x + 36 + 34 * p, y, 30, 28, stroke=COLOURS[name], radius=4, width=1.5)
            d.text(x + 51 + 34 * p, y + 19, str(page), 14, anchor="middle", mono=True)
        d.text(x + 216, y + 19, words["tokens"].format(state["lens"][name]), 12, fill=MUTED, anchor="end")
    for page, at in left.items():
        owners = [name for name, row in rows.items() if page in row]
        logical = next(row.index(page) for row in rows.values() if page in row)
        used = max(min(size, state["lens"][name] - logical * size) for name in owners)
        colour = COLOURS[owners[0]] if len(owners) == 1 else SERIES[3]
        _l1_pool.page_box(d, at, 176, 48, 66, used / size, colour)
        d.text(at + 24, 170, str(page), 13, anchor="middle", mono=True, weight=600)
        d.text(at + 24, 214, words["references"].format(state["references"][page]), 12.5, anchor="middle")
    d.text(x + 12, 152, words["pages"], 12, fill=MUTED)


FIGURES = {
    "block_table": block_table,
    "pages_life": pages_life,
    "copy_on_write": copy_on_write,
    "pool": _l1_pool.pool,
    "waste": _l1_waste.waste,
}
