"""A launch's programs on the SMs of a card, as several lessons draw it."""

from math import prod

from scripts.svg import FG, LINE, MUTED, SERIES, Drawing

CELL, PITCH = 19, 22


def placed(programs: int, num_sms: int) -> list[int]:
    """Programs on each SM: one an SM first, then round again. A model: the hardware promises no order."""
    return [programs // num_sms + (sm < programs % num_sms) for sm in range(num_sms)]


def panel(
    d: Drawing, x: float, y: float, columns: int, num_sms: int, grid: list[int], heading: str, told: str,
    tail: bool = False,
) -> None:  # fmt: skip
    """The SMs of one card, each with its number of programs; idle ones are empty.

    With `tail`, the SMs that have a program of the last wave have a heavy border, if others have none.
    """
    d.text(x, y, heading, 14, weight=600)
    d.text(x, y + 20, told, 13, fill=MUTED)
    counts = placed(prod(grid), num_sms)
    most, uneven = max(counts), tail and 0 < min(counts) < max(counts)
    strength = 0.1 * min(1.0, 4 / (most or 1))  # so that a number can be read on the darkest
    for sm, count in enumerate(counts):
        left, top = x + PITCH * (sm % columns), y + 34 + PITCH * (sm // columns)
        if not count:
            d.rect(left, top, CELL, CELL, stroke=LINE, radius=3)
            continue
        width = 2.5 if uneven and count == most else 1
        d.rect(left, top, CELL, CELL, fill=SERIES[0], stroke=SERIES[0], radius=3, width=width,
               opacity=0.08 + strength * count)  # fmt: skip
        d.text(left + CELL / 2, top + 14, str(count), 12, fill=FG, anchor="middle")


def height(columns: int, num_sms: int) -> int:
    """Of a panel, from its heading's baseline down."""
    return 34 + PITCH * -(-num_sms // columns)
