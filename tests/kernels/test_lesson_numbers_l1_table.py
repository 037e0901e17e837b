"""The numbers worked by hand on the page of how the table reaches the device, and what its program prints."""

import contextlib
import io
import math
import re

import pytest

from kernels.l1_decode_step import declare_tables
from kernels.l1_stream_model import (
    copy_stream,
    is_right,
    outcomes,
    reuse_at_once,
    two_buffers,
    wait_for_copy,
)
from tests.helpers.lesson import assert_numbers, nbytes, sections
from tests.kernels.test_lesson_listings import PROGRAM

LESSON = "l1_table_to_device"
# The rows of the page's table: its first two cells, and the program.
PROGRAMS = {
    ("reuse_at_once", 2): reuse_at_once(2),
    ("reuse_at_once", 3): reuse_at_once(3),
    ("wait_for_copy", 3): wait_for_copy(3),
    ("two_buffers", 2): two_buffers(2),
    ("two_buffers", 3): two_buffers(3),
    ("two_buffers(wait=True)", 3): two_buffers(3, wait=True),
    ("copy_stream(ready=False)", 2): copy_stream(2, ready=False),
    ("copy_stream(free=False)", 2): copy_stream(2, free=False),
    ("copy_stream", 3): copy_stream(3),
}
ROW = re.compile(r"^\| `([^`]+)` \| (\d) \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)


def bytes_of(batch_size: int, max_pages: int) -> int:
    """Bytes that travel in a step."""
    return nbytes(*declare_tables(batch_size, max_pages).shape, element_bytes=4)


NUMBERS = {
    "what-travels": [
        (bytes_of(64, 2048), "524,800"), (nbytes(2, 64, element_bytes=4), "512"), (64 / 16, "4"),
        (nbytes(4, element_bytes=4), "16"),
    ],
    "pitfall-two-buffers": [(20, "20"), (377, "377")],
    "check-yourself": [
        (bytes_of(8, 256), "8256"), (nbytes(8, 256, element_bytes=4), "8192"), (23, "23"),
        (sum(4 - a for a in (0, 1, 2)), "9"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("anchor", NUMBERS)
def test_numbers(anchor: str):
    assert_numbers(LESSON, anchor, NUMBERS[anchor])


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_interleaving_is_counted_as_the_page_says(lang: str):
    rows = ROW.findall(sections(lang, LESSON)["model"])
    assert [(name, int(steps)) for name, steps, *_ in rows] == list(PROGRAMS)
    for name, steps, count, wrong in rows:
        found = outcomes(PROGRAMS[name, int(steps)])
        assert f"{sum(found.values()):,}" == count if "," in count else str(sum(found.values())) == count
        told = sum(times for outcome, times in found.items() if not is_right(outcome))
        assert int(wrong.replace(",", "")) == told


def test_the_wrong_ones_are_those_that_write_before_the_copy():
    """Every order of six host steps and four of the stream, each after its call: 23, and 9 of them wrong."""
    merges = math.comb(6, 2)  # of the host's last two calls with the stream's four, if nothing were forbidden
    assert merges == 15 and sum(4 - a for a in range(3)) == 9
    assert sum(n for o, n in outcomes(reuse_at_once()).items() if not is_right(o)) == 9


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_program_prints_what_the_page_says(lang: str):
    program, output = PROGRAM.search(sections(lang, LESSON)["run"]).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, f"{LESSON}.md", "exec"), {})
    assert printed.getvalue() == output
