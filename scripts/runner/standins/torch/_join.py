"""Tensors put together, repeated, turned around, converted, compared."""

import numpy as np

from torch import _dtypes
from torch._copies import copied, store
from torch._create import full
from torch._data import require_fits
from torch._elementwise import kinds, made_of, operand, require_shapes, spoken
from torch._new import as_device, is_meta, new, uninitialised
from torch._parts import unbind
from torch._storage import device as device_type
from torch._tensor import Tensor, wrap
from torch._views import sizes_of


def cat(tensors, dim: int = 0) -> Tensor:
    """One after the other along a dim."""
    tensors = list(tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    real = [x for x in tensors if tuple(x.shape) != (0,)] or tensors[:1]
    dtype = _dtypes.combine(kinds(*tensors))
    first = real[0]
    if not first.shape:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    dim = wrap(dim, len(first.shape))
    for i, x in enumerate(real):
        if len(x.shape) != len(first.shape):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first.shape)} and {len(x.shape)}"
            )
        for d, (a, b) in enumerate(zip(first.shape, x.shape, strict=True)):
            if d != dim and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size "
                    f"{b} for tensor number {i} in the list."
                )
    shape = list(first.shape)
    shape[dim] = sum(x.shape[dim] for x in real)
    known = all(x.flags() is None for x in real)
    made = uninitialised(shape, dtype, as_device("meta" if is_meta(*real) else "cpu"), written=known)
    if not is_meta(*real):
        at = 0
        for x in real:
            store(made[(*[slice(None)] * dim, slice(at, at + x.shape[dim]))], x)
            at += x.shape[dim]
    return made


def stack(tensors, dim: int = 0) -> Tensor:
    """As rows of a new dim."""
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, x in enumerate(tensors):
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                "stack expects each tensor to be equal size, but got "
                f"{list(tensors[0].shape)} at entry 0 and {list(x.shape)} at entry {i}"
            )
    dim = wrap(dim, len(tensors[0].shape) + 1)
    return cat([x.unsqueeze(dim) for x in tensors], dim)


def repeat_interleave(input, repeats, dim: int | None = None) -> Tensor:
    """Each row of a dim so many times; without dim the tensor is flattened first."""
    if dim is None:
        input, dim = input.reshape(-1), 0
    dim = wrap(dim, len(input.shape))
    counts = repeats.array if isinstance(repeats, Tensor) else repeats
    rows = np.repeat(np.arange(input.shape[dim]), np.asarray(counts).astype(np.intp))
    return input[(*[slice(None)] * dim, new(rows.astype(np.int64)))]


def repeat(self, *repeats) -> Tensor:
    """The whole of it so many times along each dim."""
    counts = sizes_of(repeats)
    if len(counts) < len(self.shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    return new(np.tile(self.array, counts), self.dtype, is_meta(self))


def flip(input, *dims) -> Tensor:
    """A copy with dims in reverse."""
    axes = tuple(wrap(d, len(input.shape)) for d in sizes_of(dims))
    return made_of(np.flip(input.array, axes), input.dtype, input)


def roll(input, shifts, dims=None) -> Tensor:
    """A copy with rows moved around the end."""
    return new(np.roll(input.array, shifts, dims), input.dtype, is_meta(input))


def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False) -> Tensor:
    """In another dtype or on another device; itself if it is so already and no copy is asked for."""
    on = self.device
    copy = copy or [x for x in args if isinstance(x, bool)][1:] == [True]  # after non_blocking
    for x in (*args, dtype, device):
        if isinstance(x, Tensor):
            on, dtype = x.device, x.dtype
        elif isinstance(x, _dtypes.dtype):
            dtype = x
        elif isinstance(x, (str, int, device_type)) and not isinstance(x, bool):
            on = as_device(x)
        elif not isinstance(x, (bool, type(None))):
            raise TypeError(f"to(): {type(x).__name__} is no dtype, device or tensor")
    dtype = dtype or self.dtype
    if on.type != self.device.type:
        return uninitialised(self.shape, dtype, on) if on.type == "meta" else _from_meta()
    return self if dtype is self.dtype and not copy else copied(self, dtype)


def _from_meta():
    raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def type_as(self, other: Tensor) -> Tensor:
    """In the dtype of another tensor."""
    return to(self, other.dtype)


def copy_(self, src, non_blocking=False) -> Tensor:
    """The numbers of another tensor, converted and broadcast, into this one."""
    self[...] = src if isinstance(src, Tensor) else full((), src)
    return self


def fill_(self, value) -> Tensor:
    """One number everywhere."""
    value = value.item() if isinstance(value, Tensor) else value
    require_fits(value, self.dtype)
    self[...] = value
    return self


def zero_(self) -> Tensor:
    """Zeros everywhere."""
    return fill_(self, 0)


def equal(input, other) -> bool:
    """Whether shape and all numbers are the same; NaN equals nothing."""
    if input.shape != other.shape:
        return False
    if input.dtype is other.dtype and not input.dtype.computed:
        _dtypes.require_computed(input.dtype, "equal")
    dtype = _dtypes.promote(input.dtype, other.dtype)
    return bool(np.array_equal(operand(input, dtype, "equal"), operand(other, dtype, "equal")))


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Tensor:
    """|input - other| <= atol + rtol * |other|, element by element."""
    require_shapes(input, other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{spoken(input.dtype)} did not match {spoken(other.dtype)}")
    a, b = (operand(x, input.dtype, "isclose") for x in (input, other))
    close = a == b
    if input.dtype.is_floating_point:
        if equal_nan:
            close = close | (np.isnan(a) & np.isnan(b))
        if rtol == 0 and atol == 0:
            return new(np.asarray(close))
        allowed = a.dtype.type(atol) + np.abs(a.dtype.type(rtol) * b)
    else:
        allowed = atol + np.abs(rtol * b.astype(np.float64))
    error = np.abs(a - b)
    return new(np.asarray(close | (np.isfinite(error) & (error <= allowed))))


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    """Whether all are close."""
    return bool(isclose(input, other, rtol, atol, equal_nan).array.all())


def unravel_index(indices, shape) -> tuple[Tensor, ...]:
    """The coordinates of flat indices, a tensor a dim."""
    if not shape:
        return ()
    places = np.unravel_index(indices.array.astype(np.intp), tuple(shape))
    return unbind(new(np.stack(places, -1).astype(np.int64)), -1)


def bincount(input, weights=None, minlength: int = 0) -> Tensor:
    """How often each integer is there."""
    if weights is None:
        return new(np.bincount(input.array.astype(np.intp), None, minlength).astype(np.int64))
    found = np.bincount(input.array.astype(np.intp), weights.array, minlength)
    return new(found.astype(np.float32 if weights.dtype is _dtypes.float32 else np.float64))


def searchsorted(sorted_sequence, input, right=False) -> Tensor:
    """Where numbers would go in a sorted row."""
    values = input.array if isinstance(input, Tensor) else input
    found = np.searchsorted(sorted_sequence.array, values, "right" if right else "left")
    return new(np.asarray(found).astype(np.int64))


def contains(self, item) -> bool:
    """item in self"""
    return bool((self == item).array.any())


FUNCTIONS = (
    cat, stack, repeat_interleave, flip, roll, equal, isclose, allclose, unravel_index, bincount,
    searchsorted,
)  # fmt: skip
METHODS = (
    repeat_interleave, repeat, flip, roll, to, type_as, copy_, fill_, zero_, equal, isclose, allclose,
    bincount,
)  # fmt: skip
