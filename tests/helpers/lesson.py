"""The numbers that a lesson prints: where they stand, and whether a value would be printed so."""

import functools
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
HEADING = re.compile(r"^#{1,6} .*\{#([\w-]+)\}\s*$", re.MULTILINE)


@functools.cache
def sections(lang: str, lesson: str) -> dict[str, str]:
    """{anchor: the Markdown from its heading to the next heading} of docs/<lang>/lessons/<lesson>.md."""
    text = (DOCS / lang / "lessons" / f"{lesson}.md").read_text(encoding="utf-8")
    _, *parts = HEADING.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def printed(value: float, like: str) -> str:
    """The value with the decimals and the commas of `like`: printed(2 / 3, "0.12") is "0.67"."""
    decimals = len(like.partition(".")[2])
    return f"{value:{',' if ',' in like else ''}.{decimals}f}"


def assert_numbers(lesson: str, anchor: str, numbers: list[tuple[float, str]]) -> None:
    """Each (value, text): the value is printed as that text, and the section has it, in both languages."""
    for value, text in numbers:
        # fp32 roundings of a kernel may move a value over the edge between two printed ones.
        near = {printed(value * factor, text) for factor in (1 - 1e-6, 1, 1 + 1e-6)}
        assert text in near, f"{lesson}#{anchor} prints {text}, it is {value!r}"
        # Not as a part of another number.
        pattern = re.compile(rf"(?<![\d.,]){re.escape(text)}(?!\d|[.,]\d)")
        for lang in ("zh", "en"):
            assert pattern.search(sections(lang, lesson)[anchor]), (
                f"docs/{lang}/lessons/{lesson}.md#{anchor} has no {text}"
            )


def nbytes(*shape: int, element_bytes: int = 2) -> int:
    """Bytes of a tensor: of fp16 unless told otherwise."""
    count = element_bytes
    for size in shape:
        count *= size
    return count
