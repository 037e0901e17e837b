"""Figures of the l3_split_kv_decode lesson: the launches and the ranges; the merge is drawn in _l3_merge."""

from math import prod

from scripts.figures import _l3_merge, _sms
from scripts.figures._words import words_of
from scripts.svg import BG, FG, HIT, LINE, MUTED, SERIES, Drawing, number

WORDS = words_of("l3_split_kv_decode")
WIDTH = 720
DTYPES = {"float16": "fp16", "float32": "fp32", "int32": "int32"}


def page_ranges(trace: dict, lang: str) -> Drawing:
    """The pages that each split of three sequences read."""
    words, told = WORDS["page_ranges"][lang], []
    num_splits = len(trace["page_ranges"][0]["splits"])
    rows = []
    for data in trace["page_ranges"]:
        pages = [page for split in data["splits"] for page in split["pages"]]
        assert pages == list(range(-(-data["ctx"] // data["page_size"])))
        assert sum(split["tokens"] for split in data["splits"]) == data["ctx"]
        ranges = [range_text(split["pages"]) or words["empty"] for split in data["splits"]]
        told.append(words["told"].format(ctx=data["ctx"], n=len(pages), ranges=words["comma"].join(ranges)))
        rows.append((data, pages, ranges))
    desc = words["desc"].format(n=num_splits, told=words["joiner"].join(told))
    d = Drawing("figure-l3-page-ranges", WIDTH, 356, words["title"].format(n=num_splits), desc)
    for row, (data, pages, ranges) in enumerate(rows):
        y = 26 + 106 * row
        size = data["page_size"]
        per_split = len(data["splits"][0]["pages"])
        d.text(16, y, words["row"].format(ctx=data["ctx"], n=len(pages), per=per_split), 14, weight=600)
        gap = 8
        cell = min(64.0, (WIDTH - 32 - gap * (num_splits - 1)) / max(len(pages), per_split * num_splits))
        for s, split in enumerate(data["splits"]):
            x, color = 16 + s * (per_split * cell + gap), SERIES[s]
            for i, page in enumerate(split["pages"]):
                last = data["ctx"] - page * size
                share = min(last, size) / size
                pad = 0.75 if cell < 20 else 1.5
                d.rect(x + i * cell + pad, y + 14, cell - 2 * pad, 30, stroke=color, radius=2)
                d.rect(
                    x + i * cell + pad,
                    y + 14,
                    (cell - 2 * pad) * share,
                    30,
                    fill=color,
                    opacity=0.55,
                    radius=2,
                )
                if cell > 20:
                    d.text(x + (i + 0.5) * cell, y + 34, str(page), 13, anchor="middle", mono=True)
            width = (len(split["pages"]) or per_split) * cell
            if not split["pages"]:
                d.rect(x + 1, y + 14, width - 2, 30, stroke=MUTED, radius=2, dash="4 3")
            middle = x + width / 2
            fill = color if split["pages"] else MUTED
            told = words["split"].format(s, ranges[s])
            d.text(middle, y + 62, told, 12.5, fill=fill, anchor="middle", weight=600)
            d.text(middle, y + 78, words["tokens"].format(split["tokens"]), 12, fill=MUTED, anchor="middle")
    d.text(16, 343, words["note"], 13, fill=MUTED)
    return d


def range_text(pages: list[int]) -> str:
    """'0–15', '6', or nothing."""
    if not pages:
        return ""
    return str(pages[0]) if len(pages) == 1 else f"{pages[0]}–{pages[-1]}"


def two_kernels(trace: dict, lang: str) -> Drawing:
    """Both kernels, their grids, and every tensor that they read or write."""
    words, data = WORDS["two_kernels"][lang], trace["launch"]
    split, combine = data["kernels"]
    between = split["writes"]
    assert between == combine["reads"]
    tensors = data["tensors"]
    partial_bytes = sum(tensors[name]["bytes"] for name in between)
    kv_bytes = sum(tensors[name]["bytes"] for name in ("k_cache", "v_cache"))
    names = {
        "ctx": data["ctx"], "splits": data["num_splits"], "partial": size_text(partial_bytes),
        "kv": size_text(kv_bytes), "split_grid": grid_text(split), "combine_grid": grid_text(combine),
        "reads": words["comma"].join(split["reads"]), "between": words["comma"].join(between),
        "writes": words["comma"].join(combine["writes"]),
        "percent": number(100 * partial_bytes / kv_bytes, 1),
    }  # fmt: skip
    d = Drawing(
        "figure-l3-two-kernels", WIDTH, 430, words["title"].format(**names), words["desc"].format(**names)
    )
    d.text(12, 26, words["heading"].format(**names), 14, weight=600)
    box_w, box_h, gap_y, kernel_w, gap = 178, 52, 10, 110, 26
    middle = 46 + (len(split["reads"]) * (box_h + gap_y) - gap_y) / 2
    left = 12
    split_x = left + box_w + gap
    between_x = split_x + kernel_w + gap
    out_x = WIDTH - 12 - box_w
    combine_x = out_x + (box_w - kernel_w) / 2

    def tensor(name: str, x: float, y: float) -> None:
        facts, hit = tensors[name], name in ("k_cache", "v_cache", *between)
        d.rect(
            x, y, box_w, box_h, fill=HIT if hit else BG, stroke=LINE, radius=4, opacity=0.5 if hit else None
        )
        d.text(x + 10, y + 21, name, 13, weight=600, mono=True)
        d.text(x + box_w - 10, y + 21, size_text(facts["bytes"]), 12.5, anchor="end")
        d.text(x + 10, y + 41, "[" + ", ".join(map(str, facts["shape"])) + "]", 12, fill=MUTED, mono=True)
        d.text(x + box_w - 10, y + 41, DTYPES[facts["dtype"]], 12, fill=MUTED, anchor="end")

    def column(listed: list[str], x: float) -> list[float]:
        """Draws tensors below one another around the middle; the height of each one's own middle."""
        step = box_h + gap_y
        tops = [middle - (len(listed) * step - gap_y) / 2 + i * step for i in range(len(listed))]
        for name, top in zip(listed, tops, strict=True):
            tensor(name, x, top)
        return [top + box_h / 2 for top in tops]

    def kernel(data: dict, x: float, color: str, role: str) -> None:
        d.rect(x, middle - 62, kernel_w, 124, fill=color, stroke=color, radius=6, opacity=0.12, width=1.5)
        lines = ((role, 14, color, 600, False), ("kernel", 12.5, MUTED, None, False),
                 (f"({grid_text(data)})", 13, FG, None, True),
                 (words["programs"].format(prod(data["grid"])), 12.5, FG, None, False))  # fmt: skip
        for (text, size, fill, weight, mono), y in zip(lines, (-34, -12, 16, 38), strict=True):
            d.text(x + kernel_w / 2, middle + y, text, size, fill, "middle", weight, mono)

    for y in column(split["reads"], left):
        d.arrow(left + box_w, y, split_x - 2, middle + (y - middle) * 0.36, stroke=MUTED)
    kernel(split, split_x, SERIES[0], "split")
    for y in column(between, between_x):
        near = middle + (y - middle) * 0.6
        d.arrow(split_x + kernel_w, near, between_x - 2, y, stroke=MUTED)
        d.arrow(between_x + box_w, y, combine_x - 2, near, stroke=MUTED)
    kernel(combine, combine_x, SERIES[2], "combine")
    top = middle + 62 + 24
    d.arrow(out_x + box_w / 2, middle + 63, out_x + box_w / 2, top - 2, stroke=MUTED, vertical=True)
    for i, name in enumerate(combine["writes"]):
        tensor(name, out_x, top + i * (box_h + gap_y))
    d.text(12, 418, words["note"].format(**names), 13, fill=MUTED)
    return d


def grid_text(kernel: dict) -> str:
    return ", ".join(map(str, kernel["grid"]))


def size_text(size: int) -> str:
    """Bytes in the largest binary unit that leaves at least 1."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def sm_grid(trace: dict, lang: str) -> Drawing:
    """The same sequence on the SMs of one card, without splits and with them."""
    words, data = WORDS["sm_grid"][lang], trace["launch"]
    num_sms, grids = data["num_sms"], {"l2": data["unsplit_grid"], "l3": data["kernels"][0]["grid"]}
    names = {"ctx": data["ctx"], "sms": num_sms, "splits": data["num_splits"]}
    for key, grid in grids.items():
        counts = _sms.placed(prod(grid), num_sms)
        names |= {
            f"{key}_grid": ", ".join(map(str, grid)), f"{key}_programs": prod(grid),
            f"{key}_idle": counts.count(0), f"{key}_most": max(counts), f"{key}_least": min(counts),
            f"{key}_full": counts.count(max(counts)), f"{key}_less": num_sms - counts.count(max(counts)),
        }  # fmt: skip
    assert names["l2_idle"] and not names["l3_idle"]
    d = Drawing(
        "figure-l3-sm-grid", WIDTH, 356, words["title"].format(**names), words["desc"].format(**names)
    )
    d.text(16, 26, words["card"].format(**names), 14, weight=600)
    for key, x in (("l2", 16), ("l3", 388)):
        heading, told = words[key].format(**names), words[f"{key}_told"].format(**names)
        _sms.panel(d, x, 60, 14, num_sms, grids[key], heading, told)
    d.text(16, 342, words["model"], 13, fill=MUTED)
    return d


FIGURES = {
    "page_ranges": page_ranges,
    "two_kernels": two_kernels,
    "sm_grid": sm_grid,
    "combine_head": _l3_merge.combine_head,
    "merge_example": _l3_merge.merge_example,
}
