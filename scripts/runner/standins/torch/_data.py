"""Tensors of numbers that are there already: nested lists, Python numbers, numpy arrays, tensors."""

import math

import numpy as np

from torch import _dtypes
from torch._copies import copied
from torch._names import absent
from torch._new import as_device, new, uninitialised
from torch._tensor import Tensor


def refuse_options(requires_grad=False, pin_memory=False, layout=None, memory_format=None) -> None:
    """The options that a page has no use for: only their defaults are taken."""
    if requires_grad:
        raise NotImplementedError(absent("requires_grad=True", "there are no gradients"))
    if pin_memory:
        raise NotImplementedError(absent("pin_memory=True", "there is no GPU in a page"))
    if layout is not None or memory_format is not None:
        raise NotImplementedError(absent("a layout or memory_format"))


def tensor(data, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A copy of numbers: nested lists, a number, a numpy array, a tensor."""
    refuse_options(requires_grad, pin_memory)
    on = as_device(device)
    if isinstance(data, Tensor):
        made = copied(data, dtype or data.dtype)
        return made if on.type != "meta" else uninitialised(data.shape, made.dtype, on)
    if isinstance(data, np.ndarray):
        found = _dtypes.from_numpy_dtype(data.dtype)
        array = data
    else:
        flat: list = []
        shape = _shape_of(data, flat)
        found = dtype if dtype is not None and not flat else _common(flat)
        array = _array_of(flat, shape, found, dtype)
    dtype = dtype or found
    return new(_dtypes.rounded(array, dtype), dtype, on.type == "meta")


def _shape_of(data, flat: list) -> tuple[int, ...]:
    """The shape of nested sequences; their numbers go to `flat`."""
    if isinstance(data, Tensor):
        if data.shape and data.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        flat.append(data)
        return ()
    if isinstance(data, np.ndarray):
        flat.extend(data.reshape(-1))
        return data.shape
    if not isinstance(data, (list, tuple, range)):
        if not isinstance(data, (bool, int, float, complex, str, np.generic)):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        _dtypes.of_scalar(data)
        flat.append(data)
        return ()
    shapes = [_shape_of(item, flat) for item in data]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            wanted, got = (s[0] if s else "no length" for s in (shapes[0], shape))
            raise ValueError(f"expected sequence of length {wanted} at dim 1 (got {got}) in item {i}")
    return (len(data), *(shapes[0] if shapes else ()))


def _common(flat: list) -> _dtypes.dtype:
    """The dtype that holds all of these numbers; of none, float32."""
    found = None
    for kind in {x.dtype if isinstance(x, Tensor) else _kind_of(x) for x in flat}:
        found = kind if found is None else _dtypes.promote(found, kind)
    return found or _dtypes.float32


def _kind_of(number) -> _dtypes.dtype:
    if isinstance(number, np.generic):
        return _dtypes.from_numpy_dtype(number.dtype)
    return _dtypes.of_scalar(number)


def _array_of(flat: list, shape, found: _dtypes.dtype, dtype) -> np.ndarray:
    plain = [x.item() if isinstance(x, Tensor) else x for x in flat]
    held = np.float64 if found.is_floating_point else found.numpy
    target = dtype or found
    if not found.is_floating_point and target in _dtypes.INTEGERS and plain:
        low, high = np.iinfo(target.numpy).min, np.iinfo(target.numpy).max
        bad = next((x for x in plain if not low <= x <= high), None)
        if bad is not None:
            raise RuntimeError(f"value cannot be converted to type {target.name} without overflow: {bad}")
    return np.array(plain, held).reshape(shape)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """A tensor as it is, or a copy of what is none."""
    if isinstance(data, np.ndarray):
        raise NotImplementedError(
            absent("torch.as_tensor of a numpy array", "it would share its memory; torch.tensor copies it")
        )
    if isinstance(data, Tensor):
        as_device(device)
        return data if dtype in (None, data.dtype) else copied(data, dtype)
    return tensor(data, dtype, device)


_C_NAMES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "int64": "int64_t",
    "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t",
}  # fmt: skip


def require_fits(number, dtype: _dtypes.dtype) -> None:
    """Refuse a Python number that is finite and too large for a dtype, and NaN for integers."""
    if dtype is _dtypes.bool_ or (dtype.is_floating_point and not math.isfinite(number)):
        return
    if dtype.is_floating_point:
        most = _dtypes.finfo(dtype).max if dtype.itemsize > 1 else math.inf
        low, high = -most, most
    else:
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min) or -int(info.max), int(info.max)  # -1 is 255 in uint8
    if not low <= number <= high:
        name = _C_NAMES.get(dtype.name, dtype.name)
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def as_stored(number, dtype: _dtypes.dtype) -> np.ndarray:
    """A Python number as a dtype stores it; of float8 there is 0 alone."""
    if dtype.is_floating_point and dtype.itemsize == 1 and number == 0:
        return np.zeros((), dtype.numpy)
    fraction = dtype.is_floating_point or isinstance(number, (float, np.floating))
    return _dtypes.rounded(np.asarray(number, np.float64 if fraction else np.int64), dtype)


FUNCTIONS = (tensor, as_tensor)
