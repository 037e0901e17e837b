"""How a tensor is printed: as PyTorch does it, four decimals and columns of one width."""

import math

import numpy as np

from torch import _dtypes
from torch._names import absent
from torch._tensor import Tensor

_OPTIONS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_DEFAULTS = dict(_OPTIONS)


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """How many decimals, elements and characters of a tensor are printed."""
    if profile not in (None, "default"):
        raise NotImplementedError(absent(f"set_printoptions(profile={profile!r})"))
    if profile == "default":
        _OPTIONS.update(_DEFAULTS)
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _OPTIONS.update({name: value for name, value in given.items() if value is not None}, sci_mode=sci_mode)


class _Format:
    """The width and notation in which all numbers of one tensor fit."""

    def __init__(self, array: np.ndarray, floating: bool) -> None:
        self.floating, self.whole, self.scientific, self.width = floating, True, False, 1
        values = array.reshape(-1)
        if not floating:
            self.width = max((len(str(x)) for x in values.tolist()), default=1)
            return
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return
        sizes = np.abs(values).astype(np.float64)
        low, high = sizes.min(), sizes.max()
        self.whole = bool((sizes == np.ceil(sizes)).all())
        wide = high / low > 1000.0 or high > 1.0e8
        chosen = _OPTIONS["sci_mode"]
        self.scientific = bool(wide or (not self.whole and low < 1.0e-4)) if chosen is None else chosen
        self.width = max(len(self._plain(x)) for x in values.tolist())

    def _plain(self, value) -> str:
        precision = _OPTIONS["precision"]
        if self.scientific:
            return f"{value:.{precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{precision}f}"

    def text(self, value) -> str:
        """One number."""
        return (self._plain(value) if self.floating else str(value)).rjust(self.width)


def _row(values: list, form: _Format, indent: int, short: bool) -> str:
    edge = _OPTIONS["edgeitems"]
    per_line = max(1, (_OPTIONS["linewidth"] - indent) // (form.width + 2))
    if short and len(values) > 2 * edge:
        shown = [*map(form.text, values[:edge]), " ...", *map(form.text, values[-edge:])]
    else:
        shown = [form.text(x) for x in values]
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(array: np.ndarray, form: _Format, indent: int, short: bool) -> str:
    if array.ndim == 0:
        return form.text(array.item())
    if array.ndim == 1:
        return _row(array.tolist(), form, indent, short)
    edge = _OPTIONS["edgeitems"]
    parts, cut = list(array), short and len(array) > 2 * edge
    if cut:
        parts = [*parts[:edge], *parts[-edge:]]
    shown = [_nested(part, form, indent + 1, short) for part in parts]
    if cut:
        shown.insert(edge, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(shown) + "]"


def _corners(array: np.ndarray) -> np.ndarray:
    """What is left of a large array when it is printed."""
    edge = _OPTIONS["edgeitems"]
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = np.take(array, [*range(edge), *range(size - edge, size)], axis)
    return array


def show(self: Tensor) -> str:
    """tensor([...], dtype=...)"""
    usual: tuple = (_dtypes.float32, _dtypes.int64, _dtypes.bool_)
    notes: list[str] = []
    if self.device.type == "meta":
        body, notes = "...", [f"device='{self.device}'", f"size={tuple(self.shape)}"]
    elif self.numel() == 0:
        body, usual = "[]", (_dtypes.float32,)
        notes += [f"size={tuple(self.shape)}"] if len(self.shape) != 1 else []
    elif not self.dtype.is_floating_point or self.dtype.itemsize > 1:
        array = _dtypes.widened(self.array, self.dtype, "a conversion")
        short = self.numel() > _OPTIONS["threshold"]
        form = _Format(_corners(array) if short else array, self.dtype.is_floating_point)
        body = _nested(array, form, len("tensor("), short)
    else:
        body = "..."  # of float8 there are bits alone
    if self.dtype not in usual:
        notes.append(f"dtype={self.dtype}")
    text = "tensor(" + body
    last = len(text) - text.rfind("\n") + 1
    for note in notes:
        fits = last + len(note) + 2 <= _OPTIONS["linewidth"]
        text += ", " + note if fits else ",\n       " + note
        last = last + len(note) + 2 if fits else len("       " + note)
    return text + ")"
