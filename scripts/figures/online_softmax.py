"""Figures of the online_softmax lesson."""

import math

from scripts.figures._words import words_of
from scripts.svg import FG, HIT, LINE, MUTED, SERIES, Drawing, number

WORDS = words_of("online_softmax")
WIDTH, PANEL, PITCH, LEFT = 720, 156, 176, 18


def steps(trace: dict, lang: str) -> Drawing:
    """The weights and the state after each score, and where blocks of 2 and 4 stand."""
    words, scores, values, states = (
        WORDS["steps"][lang],
        trace["scores"],
        trace["values"],
        trace["states"]["1"],
    )
    told = words["joiner"].join(
        words["step"].format(i + 1, number(s["m"], 0), number(s["l"], 3), number(s["o"], 2))
        for i, s in enumerate(states)
    )
    d = Drawing("figure-online-softmax-steps", WIDTH, 392, words["title"], words["desc"].format(told))
    before = -math.inf
    for i, state in enumerate(states):
        x = LEFT + i * PITCH
        weights = [math.exp(score - state["m"]) for score in scores[: i + 1]]
        assert math.isclose(sum(weights), state["l"], abs_tol=1e-4)
        d.text(x + PANEL / 2, 24, words["reads"].format(number(scores[i], 0), number(values[i], 0)), 14,
               anchor="middle", weight=600)  # fmt: skip
        d.rect(x, 36, PANEL, 142, stroke=LINE, radius=4)
        for j, weight in enumerate(weights):
            color = SERIES[1] if j == i else SERIES[0]
            bar, height = x + 10 + 36 * j, 84 * weight
            d.rect(bar, 150 - height, 28, height, fill=color, opacity=0.75)
            d.text(bar + 14, 144 - height, number(weight, 3), 12, anchor="middle")
            d.text(bar + 14, 168, number(values[j], 0), 12, fill=MUTED, anchor="middle")
        d.line(x + 6, 150, x + PANEL - 6, 150, stroke=MUTED)
        rows = (("alpha", number(math.exp(before - state["m"]), 3)), ("m", number(state["m"], 0)),
                ("l", number(state["l"], 3)), ("acc / l", number(state["o"], 2)))  # fmt: skip
        for row, (name, value) in enumerate(rows):
            y = 202 + 20 * row
            d.text(x + 10, y, name, 13, fill=MUTED, mono=True)
            d.text(x + PANEL - 10, y, value, 13, anchor="end", mono=True, weight=600 if row else None)
        d.rect(x, 184, PANEL, 86, stroke=LINE, radius=4)
        if i:
            d.arrow(x - (PITCH - PANEL) + 2, 228, x - 2, 228, stroke=MUTED)
        before = state["m"]
    for row, size in enumerate((2, 4)):
        y = 282 + 28 * row
        for block, state in enumerate(trace["states"][str(size)]):
            last = (block + 1) * size - 1
            assert state == states[last]
            x, end = LEFT + block * size * PITCH, LEFT + last * PITCH + PANEL
            d.rect(x, y, end - x, 22, fill=HIT, opacity=0.55, radius=4)
            text = words["block"].format(size, block)
            d.text(end - 10, y + 15.5, text, 12, fill=FG, anchor="end")
    for row, note in enumerate(words["notes"]):
        d.text(LEFT, 360 + 20 * row, note, 13, fill=MUTED)
    return d


FIGURES = {"steps": steps}
