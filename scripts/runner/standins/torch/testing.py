"""torch.testing.assert_close, with PyTorch's tolerances and its words."""

import numpy as np

from torch._dtypes import float32, float64, int64, promote
from torch._elementwise import operand
from torch._names import absent
from torch._new import new
from torch._tensor import Tensor

_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True, check_device=True,
    check_stride=False, allow_subclasses=True, msg=None,
) -> None:  # fmt: skip
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere."""
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or unspecified: {rtol}, {atol}")
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for a, b in zip(actual, expected, strict=True):
            assert_close(
                a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype,
                check_stride=check_stride, msg=msg,
            )  # fmt: skip
        return
    actual, expected = (x if isinstance(x, Tensor) else _scalar(x) for x in (actual, expected))
    message = _attributes(actual, expected, check_dtype, check_stride) or _values(
        actual, expected, rtol, atol, equal_nan
    )
    if message:
        raise AssertionError(msg(message) if callable(msg) else msg or message)


def _scalar(x) -> Tensor:
    return new(np.asarray(x, (float64 if isinstance(x, float) else int64).numpy))


def _attributes(actual: Tensor, expected: Tensor, check_dtype: bool, check_stride: bool) -> str | None:
    for name, wanted in (("shape", True), ("dtype", check_dtype), ("stride()", check_stride)):
        a, b = (t.stride() if name == "stride()" else getattr(t, name) for t in (actual, expected))
        if wanted and a != b:
            return f"The values for attribute '{name}' do not match: {a} != {b}."
    return None


def _values(actual: Tensor, expected: Tensor, rtol, atol, equal_nan: bool) -> str | None:
    if rtol is None:
        pairs = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*pairs, strict=True))
    dtype = promote(actual.dtype, expected.dtype)
    # Single numbers are compared as Python's are, elements in their own type.
    kind = dtype if actual.shape or not dtype.is_floating_point else float64
    a, b = (operand(t, dtype, "assert_close").astype(kind.numpy) for t in (actual, expected))
    kind = kind.numpy if kind.is_floating_point else (float32 if actual.shape else float64).numpy
    with np.errstate(all="ignore"):
        error = np.abs(a.astype(np.int8) - b if dtype.name == "bool" else a - b)
        close = (a == b) | (np.isfinite(error) & (error <= atol + np.float64(rtol) * np.abs(b)))
        if equal_nan:
            close = close | (np.isnan(a) & np.isnan(b))
        if np.all(close):
            return None
        relative = (error / np.abs(b)).astype(kind)
    error, relative = (np.where(close, x.dtype.type(0), x) for x in (error, relative))
    names = ("Absolute", "Relative") if not actual.shape else ("Greatest absolute", "Greatest relative")
    what = "Tensor-likes" if actual.shape else "Scalars"
    rows = [f"{what} are not {'close' if rtol or atol else 'equal'}!", ""]
    if actual.shape:
        count = int(np.count_nonzero(~close))
        rows.append(f"Mismatched elements: {count} / {close.size} ({100 * count / close.size:.1f}%)")
    else:
        rows.append(f"Expected {expected.item()} but got {actual.item()}.")
    for name, found, limit in zip(names, (error, relative), (atol, rtol), strict=True):
        at = np.unravel_index(int(np.argmax(found)), found.shape)
        where = f" at index {tuple(int(i) for i in at)}" if actual.shape else ""
        allowed = f" (up to {limit} allowed)" if rtol or atol else ""
        rows.append(f"{name} difference: {found[at].item()}{where}{allowed}")
    return "\n".join(rows)


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(absent(f"torch.testing.{name}"))
