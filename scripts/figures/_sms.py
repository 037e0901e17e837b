"""A launch's programs on the SMs of a card, as several lessons draw it."""

from math import prod

from scripts.svg import FG, LINE, MUTED, SERIES, Drawing

CELL, PITCH = 19, 22


def placed(programs: int, num_sms: int) -> list[int]:
    """Programs on each SM: one an SM first, then round again. A model: the hardware promises no order."""
    return [programs // num_sms + (sm < programs % num_sms) for sm in range(num_sms)]


def panel(
    d: Drawing, x: float, y: float, columns: int, num_sms: int, grid: list[int], heading: str, told: str
) -> None:
    """The SMs of one card, each with its number of programs; idle ones are empty."""
    d.text(x, y, heading, 14, weight=600)
    d.text(x, y + 20, told, 13, fill=MUTED)
    for sm, count in enumerate(placed(prod(grid), num_sms)):
        left, top = x + PITCH * (sm % columns), y + 34 + PITCH * (sm // columns)
        if not count:
            d.rect(left, top, CELL, CELL, stroke=LINE, radius=3)
            continue
        d.rect(left, top, CELL, CELL, fill=SERIES[0], stroke=SERIES[0], radius=3, opacity=0.08 + 0.1 * count)
        d.text(left + CELL / 2, top + 14, str(count), 12, fill=FG, anchor="middle")


def height(columns: int, num_sms: int) -> int:
    """Of a panel, from its heading's baseline down."""
    return 34 + PITCH * -(-num_sms // columns)
