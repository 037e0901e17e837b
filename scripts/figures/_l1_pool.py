"""A figure of the l1_paged_cache lesson: the block table of some sequences, and the pool it points into."""

from scripts.figures._words import counted, words_of
from scripts.svg import BG, FG, HIT, LINE, MUTED, SERIES, Drawing

WORDS = words_of("l1_paged_cache")
WIDTH = 720
NAMES = "ABCDEF"  # one a colour
ENTRY, PER_LINE, LINE_HEIGHT = 30, 16, 30  # of the table
BOX, PITCH, PER_ROW, ROW_HEIGHT = 50, 57.6, 12, 92  # of the pool


def pool(trace: dict, lang: str) -> Drawing:
    """The table as the kernel gets it, and every page of the pool: whose it is and how full."""
    words, data = WORDS["pool"][lang], trace["pool"]
    size, num_pages, table, lens = data["page_size"], data["num_pages"], data["table"], data["lens"]
    owner, filled = owners(data)
    assert len(owner) + data["num_free"] == num_pages
    assert data["refused"] is None or data["refused"]["needed"] > data["num_free"]
    told = []
    for i, (n, row) in enumerate(zip(lens, table, strict=True)):
        pages = words["comma"].join(str(page) for page in row if page >= 0) or words["no_page"]
        told.append(words["told"].format(NAMES[i], counted(n, words["token"]), pages))
    names = {
        "n": len(data["prompts"]), "prompts": counted(len(data["prompts"]), words["prompt"]),
        "steps": counted(data["done"], words["step"]), "next": data["done"] + 1, "size": size,
        "pages": counted(num_pages, words["page"]), "taken": counted(len(owner), words["page"]),
        "free": data["num_free"], "slots": len(owner) * size, "tokens": counted(sum(lens), words["token"]),
        "empty": len(owner) * size - sum(lens), "told": words["joiner"].join(told) or words["nobody"],
    }  # fmt: skip
    names["outcome"] = outcome(data, words, names)
    lines = [max(1, -(-len(row) // PER_LINE)) for row in table]
    top = 72 + LINE_HEIGHT * sum(lines) + 40
    below = top + ROW_HEIGHT * -(-num_pages // PER_ROW)
    d = Drawing("figure-l1-pool", WIDTH, round(below + 46), words["title"].format(**names),
                words["desc"].format(**names))  # fmt: skip
    d.text(16, 24, words["heading"].format(**names), 14, weight=600)
    d.text(16, 50, words["table"], 13, fill=MUTED)
    y = 60.0
    for i, (row, n) in enumerate(zip(table, lens, strict=True)):
        d.text(16, y + 19, NAMES[i], 14, fill=SERIES[i], weight=600)
        d.text(40, y + 19, counted(n, words["token"]), 13)
        entries(d, y, row, SERIES[i])
        y += LINE_HEIGHT * lines[i]
    d.text(16, top - 16, words["pool"].format(**names), 13, fill=MUTED)
    for page in range(num_pages):
        x, y = 16 + PITCH * (page % PER_ROW), top + ROW_HEIGHT * (page // PER_ROW)
        i = owner.get(page)
        d.text(x + BOX / 2, y + 12, str(page), 12.5, fill=FG if i is not None else MUTED, anchor="middle",
               mono=True)  # fmt: skip
        page_box(d, x, y + 17, BOX, BOX, filled.get(page, 0) / size, LINE if i is None else SERIES[i])
        text, fill = (words["free"], MUTED) if i is None else (NAMES[i], FG)
        d.text(x + BOX / 2, y + 47, text, 12.5, fill=fill, anchor="middle", weight=None if i is None else 600)
        if i is not None:
            d.text(x + BOX / 2, y + 81, words["filled"].format(filled[page]), 12, fill=MUTED, anchor="middle")
    d.rect(12, below, WIDTH - 24, 34, fill="none" if data["refused"] else HIT, radius=4,
           stroke=SERIES[1] if data["refused"] else "none", opacity=0.55, width=2)  # fmt: skip
    d.text(24, below + 22, names["outcome"], 13, weight=600 if data["refused"] else None)
    return d


def owners(data: dict) -> tuple[dict[int, int], dict[int, int]]:
    """For each page that is taken: the sequence that has it, by number, and the tokens in it."""
    size, owner, filled = data["page_size"], {}, {}
    for i, (row, n) in enumerate(zip(data["table"], data["lens"], strict=True)):
        for logical, page in enumerate(page for page in row if page >= 0):
            assert page not in owner
            owner[page], filled[page] = i, min(size, n - logical * size)
    return owner, filled


def outcome(data: dict, words: dict, names: dict) -> str:
    """What is left, or what the cache refused."""
    if data["refused"] is None:
        return words["done"].format(**names)
    needed = counted(data["refused"]["needed"], words["page"])
    if len(data["lens"]) < len(data["prompts"]):
        return words["refused_prompt"].format(**names, needed=needed, seq=NAMES[len(data["lens"])])
    return words["refused_step"].format(**names, needed=needed)


def entries(d: Drawing, y: float, row: list[int], colour: str) -> None:
    """One row of the block table; -1 where the sequence has no page."""
    for i, page in enumerate(row):
        x, top = 190 + (ENTRY + 2) * (i % PER_LINE), y + LINE_HEIGHT * (i // PER_LINE)
        if page < 0:
            d.rect(x, top, ENTRY, 26, stroke=LINE, radius=3, dash="3 3")
            d.text(x + ENTRY / 2, top + 17.5, "−1", 12, fill=MUTED, anchor="middle", mono=True)
        else:
            d.rect(x, top, ENTRY, 26, fill=colour, stroke=colour, radius=3, opacity=0.15)
            d.text(x + ENTRY / 2, top + 17.5, str(page), 13, anchor="middle", mono=True)


def page_box(d: Drawing, x: float, y: float, w: float, h: float, share: float, colour: str) -> None:
    """A page, filled from its top as far as it holds tokens."""
    d.rect(x, y, w, h, fill=BG, stroke=colour, radius=4, width=1.5)
    if share:
        d.rect(x, y, w, h * share, fill=colour, opacity=0.3, radius=4)
