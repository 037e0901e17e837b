"""Figures of the l1_table_to_device lesson."""

from scripts.figures._words import words_of
from scripts.svg import BG, FG, LINE, MUTED, SERIES, Drawing

WORDS = words_of("l1_table_to_device")
WIDTH, LEFT = 720, 104
HEIGHT = 24  # of a box
# Width of a step, by who takes it and what it is; a record is a point in time.
WIDTHS = {
    ("host", "Fill"): 46, ("host", "Copy"): 44, ("host", "Kernel"): 52, ("host", "Record"): 14,
    ("host", "HostWait"): 50, ("stream", "Copy"): 52, ("stream", "Kernel"): 50, ("stream", "Record"): 14,
}  # fmt: skip
WRONG = SERIES[1]


def color(table: int) -> str:
    """A table's colour."""
    return (SERIES[0], SERIES[4], SERIES[2], SERIES[3])[table - 1]


def race(trace: dict, lang: str) -> Drawing:
    """One pinned buffer: right on an idle GPU, wrong on a busy one, right again with an event."""
    words, runs = WORDS["race"][lang], trace["runs"]
    found = {name: [step["table"] for step in steps if is_read(step)] for name, steps in runs.items()}
    assert found == {"idle": [1, 2], "busy": [2, 2], "waits": [1, 2]}
    d = Drawing("figure-l1-race", WIDTH, 3 * 166 + 30, words["title"], words["desc"])
    for i, name in enumerate(("idle", "busy", "waits")):
        panel(d, 26 + 166 * i, runs[name], words[name], words)
    d.text(16, 3 * 166 + 16, words["legend"], 12.5, fill=MUTED)
    return d


def is_read(step: dict) -> bool:
    """Whether a kernel ran here."""
    return step["who"] != "host" and step["kind"] == "Kernel"


def panel(d: Drawing, top: float, steps: list[dict], title: str, words: dict) -> None:
    """One run from left to right: the host, its buffer, the stream, the device's buffer."""
    rows = {name: top + 12 + 30 * i for i, name in enumerate(("host", "pinned", "stream", "device"))}
    d.text(16, top, title, 14, weight=600)
    for name, y in rows.items():
        d.text(16, y + 16, words[f"row_{name}"], 12.5, fill=MUTED)
    # A wait for an event that was never recorded takes no time; it is not drawn.
    waited = [i for i, step in enumerate(steps) if step["kind"] == "HostWait" and i > 0]
    shown = [step for i, step in enumerate(steps) if step["kind"] != "HostWait" or i in waited]
    x, host_end, starts = float(LEFT), float(LEFT), {}
    held = {"pinned": (x, 0), "device": (x, 0)}  # since when a buffer holds which table
    for step in shown:
        who, kind, table = step["who"], step["kind"], step["table"]
        width = WIDTHS[who, kind]
        starts.setdefault(who, x)
        if kind == "HostWait":
            box(d, host_end, rows["host"], x + width - host_end, words["wait"], None)
        elif kind == "Record":
            d.circle(x + width / 2, rows[who] + HEIGHT / 2, 4, FG if who == "stream" else BG, FG, 1.5)
        elif who == "host":
            text = words[{"Fill": "fill", "Copy": "copy_call", "Kernel": "launch"}[kind]].format(table)
            box(d, x, rows["host"], width, text, table if kind == "Fill" else None)
        else:
            text = words["copy" if kind == "Copy" else "read"].format(table)
            box(d, x, rows["stream"], width, text, table, wrong=is_read(step) and table != step["wanted"])
        if who == "host":
            host_end = x + width
        for name, kinds in (("pinned", ("host", "Fill")), ("device", ("stream", "Copy"))):
            if (who, kind) == kinds:
                band(d, held[name][0], rows[name], x + width, held[name][1])
                held[name] = (x + width, table)
        x += width
    for name, (since, table) in held.items():
        band(d, since, rows[name], x, table)
    if starts["stream"] > LEFT + 200:  # the stream has not begun: work of earlier steps is in front
        end, y = starts["stream"], rows["stream"]
        d.rect(LEFT, y, end - LEFT - 3, HEIGHT, LINE, radius=4, opacity=0.5)
        d.text((LEFT + end) / 2, y + 16, words["busy_stream"], 12.5, MUTED, "middle")


def box(d: Drawing, x: float, y: float, width: float, text: str, table: int | None, wrong=False) -> None:
    """One step."""
    stroke = WRONG if wrong else MUTED if table is None else color(table)
    d.rect(x + 1, y, width - 2, HEIGHT, "none" if table is None else color(table), stroke,
           2.5 if wrong else 1.2, 4, opacity=0.16, dash="4 3" if wrong else None)  # fmt: skip
    d.text(x + width / 2, y + 16, text, 12, FG, "middle", weight=600 if wrong else None)


def band(d: Drawing, start: float, y: float, end: float, table: int) -> None:
    """What a buffer holds from here to there."""
    if end > start and table:
        d.rect(start, y + 5, end - start - 1, HEIGHT - 10, color(table), opacity=0.55)
        d.text((start + end) / 2, y + 16, str(table), 12, FG, "middle", weight=600, halo=True)
    elif end > start:
        d.line(start, y + HEIGHT / 2, end - 1, y + HEIGHT / 2, LINE, 2, "2 3")


def capture(trace: dict, lang: str) -> Drawing:
    """What is in the graph, and the table that each of four replays finds."""
    words, replays = WORDS["capture"][lang], trace["replays"]
    assert replays == {"pinned": [4, 4, 4, 4], "clean": [1, 1, 1, 1], "static": [1, 2, 3, 4]}
    d = Drawing("figure-l1-capture", WIDTH, 288, words["title"], words["desc"])
    graph_x, graph_w, cell, pitch = 248, 196, 44, 58
    first = 478
    d.text(16, 24, words["at_capture"], 12.5, MUTED)
    d.text(graph_x, 24, words["graph"], 12.5, MUTED)
    d.text(first, 24, words["wanted"], 12.5, MUTED)
    for i in range(4):
        d.text(first + pitch * i + cell / 2, 46, str(i + 1), 13, MUTED, "middle", mono=True)
    for row, name in enumerate(("pageable", "pinned", "clean", "static")):
        y = 60 + 56 * row
        d.text(16, y + 18, words[name], 13, weight=600)
        d.text(16, y + 36, words[f"{name}_why"], 12, MUTED)
        if name == "pageable":
            d.rect(graph_x, y, graph_w, 40, "none", WRONG, 1.5, 4, dash="4 3")
            d.text(graph_x + graph_w / 2, y + 25, words["raises"], 13, WRONG, "middle", weight=600)
            d.text(first, y + 25, words["nothing"], 12.5, MUTED)
            continue
        outside = 98 if name == "static" else 0  # there the copy stands in front of the graph
        d.rect(graph_x + outside, y, graph_w - outside, 40, "none", MUTED, 1.5, 4)
        parts = [(104, words["kernel"])] if name == "clean" else [(10, words["copy"]), (104, words["kernel"])]
        for left, part in parts:
            d.rect(graph_x + left, y + 8, 82, 24, SERIES[5], SERIES[5], 1, 4, opacity=0.14)
            d.text(graph_x + left + 41, y + 24, part, 12.5, FG, "middle")
        for i, table in enumerate(replays[name]):
            x, wrong = first + pitch * i, table != i + 1
            stroke, width, dash = (WRONG, 2.5, "4 3") if wrong else (color(table), 1.2, None)
            d.rect(x, y + 4, cell, 32, color(table), stroke, width, 4, opacity=0.16, dash=dash)
            d.text(x + cell / 2, y + 25, str(table), 14, FG, "middle", weight=600, mono=True)
    return d


FIGURES = {"race": race, "capture": capture}
