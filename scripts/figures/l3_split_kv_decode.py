"""Figures of the l3_split_kv_decode lesson: both launches here; ranges, SMs and the merge beside it."""

from math import prod

from scripts.figures import _l3_merge, _l3_ranges, _l3_sms
from scripts.figures._words import words_of
from scripts.svg import BG, FG, HIT, LINE, MUTED, SERIES, Drawing, number

WORDS = words_of("l3_split_kv_decode")
WIDTH = 720
DTYPES = {"float16": "fp16", "float32": "fp32", "int32": "int32"}


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
        opacity = 0.5 if hit else None
        with d.node(name, x - 2, y - 2, box_w + 4, box_h + 4):
            d.rect(x, y, box_w, box_h, fill=HIT if hit else BG, stroke=LINE, radius=4, opacity=opacity)
            d.text(x + 10, y + 21, name, 13, weight=600, mono=True)
            d.text(x + box_w - 10, y + 21, size_text(facts["bytes"]), 12.5, anchor="end")
            d.text(x + 10, y + 41, "[" + ", ".join(map(str, facts["shape"])) + "]", 12, MUTED, mono=True)
            d.text(x + box_w - 10, y + 41, DTYPES[facts["dtype"]], 12, fill=MUTED, anchor="end")

    def column(listed: list[str], x: float) -> dict[str, float]:
        """Draws tensors below one another around the middle; the height of each one's own middle."""
        step = box_h + gap_y
        tops = [middle - (len(listed) * step - gap_y) / 2 + i * step for i in range(len(listed))]
        for name, top in zip(listed, tops, strict=True):
            tensor(name, x, top)
        return {name: top + box_h / 2 for name, top in zip(listed, tops, strict=True)}

    def kernel(data: dict, x: float, color: str, role: str) -> None:
        lines = ((role, 14, color, 600, False), ("kernel", 12.5, MUTED, None, False),
                 (f"({grid_text(data)})", 13, FG, None, True),
                 (words["programs"].format(prod(data["grid"])), 12.5, FG, None, False))  # fmt: skip
        with d.node(role, x - 2, middle - 64, kernel_w + 4, 128, label=f"{role} kernel"):
            d.rect(x, middle - 62, kernel_w, 124, fill=color, stroke=color, radius=6, opacity=0.12, width=1.5)
            for (text, size, fill, weight, mono), y in zip(lines, (-34, -12, 16, 38), strict=True):
                d.text(x + kernel_w / 2, middle + y, text, size, fill, "middle", weight, mono)

    for name, y in column(split["reads"], left).items():
        with d.edge(name, "split"):
            d.arrow(left + box_w, y, split_x - 2, middle + (y - middle) * 0.36, stroke=MUTED)
    kernel(split, split_x, SERIES[0], "split")
    for name, y in column(between, between_x).items():
        near = middle + (y - middle) * 0.6
        with d.edge("split", name):
            d.arrow(split_x + kernel_w, near, between_x - 2, y, stroke=MUTED)
        with d.edge(name, "combine"):
            d.arrow(between_x + box_w, y, combine_x - 2, near, stroke=MUTED)
    kernel(combine, combine_x, SERIES[2], "combine")
    top = middle + 62 + 24
    with d.edge("combine", " ".join(combine["writes"])):
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


FIGURES = {
    "page_ranges": _l3_ranges.page_ranges,
    "two_kernels": two_kernels,
    "sm_grid": _l3_sms.sm_grid,
    "combine_head": _l3_merge.combine_head,
    "merge_example": _l3_merge.merge_example,
}
