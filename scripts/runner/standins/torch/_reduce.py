"""Reductions. float16 is added up in float32 and rounded once, integers and bools in int64."""

import math

import numpy as np

from torch import _dtypes
from torch._dtypes import bool_, float32, int64
from torch._elementwise import held, operand, spoken
from torch._names import absent
from torch._new import is_meta, new
from torch._tensor import Tensor, wrap


def made(array, dtype: _dtypes.dtype, input: Tensor) -> Tensor:
    """A result, row-major whatever the layout of the input, as in torch."""
    return new(_dtypes.rounded(np.asarray(array), dtype), dtype, is_meta(input))


def _axes(input: Tensor, dim):
    """The axes of a reduction for numpy; None or () are all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    if isinstance(dim, (tuple, list)):
        axes = tuple(wrap(d, len(input.shape)) for d in dim)
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        return axes if input.shape else None
    axis = wrap(dim, len(input.shape))
    return (axis,) if input.shape else None


def _reduced(name: str, function, input, dim, keepdim: bool, dtype=None, into=None) -> Tensor:
    dtype = _dtypes.require_computed(dtype or input.dtype, name)
    if not isinstance(keepdim, bool):
        raise TypeError(f"{name}(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")
    array = function(operand(input, dtype, name), axis=_axes(input, dim), keepdims=keepdim)
    return made(array, into or dtype, input)


def _summed(dtype, input: Tensor) -> _dtypes.dtype:
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point else int64


def sum_(input, dim=None, keepdim=False, dtype=None) -> Tensor:
    """The sum; of integers and bools in int64."""
    dtype = _summed(dtype, input)
    return _reduced("sum", lambda a, **k: np.sum(a, dtype=held(dtype), **k), input, dim, keepdim, dtype)


def prod(input, dim=None, keepdim=False, dtype=None) -> Tensor:
    """The product; of integers and bools in int64."""
    dtype = _summed(dtype, input)
    return _reduced("prod", lambda a, **k: np.prod(a, dtype=held(dtype), **k), input, dim, keepdim, dtype)


def mean(input, dim=None, keepdim=False, dtype=None) -> Tensor:
    """The mean, of floating-point numbers alone."""
    dtype = dtype or input.dtype
    if not dtype.is_floating_point:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {spoken(dtype)}"
        )
    return _reduced("mean", np.mean, input, dim, keepdim, dtype)


def _correction(dim, unbiased, correction):
    """(dim, what is taken off the count); a bool in the place of dim is `unbiased`."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return dim, correction if unbiased is None else int(unbiased)


def var(input, dim=None, unbiased=None, keepdim=False, correction=1) -> Tensor:
    """The variance, over n - correction."""
    dim, over = _correction(dim, unbiased, correction)
    return _reduced("var", lambda a, **k: np.var(a, ddof=over, **k), input, dim, keepdim)


def std(input, dim=None, unbiased=None, keepdim=False, correction=1) -> Tensor:
    """The standard deviation, over n - correction."""
    dim, over = _correction(dim, unbiased, correction)
    return _reduced("std", lambda a, **k: np.std(a, ddof=over, **k), input, dim, keepdim)


def norm(input, p=2, dim=None, keepdim=False) -> Tensor:
    """The Euclidean norm."""
    if p not in (2, 2.0, "fro"):
        raise NotImplementedError(absent(f"norm with p={p!r}"))
    return _reduced("norm", lambda a, **k: np.sqrt(np.sum(a * a, **k)), input, dim, keepdim)


def _truth(input: Tensor) -> _dtypes.dtype:
    return input.dtype if input.dtype is _dtypes.uint8 else bool_  # as torch has it


def all_(input, dim=None, keepdim=False) -> Tensor:
    """Whether all hold."""
    return _reduced("all", np.all, input, dim, keepdim, into=_truth(input))


def any_(input, dim=None, keepdim=False) -> Tensor:
    """Whether one holds."""
    return _reduced("any", np.any, input, dim, keepdim, into=_truth(input))


def count_nonzero(input, dim=None) -> Tensor:
    """How many are not 0."""
    array = np.count_nonzero(operand(input, input.dtype, "count_nonzero"), axis=_axes(input, dim))
    return made(array, int64, input)


def extreme(name: str, function, input, dim, keepdim: bool) -> Tensor:
    """The largest or the smallest; of nothing there is none."""
    if input.numel() == 0 and (dim is None or dim == ()):
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
            "dim with the 'dim' argument."
        )
    for axis in _axes(input, dim) or ():
        if input.shape[axis] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    return _reduced(name, function, input, dim, keepdim)


def amax(input, dim=(), keepdim=False) -> Tensor:
    """The largest."""
    return extreme("amax", np.max, input, dim, keepdim)


def amin(input, dim=(), keepdim=False) -> Tensor:
    """The smallest."""
    return extreme("amin", np.min, input, dim, keepdim)


def cumsum(input, dim: int, dtype=None) -> Tensor:
    """Running sums; of integers and bools in int64."""
    dtype = _summed(dtype, input)
    array = np.cumsum(operand(input, dtype, "cumsum"), axis=wrap(dim, len(input.shape)), dtype=held(dtype))
    return made(array.reshape(input.shape), dtype, input)


def cumprod(input, dim: int, dtype=None) -> Tensor:
    """Running products; of integers and bools in int64."""
    dtype = _summed(dtype, input)
    array = np.cumprod(operand(input, dtype, "cumprod"), axis=wrap(dim, len(input.shape)), dtype=held(dtype))
    return made(array.reshape(input.shape), dtype, input)


def _floating(name: str, input: Tensor, dtype) -> _dtypes.dtype:
    dtype = _dtypes.require_computed(dtype or input.dtype, name)
    if not dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}_lastdim_kernel_impl\" not implemented for '{spoken(dtype)}'")
    return dtype


def softmax(input, dim: int, dtype=None) -> Tensor:
    """exp(x) over the sum of all exp(x) of a dim."""
    dtype = _floating("softmax", input, dtype)
    if input.numel() == 0:
        return made(operand(input, dtype, "softmax"), dtype, input)
    axis = wrap(dim, len(input.shape)) if input.shape else None
    array = operand(input, dtype, "softmax")
    weights = np.exp(array - np.max(array, axis=axis, keepdims=True))
    return made(weights / np.sum(weights, axis=axis, keepdims=True), dtype, input)


def log_softmax(input, dim: int, dtype=None) -> Tensor:
    """The logarithm of softmax."""
    dtype = _floating("log_softmax", input, dtype)
    if input.numel() == 0:
        return made(operand(input, dtype, "log_softmax"), dtype, input)
    axis = wrap(dim, len(input.shape)) if input.shape else None
    array = operand(input, dtype, "log_softmax")
    shifted = array - np.max(array, axis=axis, keepdims=True)
    return made(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)), dtype, input)


def logsumexp(input, dim, keepdim=False) -> Tensor:
    """log(sum(exp(x))) of a dim; of nothing, or of -inf alone, -inf."""
    dtype = input.dtype if input.dtype.is_floating_point else float32
    array, axes = operand(input, dtype, "logsumexp"), _axes(input, dim)
    top = np.max(array, axis=axes, keepdims=True, initial=-math.inf).astype(array.dtype)
    safe = np.where(np.isinf(top), array.dtype.type(0), top)
    total = np.log(np.sum(np.exp(array - safe), axis=axes, keepdims=True)) + safe
    shape = total.shape if keepdim else np.empty(input.shape, bool).sum(axis=axes).shape
    return made(total.reshape(shape), dtype, input)


FUNCTIONS = {
    "sum": sum_, "prod": prod, "mean": mean, "var": var, "std": std, "norm": norm, "all": all_, "any": any_,
    "count_nonzero": count_nonzero, "amax": amax, "amin": amin, "cumsum": cumsum, "cumprod": cumprod,
    "softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp,
}  # fmt: skip
