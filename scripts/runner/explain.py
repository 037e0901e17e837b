"""The fault of a bad access (scripts/runner/access.py), with everything a reader wants to know of it."""

import sys

import numpy as np

from scripts.runner.faults import BadPointer, OutOfBounds, UnwrittenRead


def reader_line(memory) -> int | None:
    """The innermost line of the reader's files that is being run."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in memory.files:
            return frame.f_lineno
        frame = frame.f_back
    return None


def _where(memory, op: str, region=None) -> dict:
    values = {"op": op, "program": memory.program(), "line": reader_line(memory)}
    if region is not None and region.view is not None:
        values |= {
            "tensor": region.view.name,
            "shape": list(region.view.shape),
            "kernel": region.launch.kernel,
        }
    elif region is not None:
        values |= {"tensor": None, "shape": [region.alive().nbytes]}
    return values


def index_of(region, element: int) -> list[int] | None:
    """The index of an element (counted in memory from the view's first) in the view's shape.

    Past the end or before the start the axis of the largest stride runs out of its range; None where no
    index leads there: between the elements of a view.
    """
    if region.view is None:
        return [element]
    shape, tensor = region.view.shape, region.view.tensor
    axes = [d for d, size in enumerate(shape) if size > 1] or list(range(len(shape)))[:1]
    axes.sort(key=tensor.stride, reverse=True)
    index, rest = [0] * len(shape), element
    for place, d in enumerate(axes):
        step = max(1, tensor.stride(d))
        index[d] = rest // step if place == 0 else min(rest // step, shape[d] - 1)
        rest -= index[d] * step
    return None if rest else index


def out_of_bounds(memory, op: str, region, offsets: np.ndarray, bad: np.ndarray) -> OutOfBounds:
    lane = int(np.flatnonzero(bad)[0])
    offset = int(offsets[lane])
    element = (offset - region.begin) // region.itemsize
    length = (region.end - region.begin) // region.itemsize
    values = _where(memory, op, region) | {
        "element": element, "index": index_of(region, element), "elements": length,
        "bad": int(bad.sum()), "active": int(offsets.size),
    }  # fmt: skip
    guard, index = memory.guard, values["index"]
    if guard and index and len(index) > 2 and not 0 <= index[0] < values["shape"][0]:
        values["because"] = guard.because(index[0], values["shape"][0])
    if element >= length:
        return OutOfBounds("past_end", past=element - length + 1, **values)
    if element < 0:
        return OutOfBounds("before_start", before=-element, **values)
    return OutOfBounds("outside_view", **values)


def misaligned(memory, op: str, region, offsets: np.ndarray, size: int) -> BadPointer:
    lane = int(np.flatnonzero(offsets % size)[0])
    byte = int(offsets[lane]) - region.begin
    return BadPointer("misaligned", byte=byte, size=size, **_where(memory, op, region))


def no_tensor(memory, op: str, window: int, offsets: np.ndarray, region) -> BadPointer:
    address = (window << 44) + int(offsets[0]) + (1 << 43)
    code = "freed" if region is not None else "null" if window == 0 else "no_tensor"
    return BadPointer(code, address=hex(address), **_where(memory, op))


def unwritten(memory, region, offsets: np.ndarray, bad: np.ndarray) -> UnwrittenRead:
    lane = int(np.flatnonzero(bad)[0])
    element = (int(offsets[lane]) - region.begin) // region.itemsize
    return UnwrittenRead(
        "unwritten", element=element, index=index_of(region, element), bad=int(bad.sum()),
        active=int(offsets.size), **_where(memory, "load", region),
    )  # fmt: skip
