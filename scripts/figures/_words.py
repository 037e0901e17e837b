"""The words of the figures, by lesson, figure and language: scripts/figures/<lesson>.toml."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def words_of(lesson: str) -> dict[str, dict[str, dict]]:
    """Figure -> language -> words, of one lesson."""
    return tomllib.loads(Path(__file__).with_name(f"{lesson}.toml").read_text(encoding="utf-8"))


def counted(number: int, forms: list[str]) -> str:
    """A number with its noun: one form for every number, or the form of 1 and that of all others."""
    return forms[0 if number == 1 else -1].format(number)
