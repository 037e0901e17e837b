"""Loads, stores and atomics on simulated memory (scripts/runner/memory.py): checked, noted, carried out."""

import numpy as np

from scripts.runner import explain

_SHIFT, _LOW = np.uint64(44), np.uint64((1 << 44) - 1)
_MIDDLE = np.int64(1 << 43)
_UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
_ALL_WRITTEN = {size: int.from_bytes(b"\1" * size, "little") for size in _UNSIGNED}  # of an element's flags
_RMW = {
    "ADD": np.add, "FADD": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
    "MAX": np.maximum, "MIN": np.minimum, "UMAX": np.maximum, "UMIN": np.minimum,
    "XCHG": lambda old, new: new,
}  # fmt: skip


def load(memory, ptrs, mask, other, dtype) -> np.ndarray:
    """The elements at `ptrs` where `mask` holds, else `other`'s."""
    dtype = np.dtype(dtype)
    out = np.asarray(other, dtype).reshape(-1)
    whole = True
    for region, lanes, offsets in _resolve(memory, "load", ptrs, mask, dtype.itemsize):
        buffer = region.alive()
        if memory.check_written and buffer.written is not None:
            flags = _elements(buffer.written, _UNSIGNED[dtype.itemsize])
            unwritten = flags[offsets // dtype.itemsize] != _ALL_WRITTEN[dtype.itemsize]
            if unwritten.any():
                raise explain.unwritten(memory, region, offsets, unwritten)
        values = _elements(buffer.data, dtype)[offsets // dtype.itemsize]
        if region.watch is not None:
            region.watch((offsets - region.begin) // region.itemsize, values)
        if lanes is None:
            out, whole = values, False
        else:
            if whole:
                out, whole = out.copy(), False
            out[lanes] = values
    return out.reshape(ptrs.shape)


def store(memory, ptrs, value, mask) -> None:
    """Write `value` at `ptrs` where `mask` holds; of two lanes at one address the later stays."""
    flat = np.asarray(value).reshape(-1)
    size = flat.dtype.itemsize
    for region, lanes, offsets in _resolve(memory, "store", ptrs, mask, size):
        buffer = region.alive()
        _elements(buffer.data, flat.dtype)[offsets // size] = flat if lanes is None else flat[lanes]
        _mark(buffer, offsets, size)


def atomic_rmw(memory, op: str, ptrs, value, mask) -> np.ndarray:
    """Read, combine, write, lane after lane; returns what was there."""
    combine, flat = _RMW[op], np.asarray(value).reshape(-1)
    old = np.zeros(flat.shape, flat.dtype)
    size = flat.dtype.itemsize
    for region, lanes, offsets in _resolve(memory, "atomic", ptrs, mask, size):
        buffer = region.alive()
        _refuse_unwritten(memory, region, buffer, offsets, size, op)
        elements, index = _elements(buffer.data, flat.dtype), offsets // size
        where = np.arange(flat.size) if lanes is None else lanes
        for lane, at in zip(where.tolist(), index.tolist(), strict=True):  # one element may come twice
            old[lane] = elements[at]
            elements[at] = combine(elements[at], flat[lane])
        _mark(buffer, offsets, size)
    return old.reshape(ptrs.shape)


def atomic_cas(memory, ptrs, compare, value) -> np.ndarray:
    """Write `value` where `compare` is found, lane after lane; returns what was there."""
    expected, flat = np.asarray(compare).reshape(-1), np.asarray(value).reshape(-1)
    old = np.zeros(flat.shape, flat.dtype)
    size = flat.dtype.itemsize
    for region, lanes, offsets in _resolve(memory, "atomic", ptrs, None, size):
        buffer = region.alive()
        _refuse_unwritten(memory, region, buffer, offsets, size, "CAS")
        elements, index = _elements(buffer.data, flat.dtype), offsets // size
        where = np.arange(flat.size) if lanes is None else lanes
        for lane, at in zip(where.tolist(), index.tolist(), strict=True):
            old[lane] = elements[at]
            if old[lane] == expected[lane]:
                elements[at] = flat[lane]
    return old.reshape(ptrs.shape)


def _resolve(memory, op: str, ptrs, mask, size: int):
    """[(region, lanes or None for all, byte offsets in its buffer)] of the active lanes, all in bounds."""
    addresses = ptrs.reshape(-1)
    lanes = None
    if mask is not None:
        active = np.asarray(mask).reshape(-1)  # a block pointer's mask comes as a memoryview
        if active.dtype != bool:
            active = active.astype(bool)
        if not active.all():
            lanes = np.flatnonzero(active)
            addresses = addresses[lanes]
    if addresses.size == 0:
        return []
    windows = addresses >> _SHIFT
    offsets = (addresses & _LOW).astype(np.int64) - _MIDDLE
    first = windows[0]
    if (windows == first).all():
        return [_checked(memory, op, int(first), lanes, offsets, size)]
    found = []
    for window in np.unique(windows):
        chosen = np.flatnonzero(windows == window)
        own = chosen if lanes is None else lanes[chosen]
        found.append(_checked(memory, op, int(window), own, offsets[chosen], size))
    return found


def _checked(memory, op: str, window: int, lanes, offsets: np.ndarray, size: int):
    region = memory.regions.get(window)
    if region is None or region.alive() is None:
        raise explain.no_tensor(memory, op, window, offsets, region)
    if (offsets % size).any():
        raise explain.misaligned(memory, op, region, offsets, size)
    if region.contiguous or size != region.itemsize:
        if offsets.min() < region.begin or offsets.max() + size > region.end:
            bad = (offsets < region.begin) | (offsets + size > region.end)
            raise explain.out_of_bounds(memory, op, region, offsets, bad)
    else:
        bad = region.view.index_of((offsets - region.begin) // size) < 0
        if bad.any():
            raise explain.out_of_bounds(memory, op, region, offsets, bad)
    if memory.record is not None:
        memory.record(op, region, offsets)
    return region, lanes, offsets


def _elements(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Bytes seen as elements of a type, without a copy."""
    whole = data.size // dtype.itemsize * dtype.itemsize
    return data[:whole].view(dtype)


def _mark(buffer, offsets: np.ndarray, size: int) -> None:
    if buffer.written is not None:
        _elements(buffer.written, _UNSIGNED[size])[offsets // size] = _ALL_WRITTEN[size]


def _refuse_unwritten(memory, region, buffer, offsets, size: int, op: str) -> None:
    """An atomic reads what it changes; an exchange is at home where nothing was written."""
    if memory.check_written and buffer.written is not None and op != "XCHG":
        unwritten = _elements(buffer.written, _UNSIGNED[size])[offsets // size] != _ALL_WRITTEN[size]
        if unwritten.any():
            raise explain.unwritten(memory, region, offsets, unwritten)
