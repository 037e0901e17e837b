"""Figures of the l2_paged_decode lesson."""

from math import prod

from scripts.figures import _sms
from scripts.figures._words import words_of
from scripts.svg import BG, FG, HIT, LINE, MUTED, SERIES, Drawing

WORDS = words_of("l2_paged_decode")
WIDTH = 720


def block_table(trace: dict, lang: str) -> Drawing:
    """The table of the worked example, the pages and slots that were read, and those that were not."""
    words, data = WORDS["block_table"][lang], trace["block_table"]
    table, size, ctx = data["table"], data["page_size"], data["ctx"]
    assert data["k_slots"] == data["v_slots"]
    slots = [data["k_slots"][str(table[entry])] for entry in data["table_reads"]]
    unread = [entry for entry in range(len(table)) if entry not in data["table_reads"]]
    ranges = [(entry * size, entry * size + len(found) - 1) for entry, found in enumerate(slots)]
    assert ranges[-1][1] == ctx - 1 and sorted(map(len, slots)) == [5, 16, 16]

    told = words["joiner"].join(
        words["page"].format(entry, table[entry], first, last) for entry, (first, last) in enumerate(ranges)
    )
    desc = words["desc"].format(ctx=ctx, size=size, pages=told, unread=words["comma"].join(map(str, unread)))
    d = Drawing("figure-l2-block-table", WIDTH, 376, words["title"].format(ctx=ctx, size=size), desc)

    d.text(16, 26, words["table"], 14, weight=600)
    d.text(16, 56, words["logical"], 12.5, fill=MUTED)
    d.text(16, 86, words["physical"], 12.5, fill=MUTED)
    cell, pitch, left = 58, 66, 150
    for entry, page in enumerate(table):
        x = left + pitch * entry
        d.text(x + cell / 2, 56, str(entry), 13, fill=MUTED, anchor="middle", mono=True)
        read = entry in data["table_reads"]
        color = SERIES[entry] if read else MUTED
        d.rect(x, 66, cell, 30, fill=color if read else "none", stroke=color, radius=4, opacity=0.15,
               dash=None if read else "4 3")  # fmt: skip
        text = str(page).replace("-", "−")
        d.text(x + cell / 2, 86, text, 14, fill=FG if read else MUTED, anchor="middle", mono=True)
    d.text(left + pitch * len(table) + 4, 86, words["unread"], 12.5, fill=MUTED)

    step, box, top = 57.5, 52, 172
    for page in range(data["num_pages"]):
        x = 16 + step * page
        entry = table.index(page) if page in table else None
        found = slots[entry] if entry is not None else []
        color = SERIES[entry] if found else LINE
        d.rect(x, top, box, box, stroke=color, radius=4, width=1.5 if found else 1)
        for slot in range(size if found else 0):
            sx, sy = x + 4 + 11.5 * (slot % 4), top + 4 + 11.5 * (slot // 4)
            if slot in found:
                d.rect(sx, sy, 9.5, 9.5, fill=color, opacity=0.75, radius=1.5)
            else:
                d.rect(sx + 0.5, sy + 0.5, 8.5, 8.5, stroke=MUTED, radius=1.5, dash="2 2")
        d.text(x + box / 2, top + box + 18, str(page), 13, fill=FG if found else MUTED, anchor="middle",
               weight=600 if found else None, mono=True)  # fmt: skip
        if found:
            d.arrow(left + pitch * entry + cell / 2, 97, x + box / 2, top - 2, stroke=color, vertical=True)
            first, last = ranges[entry]
            d.text(x + box / 2, top + box + 42, words["tokens"].format(first, last), 12.5, fill=color,
                   anchor="middle", weight=600)  # fmt: skip
            d.text(x + box / 2, top + box + 59, words["slots"].format(len(found), size - len(found)), 12,
                   fill=MUTED, anchor="middle")  # fmt: skip
    token = ctx - 1
    entry, slot = divmod(token, size)
    d.text(16, 320, words["cache"], 13, fill=MUTED)
    d.rect(12, 334, WIDTH - 24, 30, fill=HIT, opacity=0.55, radius=4)
    example = words["example"].format(token=token, size=size, entry=entry, page=table[entry], slot=slot)
    d.text(24, 354, example, 13)
    return d


def group_rows(trace: dict, lang: str) -> Drawing:
    """One program's query tile: which heads are in it, which rows are written back."""
    words, data = WORDS["group_rows"][lang], trace["group_rows"]
    heads, kv_head, rows = data["q_heads_read"], data["kv_head"], data["block_g"]
    assert heads == data["o_heads_written"] == data["lse_heads_written"]
    assert data["kv_heads_read"] == [kv_head]
    group, padding = len(heads), rows - len(heads)
    stray = (heads[-1] + 1, heads[-1] + padding)
    names = {
        "kv": kv_head, "first": heads[0], "last": heads[-1], "group": group, "rows": rows, "padding": padding,
        "stray_first": stray[0], "stray_last": stray[1], "total": data["num_qo_heads"],
        "percent": round(100 * padding / rows), "last_row": rows - 1,
    }  # fmt: skip
    d = Drawing(
        "figure-l2-group-rows", WIDTH, 462, words["title"].format(**names), words["desc"].format(**names)
    )

    def head_y(head: int) -> float:
        return 56 + 10 * head + 4 * (head // group)

    row_y, row_h = [56 + 22.1 * row for row in range(rows)], 20
    left, right, tile, tile_w, bar = 78, 552, 270, 180, 60
    ends = head_y(heads[0]), head_y(heads[-1]) + 9
    real = row_y[0], row_y[group - 1] + row_h
    zeros = row_y[group] + 4, row_y[-1] + row_h
    lost = head_y(stray[0]) + 4, head_y(stray[1]) + 9
    d.band(left + bar, *ends, tile, *real, SERIES[0])
    d.band(tile + tile_w, *real, right, *ends, SERIES[0])
    for start, end in zip(zeros, lost, strict=True):
        d.arrow(tile + tile_w + 2, start, right - 2, end, stroke=SERIES[1], width=1.2, dash="5 4")

    for x, name in ((left, "q"), (right, "o")):
        d.text(x + bar / 2, 24, words[name], 14, anchor="middle", weight=600)
        d.text(x + bar / 2, 42, f"[{data['num_qo_heads']}, D]", 12.5, fill=MUTED, anchor="middle", mono=True)
        for head in range(data["num_qo_heads"]):
            mine = head in heads
            fill, stroke = (SERIES[0], SERIES[0]) if mine else (BG, LINE)
            d.rect(x, head_y(head), bar, 9, fill=fill, stroke=stroke, opacity=0.75, radius=1.5)
    for kv in range(data["num_kv_heads"]):
        y = head_y(kv * group) + 24
        mine = kv == kv_head
        color, weight = (SERIES[0], 600) if mine else (MUTED, None)
        d.text(left - 10, y, f"KV {kv}", 12.5, fill=color, anchor="end", weight=weight)
        d.text(right + bar + 10, y, f"{kv * group}–{kv * group + group - 1}", 12.5, fill=color, weight=weight)
    d.text(tile + tile_w / 2, 24, words["tile"], 14, anchor="middle", weight=600)
    d.text(tile + tile_w / 2, 42, f"[{rows}, D]", 12.5, fill=MUTED, anchor="middle", mono=True)
    for row, y in enumerate(row_y):
        mine = row < group
        d.rect(tile, y, tile_w, row_h, fill=SERIES[0] if mine else BG, stroke=SERIES[0] if mine else LINE,
               opacity=0.16 if mine else None, radius=3, dash=None if mine else "3 3")  # fmt: skip
        d.text(tile + 10, y + 14.5, words["row"].format(row), 12.5, fill=FG if mine else MUTED)
        text = words["head"].format(heads[row]) if mine else "0"
        d.text(tile + tile_w - 10, y + 14.5, text, 12.5, fill=FG if mine else MUTED, anchor="end")
    d.text(16, 432, words["zeros"].format(**names), 13, fill=MUTED)
    d.text(16, 451, words["masked"].format(**names), 13, fill=SERIES[1])
    return d


def page_map(trace: dict, lang: str) -> Drawing:
    """Which program reads which page of K and of V, for both kernels."""
    words, data = WORDS["page_map"][lang], trace["page_map"]
    group = data["num_qo_heads"] // data["num_kv_heads"]
    pages = data["table"]
    counts = {}
    for kernel in ("naive", "packed"):
        programs = data[kernel]["programs"]
        assert all(p["k"] == p["v"] == pages for p in programs)
        counts[kernel] = {sum(p["kv_head"] == kv for p in programs) for kv in range(data["num_kv_heads"])}
    assert counts == {"naive": {group}, "packed": {1}}
    total = {k: 2 * len(pages) * len(data[k]["programs"]) for k in counts}
    names = {
        "group": group, "kv": data["num_kv_heads"], "q": data["num_qo_heads"], "pages": len(pages),
        "naive": total["naive"], "packed": total["packed"],
    }  # fmt: skip
    d = Drawing(
        "figure-l2-page-map", WIDTH, 356, words["title"].format(**names), words["desc"].format(**names)
    )
    cell, row_h, gap = 34, 22, 16
    functions = {"naive": "naive_paged_decode", "packed": "paged_decode"}
    for kernel, left in (("naive", 106), ("packed", 472)):
        programs = data[kernel]["programs"]
        d.text(left - 90, 26, functions[kernel], 14, weight=600, mono=True)
        grid = ", ".join(map(str, data[kernel]["grid"]))
        d.text(left - 90, 46, words["grid"].format(grid=grid, n=len(programs)), 13, fill=MUTED)
        columns = [(cache, page, left + i * 3 * cell + (gap if i else 0) + j * cell)
                   for i, cache in enumerate(("K", "V")) for j, page in enumerate(pages)]  # fmt: skip
        for cache, page, x in columns:
            d.text(x + cell / 2 - 1, 76, f"{cache} {page}", 12.5, fill=MUTED, anchor="middle", mono=True)
        height = row_h * data["num_qo_heads"] / len(programs)
        for row, program in enumerate(programs):
            y, h = 86 + height * row + 8 * program["kv_head"], height - 3
            color = SERIES[program["kv_head"]]
            lines = [words["q_head"].format(row)]
            if kernel == "packed":
                lines = [
                    words["kv_head"].format(row),
                    words["q_heads"].format(row * group, row * group + group - 1),
                ]
            for i, label in enumerate(lines):
                middle = y + h / 2 + 4.5 + 17 * (i - (len(lines) - 1) / 2)
                d.text(left - 10, middle, label, 12.5, fill=MUTED if i else FG, anchor="end")
            for _, _, x in columns:
                d.rect(x, y, cell - 3, h, fill=color, opacity=0.75, radius=3)
        y = 86 + 8 * row_h + 22
        d.line(left - 90, y - 6, columns[-1][2] + cell, y - 6)
        (count,) = counts[kernel]
        d.text(left - 10, y + 14, words["reads"], 12.5, fill=MUTED, anchor="end")
        for _, _, x in columns:
            d.text(x + cell / 2 - 1, y + 14, f"{count}×", 14, anchor="middle", weight=600)
    d.text(16, 326, words["note"].format(**names), 13, fill=MUTED)
    d.text(16, 345, words["total"].format(**names), 13, fill=MUTED)
    return d


def sm_grid(trace: dict, lang: str) -> Drawing:
    """The launch for one long sequence on the SMs of two cards."""
    words, launch = WORDS["sm_grid"][lang], trace["launch"]
    programs = prod(launch["grid"])
    grid = ", ".join(map(str, launch["grid"]))
    names = {"grid": grid, "programs": programs, "ctx": launch["ctx"]}
    told = {
        card: words["told"].format(busy=programs, idle=n - programs) for card, n in launch["num_sms"].items()
    }
    cards = words["joiner"].join(
        words["card"].format(card, n, told[card]) for card, n in launch["num_sms"].items()
    )
    d = Drawing(
        "figure-l2-sm-grid",
        WIDTH,
        376,
        words["title"].format(**names),
        words["desc"].format(**names, cards=cards),
    )
    d.text(16, 26, words["launch"].format(**names), 14, weight=600)
    x = 16
    for (card, num_sms), columns in zip(launch["num_sms"].items(), (12, 17), strict=True):
        _sms.panel(
            d, x, 60, columns, num_sms, launch["grid"], words["heading"].format(card, num_sms), told[card]
        )
        x += columns * _sms.PITCH + 38
    d.text(16, 362, words["model"], 13, fill=MUTED)
    return d


FIGURES = {"block_table": block_table, "group_rows": group_rows, "page_map": page_map, "sm_grid": sm_grid}
