"""A local variable of a kernel as plain data: exact numbers, the corner of a large tile, its extremes.

    {"dtype": "fp32", "shape": [16, 64], "shown": [16, 16], "data": [[...], ...],
     "min": -0.5, "max": 3.0, "nan": 0}

`data` has one list an axis, nested, and a bare number for a scalar. A float is the very number of the
kernel's dtype: rounding it to the dtype changes nothing. NaN and the infinities are the strings "nan", "inf",
"-inf"; integers past 2**53 are decimal strings: JSON has none of them. A pointer's numbers are elements, from
the first of the tensor that `base` names. What is no number is {"text": ...}; a tuple {"items": [...]}.
"""

import math
from collections.abc import Mapping

import numpy as np
import triton.language as tl

# The most that is shown of an axis, by the number of axes: a whole [16, 16] tile, 64 numbers of a row.
_SHOWN = {1: (64,), 2: (16, 16)}
_SHOWN_MORE = (4, 8, 8)  # three axes and more: the last three; one of each before them
_EXACT = 2**53  # JSON's numbers are doubles


def encode(value: object, bases: Mapping[str, tuple[int, int]], name: str = "") -> dict | None:
    """A value as data, None for what no reader wants to see (functions, modules).

    bases: name -> (address of the first element, bytes an element) of each tensor of the launch. name: the
    variable's own: a pointer named like a tensor counts from that one, any other from the nearest.
    """
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, tl.tensor):
        return _encode_tensor(value, bases, name)
    if isinstance(value, bool | int | float):
        return {
            "dtype": type(value).__name__,
            "shape": [],
            "shown": [],
            "data": _number(value),
            "constant": True,
        }
    if isinstance(value, tuple | tl.tuple):
        return {"items": [item for item in (encode(v, bases) for v in value) if item is not None]}
    if value is None or isinstance(value, str | tl.dtype):
        return {"text": str(value)}
    return None


def _encode_tensor(value: tl.tensor, bases: Mapping[str, tuple[int, int]], name: str) -> dict:
    shape = [int(size) for size in value.shape] if value.type.is_block() else []
    scalar = value.type.scalar
    result = {"dtype": str(scalar), "shape": shape}
    data = np.asarray(value.handle.data)
    if isinstance(scalar, tl.pointer_type):
        data, result["base"] = _elements(data, bases, name)
        result["dtype"] = f"pointer<{scalar.element_ty}>"
    else:
        data = _numbers(data, scalar)
    data = data.reshape(shape) if data.size == math.prod(shape) else np.broadcast_to(data, shape)
    shown = tuple(map(min, shape, _shown(len(shape))))
    result["shown"] = list(shown)
    result["data"] = _nested(data[tuple(slice(size) for size in shown)])
    if shape and data.size:
        result.update(_range(data))
    return result


def _shown(axes: int) -> tuple[int, ...]:
    return _SHOWN.get(axes, (1,) * (axes - 3) + _SHOWN_MORE[-axes:] if axes else ())


def _numbers(data: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    """What the interpreter's storage means: it keeps bf16 and fp8 as raw bits."""
    if dtype == tl.bfloat16:
        return (data.astype(np.uint32) << 16).view(np.float32)
    if dtype == tl.float8e5:
        return (data.astype(np.uint16) << 8).view(np.float16)
    if dtype == tl.float8e4nv:
        return _E4M3[data]
    return data.astype(bool) if dtype == tl.int1 else data


def _e4m3() -> np.ndarray:
    """The number of each byte: one sign bit, four of the exponent, three of the fraction; 0x7f is NaN."""
    bits = np.arange(128)
    exponent, fraction = bits >> 3, (bits & 7) / 8
    values = np.where(exponent > 0, (1 + fraction) * 2.0 ** (exponent - 7), fraction * 2.0**-6)
    values[127] = np.nan
    return np.concatenate([values, -values]).astype(np.float32)


_E4M3 = _e4m3()


def _elements(address: np.ndarray, bases: Mapping[str, tuple[int, int]], name: str) -> tuple[np.ndarray, str]:
    """Addresses as elements from the first of their tensor, and that tensor's name."""
    at = address.astype(np.int64)
    if not bases:
        return at, ""
    first = int(at.flat[0])
    base = name if name in bases else min(bases, key=lambda tensor: abs(bases[tensor][0] - first))
    start, itemsize = bases[base]
    return (at - start) // itemsize, base


def _range(data: np.ndarray) -> dict:
    if data.dtype == bool:
        return {"true": int(data.sum())}
    wrong = np.isnan(data) if data.dtype.kind == "f" else np.zeros(1, bool)
    kept = data[~wrong] if wrong.any() and not wrong.all() else data
    return {"min": _number(kept.min().item()), "max": _number(kept.max().item()), "nan": int(wrong.sum())}


def _nested(data: np.ndarray) -> object:
    if data.dtype.kind == "f" and np.isfinite(data).all():
        return data.tolist()
    return _finite(data.tolist())


def _finite(values: object) -> object:
    return [_finite(value) for value in values] if isinstance(values, list) else _number(values)


def _number(value: bool | int | float) -> bool | int | float | str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    return value
