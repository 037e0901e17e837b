"""What is wrong with a result, with the accesses of a kernel, or with what it raised, in words.

A library for scripts/mutant_checks.py.
"""

import re
import sys
import traceback
from ast import literal_eval
from pathlib import Path

import torch

from scripts.trace_record import TraceError
from tests.helpers.mode import DEVICE

DEVICE_TYPE = torch.device(DEVICE).type
WRITERS = re.compile(r"more than once, .* by programs (\[.*\]) of")
ROWS = re.compile(r"; (?=row |lse\[)")  # as the tests' helpers list what is wrong


def raised(error: Exception) -> str:
    """What was raised first, and on which line of a kernel's file."""
    while error.__cause__ is not None:
        error = error.__cause__
    message = f"raised {type(error).__name__}: {error}" if str(error) else f"raised {type(error).__name__}"
    readers = getattr(sys.modules.get("readers_kernel"), "__file__", "")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if frame.filename == readers or file.parent.name == "kernels":
            return f"{message} (line {frame.lineno} of {file.name})"
    return message


def kind_of(value) -> str:
    """What came in place of a result: None, or "a tuple"."""
    if isinstance(value, tuple) and len(value) != 2:
        return f"a tuple of {len(value)}"
    if isinstance(value, tuple) and all(isinstance(t, torch.Tensor) for t in value):
        devices = {t.device.type for t in value} - {DEVICE_TYPE}
        return f"a tuple with a tensor on {devices.pop()}" if devices else "a tuple"
    return "None" if value is None else f"a {type(value).__name__}"


def shortened(message: str, parts: int = 3) -> str:
    """The first few of the rows that a message lists."""
    rows = ROWS.split(message)
    return message if len(rows) <= parts else "; ".join([*rows[:parts], f"and {len(rows) - parts} more"])


def is_pair(result) -> bool:
    """Whether it is (o, lse), on the device of the run."""
    return (
        isinstance(result, tuple)
        and len(result) == 2
        and all(isinstance(t, torch.Tensor) and t.device.type == DEVICE_TYPE for t in result)
    )


def worst(problem, result) -> dict:
    """Where a result is farthest from the reference: the tensor's name, index, expected, got."""
    both = list(zip(("o", "lse"), result, problem.expected(), (problem.dtype, torch.float32), strict=True))
    for what, got, expected, dtype in both:
        if got.shape != expected.shape or got.dtype != dtype:
            wanted = f"{dtype} {list(expected.shape)}"
            return {"what": what, "expected": wanted, "got": f"{got.dtype} {list(got.shape)}"}
    for what, got, expected, _ in both:
        if got.numel() and not (what == "o" and torch.allclose(got.double(), expected, 1e-6, 1e-6)):
            same = got.double() == expected
            error = torch.where(same, 0.0, (got.double() - expected).abs()).nan_to_num(nan=torch.inf)
            index = tuple(i.item() for i in torch.unravel_index(error.argmax(), error.shape))
            values = {"expected": f"{expected[index].item():.6g}", "got": f"{got[index].item():.6g}"}
            return {"what": what, "index": list(index)} | values
    return {}


def violations(t, problem) -> list[tuple[str | None, str]]:
    """(sign, message) of each rule of memory access that a trace breaks."""
    stored = sorted({access.name for access in t.accesses if access.op == "store"})
    rules = [("outside", t.assert_in_bounds)]
    rules += [("padding", lambda name=name: t.assert_written_once(name)) for name in stored]
    if hasattr(problem, "case"):
        case, tokens = problem.case, problem.case.used.numpy()[:, :, None, None]  # caches as NHD views
        table = (case.block_table, case.seq_lens, case.page_size)
        rules.append(("table", lambda: t.assert_table_reads(*table)))
        rules += [(None, lambda n=n: t.assert_reads_within(n, tokens)) for n in ("k_ptr", "v_ptr")]
    found = []
    for sign, rule in rules:
        try:
            rule()
        except TraceError as error:
            found.append((_of_store(str(error)) if sign == "padding" else sign, str(error)))
    return found


def _of_store(message: str) -> str | None:
    """The sign of what is not written once: a hole is the poison's to tell."""
    writers = WRITERS.search(message)
    if writers is None:
        return None
    owners = {program[:2] for program in literal_eval(writers[1])}  # the sequence, and the head or its group
    return "padding" if len(owners) > 1 else "twice"
