"""A figure of the l3_split_kv_decode lesson: the pages that each split reads."""

from itertools import cycle, islice, pairwise

from scripts.figures._words import counted, words_of
from scripts.svg import MUTED, SERIES, Drawing, text_width

WORDS = words_of("l3_split_kv_decode")
WIDTH, PITCH, GAP = 720, 106, 8
LABEL = 12.5  # px of a label's text
NUMBERED = 20  # px: a page narrower than this shows no number


def page_ranges(trace: dict, lang: str) -> Drawing:
    """A row a sequence: its pages, split after split."""
    words, told = WORDS["page_ranges"][lang], []
    num_splits, size = len(trace["page_ranges"][0]["splits"]), trace["page_ranges"][0]["page_size"]
    rows = []
    for data in trace["page_ranges"]:
        pages = [page for split in data["splits"] for page in split["pages"]]
        assert pages == list(range(-(-data["ctx"] // size)))
        assert sum(split["tokens"] for split in data["splits"]) == data["ctx"]
        ranges = [range_text(split["pages"]) or words["empty"] for split in data["splits"]]
        told.append(
            words["told"].format(
                ctx=data["ctx"], pages=counted(len(pages), words["page"]), ranges=words["comma"].join(ranges)
            )
        )
        rows.append((data, len(pages), ranges))
    names = {"splits": counted(num_splits, words["splits"]), "size": size, "told": words["joiner"].join(told)}
    d = Drawing("figure-l3-page-ranges", WIDTH, 38 + PITCH * len(rows), words["title"].format(**names),
                words["desc"].format(**names))  # fmt: skip
    for row, (data, num_pages, ranges) in enumerate(rows):
        sequence(d, 26 + PITCH * row, data, num_pages, ranges, words)
    d.text(16, 25 + PITCH * len(rows), words["note"], 13, fill=MUTED)
    return d


def sequence(d: Drawing, y: float, data: dict, num_pages: int, ranges: list[str], words: dict) -> None:
    """One row: a box a page, filled where it holds tokens, and below each split what it has."""
    splits, size = data["splits"], data["page_size"]
    per_split = max(1, len(splits[0]["pages"]))
    pages = counted(num_pages, words["page"])
    head = words["row"].format(ctx=data["ctx"], pages=pages, per=len(splits[0]["pages"]))
    d.text(16, y, head, 14, weight=600)
    cell = min(64.0, (WIDTH - 32 - GAP * (len(splits) - 1)) / max(num_pages, per_split * len(splits)))
    long = [words["split"].format(s, ranges[s]) for s in range(len(splits))]
    widths = [text_width(text, LABEL) for text in long]
    fits = all((a + b) / 2 <= per_split * cell + GAP for a, b in pairwise(widths))  # else all are short
    labels = long if fits else ranges
    for s, (split, color) in enumerate(zip(splits, islice(cycle(SERIES), len(splits)), strict=True)):
        x = 16 + s * (per_split * cell + GAP)
        for i, page in enumerate(split["pages"]):
            share = min(data["ctx"] - page * size, size) / size
            pad = 0.75 if cell < NUMBERED else 1.5
            left, wide = x + i * cell + pad, cell - 2 * pad
            d.rect(left, y + 14, wide, 30, stroke=color, radius=2)
            d.rect(left, y + 14, wide * share, 30, fill=color, opacity=0.55, radius=2)
            if cell > NUMBERED:
                d.text(x + (i + 0.5) * cell, y + 34, str(page), 13, anchor="middle", mono=True)
        width = (len(split["pages"]) or per_split) * cell
        if not split["pages"]:
            d.rect(x + 1, y + 14, width - 2, 30, stroke=MUTED, radius=2, dash="4 3")
        # A label may be wider than a split that is alone at the edge: it stays inside the figure.
        half = text_width(labels[s], LABEL) / 2
        middle = min(max(x + width / 2, 4 + half), WIDTH - 4 - half)
        d.text(middle, y + 62, labels[s], LABEL, fill=color if split["pages"] else MUTED, anchor="middle",
               weight=600)  # fmt: skip
        tokens = counted(split["tokens"], words["tokens"]) if fits else str(split["tokens"])
        d.text(middle, y + 78, tokens, 12, fill=MUTED, anchor="middle")


def range_text(pages: list[int]) -> str:
    """'0–15', '6', or nothing."""
    if not pages:
        return ""
    return str(pages[0]) if len(pages) == 1 else f"{pages[0]}–{pages[-1]}"
