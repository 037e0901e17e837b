"""New tensors: from numbers, filled, counted."""

import math

import numpy as np

from torch import _dtypes
from torch._copies import preserved_strides
from torch._data import as_stored, refuse_options, require_fits, tensor
from torch._names import absent
from torch._new import as_device, is_meta, new, uninitialised
from torch._tensor import Tensor
from torch._views import sizes_of


def empty(
    *size, dtype=None, device=None, requires_grad=False, pin_memory=False, memory_format=None, layout=None
) -> Tensor:
    """Memory as it is found: poison, and a kernel that reads it is told so."""
    refuse_options(requires_grad, pin_memory, layout, memory_format)
    return uninitialised(sizes_of(size), dtype or _dtypes.float32, as_device(device))


def empty_strided(size, stride, dtype=None, device=None) -> Tensor:
    """Memory as it is found, with these strides."""
    extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if 0 not in size else 0
    return empty(extent, dtype=dtype, device=device).alias(size, stride)


def full(
    size, fill_value, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None
) -> Tensor:
    """One number everywhere; its own kind is the dtype."""
    refuse_options(requires_grad, pin_memory, layout)
    if isinstance(fill_value, Tensor):
        dtype, fill_value = dtype or fill_value.dtype, fill_value.item()
    dtype = dtype or _dtypes.of_scalar(fill_value)
    size = sizes_of(tuple(size))
    require_fits(fill_value, dtype)
    made = uninitialised(size, dtype, as_device(device), written=True)
    if made.device.type != "meta" and made.numel():
        made.array[...] = as_stored(fill_value, dtype)
    return made


def zeros(*size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None) -> Tensor:
    """Zeros."""
    return full(sizes_of(size), 0.0, dtype, device, requires_grad, pin_memory, layout)


def ones(*size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None) -> Tensor:
    """Ones."""
    return full(sizes_of(size), 1.0, dtype, device, requires_grad, pin_memory, layout)


def _like(input: Tensor, dtype, device, memory_format=None) -> Tensor:
    if memory_format is not None:
        raise NotImplementedError(absent("memory_format"))
    on = input.device if device is None else as_device(device)
    made = uninitialised(input.shape, dtype or input.dtype, on)
    return made.alias(input.shape, preserved_strides(input))


def empty_like(input, dtype=None, device=None, requires_grad=False, memory_format=None) -> Tensor:
    """Memory as it is found, in the shape and dtype of another tensor."""
    refuse_options(requires_grad)
    return _like(input, dtype, device, memory_format)


def full_like(input, fill_value, dtype=None, device=None, requires_grad=False) -> Tensor:
    """One number everywhere, in the shape and dtype of another tensor."""
    refuse_options(requires_grad)
    require_fits(fill_value, dtype or input.dtype)
    made = _like(input, dtype, device)
    if made.numel() and made.device.type != "meta":
        made.array[...] = as_stored(fill_value, made.dtype)
        made.mark_written()
    return made


def zeros_like(input, dtype=None, device=None, requires_grad=False) -> Tensor:
    """Zeros in the shape and dtype of another tensor."""
    return full_like(input, 0, dtype, device, requires_grad)


def ones_like(input, dtype=None, device=None, requires_grad=False) -> Tensor:
    """Ones in the shape and dtype of another tensor."""
    return full_like(input, 1, dtype, device, requires_grad)


def new_empty(self, *size, dtype=None, device=None, requires_grad=False) -> Tensor:
    """`torch.empty` with the dtype and device of this tensor."""
    refuse_options(requires_grad)
    on = self.device if device is None else as_device(device)
    return uninitialised(sizes_of(size), dtype or self.dtype, on)


def new_full(self, size, fill_value, dtype=None, device=None) -> Tensor:
    """`torch.full` with the dtype of this tensor."""
    return full(size, fill_value, dtype or self.dtype, device or self.device)


def new_zeros(self, *size, dtype=None, device=None) -> Tensor:
    """`torch.zeros` with the dtype of this tensor."""
    return full(sizes_of(size), 0, dtype or self.dtype, device or self.device)


def new_ones(self, *size, dtype=None, device=None) -> Tensor:
    """`torch.ones` with the dtype of this tensor."""
    return full(sizes_of(size), 1, dtype or self.dtype, device or self.device)


def new_tensor(self, data, dtype=None, device=None) -> Tensor:
    """`torch.tensor` with the dtype of this tensor."""
    return tensor(data, dtype or self.dtype, device or self.device)


def arange(*bounds, dtype=None, device=None, requires_grad=False) -> Tensor:
    """start, start + step, ... up to but without end."""
    refuse_options(requires_grad)
    bounds = [x.item() if isinstance(x, (Tensor, np.generic)) else x for x in bounds]
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), tuple(bounds))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(x, int) for x in (start, end, step))
    dtype = dtype or (_dtypes.int64 if whole else _dtypes.float32)
    count = -(-(end - start) // step) if whole else math.ceil((end - start) / step)
    steps = np.arange(count, dtype=np.int64 if whole else np.float64)
    return new(_dtypes.rounded(start + steps * step, dtype), dtype, as_device(device).type == "meta")


def linspace(start, end, steps: int, dtype=None, device=None) -> Tensor:
    """`steps` numbers from start to end, both included; from either end to the middle, as torch does."""
    as_device(device)
    dtype = dtype or _dtypes.float32
    kind = np.float32 if dtype.itemsize < 8 else np.float64
    at = np.arange(steps, dtype=np.int64).astype(kind)
    step = kind((end - start) / (steps - 1)) if steps > 1 else kind(0)
    front, back = kind(start) + step * at, kind(end) - step * (kind(steps - 1) - at)
    array = np.where(np.arange(steps) < steps // 2, front, back) if steps > 1 else np.full(steps, start, kind)
    return new(_dtypes.rounded(array, dtype), dtype)


def eye(n: int, m: int | None = None, dtype=None, device=None) -> Tensor:
    """Ones on the diagonal."""
    dtype = dtype or _dtypes.float32
    return new(_dtypes.rounded(np.eye(n, m), dtype), dtype, as_device(device).type == "meta")


def tril(input, diagonal: int = 0) -> Tensor:
    """What is on and below a diagonal, zeros above."""
    return new(np.tril(input.array, diagonal), input.dtype, is_meta(input))


def triu(input, diagonal: int = 0) -> Tensor:
    """What is on and above a diagonal, zeros below."""
    return new(np.triu(input.array, diagonal), input.dtype, is_meta(input))


FUNCTIONS = (
    empty, empty_strided, full, zeros, ones, empty_like, full_like, zeros_like, ones_like, arange, linspace,
    eye, tril, triu,
)  # fmt: skip
METHODS = (new_empty, new_full, new_zeros, new_ones, new_tensor, tril, triu)
