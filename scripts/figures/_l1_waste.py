"""A figure of the l1_paged_cache lesson: three ways to have room on one trace of requests."""

from scripts.figures._words import words_of
from scripts.svg import FG, MUTED, SERIES, Drawing, text_width

WORDS = words_of("l1_paged_cache")
WIDTH, HEIGHT = 720, 432
POLICIES = {"reserve": (SERIES[1], "7 3"), "grow": (SERIES[3], "2 3"), "page": (SERIES[0], None)}
LEFT, RIGHT, TOP, BOTTOM = 68, 560, 52, 208  # of the curves
BAR, ROOM = 176, 400  # where a bar begins, and how long the longest is


def waste(trace: dict, lang: str) -> Drawing:
    """Tokens taken over time, and, a bar a policy, what it needs against what is used of it."""
    words, data = WORDS["waste"][lang], trace["waste"]
    found = {name: numbers(data["policies"][name]) for name in POLICIES}
    steps = data["policies"]["page"]["steps"]
    for each in found.values():
        assert 0 < each["used"] <= each["taken"] <= each["reach"]
    names = {
        "requests": data["requests"], "seats": data["seats"], "steps": steps, "max_len": data["max_len"],
        "factor": f"{data['factor']:g}", "size": data["page_size"], "tokens": f"{data['tokens']:,}",
    }  # fmt: skip
    labels = {name: words[name].format(**names) for name in POLICIES}
    told = words["joiner"].join(
        words["told"].format(label=labels[name], **texts(found[name])) for name in POLICIES
    )
    d = Drawing("figure-l1-waste", WIDTH, HEIGHT, words["title"].format(**names),
                words["desc"].format(**names, told=told))  # fmt: skip
    d.text(16, 24, words["heading"].format(**names), 14, weight=600)
    curves(d, data, words, labels, steps)
    d.text(16, 262, words["bars"], 13, weight=600)
    longest = max(each["reach"] for each in found.values())
    for row, (name, (colour, _)) in enumerate(POLICIES.items()):
        each, y, scale = found[name], 276 + 40 * row, ROOM / longest
        d.text(16, y + 19, labels[name], 13, fill=colour, weight=600)
        d.rect(BAR, y, each["reach"] * scale, 28, stroke=colour, radius=2, dash="3 3")
        d.rect(BAR, y, each["taken"] * scale, 28, fill=colour, stroke=colour, radius=2, opacity=0.18)
        d.rect(BAR, y, each["used"] * scale, 28, fill=colour, radius=2, opacity=0.7)
        d.text(BAR + each["reach"] * scale + 8, y + 19, words["share"].format(**texts(each)), 12.5)
    legend(d, words)
    d.text(16, HEIGHT - 14, words["copied"].format(**texts(found["grow"])), 13, fill=MUTED)
    return d


def numbers(summary: dict) -> dict[str, float]:
    """Tokens, as means over the steps: in use, taken, reached; and copies a token made."""
    steps = summary["steps"]
    return {
        "used": summary["used"] / steps, "taken": summary["reserved"] / steps, "reach": summary["extent"],
        "copied": summary["copied"] / summary["generated"],
    }  # fmt: skip


def texts(each: dict[str, float]) -> dict[str, str]:
    """The same as they are printed."""
    return {
        "used": f"{each['used']:,.0f}", "taken": f"{each['taken']:,.0f}", "reach": f"{each['reach']:,}",
        "percent": f"{100 * each['used'] / each['reach']:.0f}", "copies": f"{each['copied']:.2f}",
    }  # fmt: skip


def curves(d: Drawing, data: dict, words: dict, labels: dict[str, str], steps: int) -> None:
    """Tokens taken at each step by each policy, over the tokens in use."""
    most = max(max(curve) for curve in data["curves"].values())
    last = max(1, data["sampled_steps"][-1])

    def points(values: list[int]) -> list[tuple[float, float]]:
        return [
            (LEFT + (RIGHT - LEFT) * step / last, BOTTOM - (BOTTOM - TOP) * value / most)
            for step, value in zip(data["sampled_steps"], values, strict=True)
        ]

    for share in (0, 0.5, 1):
        y = BOTTOM - (BOTTOM - TOP) * share
        d.line(LEFT, y, RIGHT, y)
        d.text(LEFT - 8, y + 4, f"{most * share:,.0f}", 12, fill=MUTED, anchor="end")
    area = [(LEFT, BOTTOM), *points(data["used"]), (RIGHT, BOTTOM)]
    d.path(drawn(area) + "Z", "none", fill=FG, opacity=0.14)
    ends = []
    for name, (colour, dash) in POLICIES.items():
        line = points(data["curves"][name])
        if len(line) == 1:
            line.append((RIGHT, line[0][1]))
        d.path(drawn(line), colour, 2, dash=dash)
        ends.append([line[-1][1] + 4, labels[name], colour, 600])
    ends.append([points(data["used"])[-1][1] + 4, words["in_use"], MUTED, None])
    # Labels stand where their lines end, and not on one another.
    below = TOP - 16.0
    for y, text, colour, weight in sorted(ends, key=lambda end: end[0]):
        below = max(y, below + 16)
        d.text(RIGHT + 8, min(below, BOTTOM + 20), text, 12.5, fill=colour, weight=weight)
    d.text(LEFT, BOTTOM + 20, words["first"], 12, fill=MUTED)
    d.text(RIGHT, BOTTOM + 20, words["last"].format(steps), 12, fill=MUTED, anchor="end")


def drawn(points: list[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def legend(d: Drawing, words: dict) -> None:
    """What the three parts of a bar are."""
    x = BAR
    styles = {
        "in_use": {"fill": MUTED, "opacity": 0.7},
        "taken": {"fill": MUTED, "opacity": 0.18},
        "reach": {"stroke": MUTED, "dash": "3 3"},
    }
    for key, style in styles.items():
        d.rect(x, 252, 14, 12, radius=2, **style)
        d.text(x + 20, 262, words[key], 12.5, fill=MUTED)
        x += 34 + text_width(words[key], 12.5)
