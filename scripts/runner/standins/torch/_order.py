"""What comes first: extremes with their places, sorts, the places of what is not 0."""

from collections import namedtuple

import numpy as np

from torch import _math
from torch._dtypes import int64
from torch._elementwise import made_of, operand
from torch._new import new
from torch._reduce import extreme, made
from torch._tensor import Tensor, wrap
from torch._views import t


def _pair(name: str):
    def show(self) -> str:
        return f"torch.return_types.{name}(\nvalues={self.values!r},\nindices={self.indices!r})"

    return type(name, (namedtuple(name, ("values", "indices")),), {"__repr__": show, "__slots__": ()})


_MAX, _MIN, _SORT, _TOPK = map(_pair, ("max", "min", "sort", "topk"))


def _picked(name: str, kind, function, where, pairwise):
    def call(input, dim=None, keepdim=False, other=None):
        """The extreme of all; with dim, (values, indices); of two tensors, element by element."""
        if isinstance(dim, Tensor) or other is not None:
            return pairwise(input, dim if other is None else other)
        if dim is None:
            return extreme(name, function, input, None, False)
        values = extreme(name, function, input, dim, keepdim)
        return kind(values, where(input, dim, keepdim))

    return call


def _position(name: str, function):
    def call(input, dim=None, keepdim=False):
        """The index of the first extreme; in the flattened tensor without dim."""
        axis = None if dim is None else wrap(dim, len(input.shape))
        if input.numel() == 0 and (axis is None or input.shape[axis] == 0):
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        array = operand(input, input.dtype, name)
        if axis is None or not input.shape:
            return made(function(array.reshape(-1)), int64, input)
        return made(function(array, axis=axis, keepdims=keepdim), int64, input)

    return call


def nonzero(input, as_tuple=False):
    """The indices of what is not 0, [count, dims]; as_tuple: a tensor a dim."""
    places = np.nonzero(np.atleast_1d(operand(input, input.dtype, "nonzero")))
    places = places[: len(input.shape)] if input.shape or as_tuple else ()
    if as_tuple:
        return tuple(new(axis.astype(np.int64)) for axis in places)
    count = int(np.count_nonzero(input.array))
    found = np.stack(places) if places else np.empty((0, count), np.int64)
    return t(new(found.astype(np.int64)))  # a coordinate after the other in memory


def _order(input: Tensor, dim: int, descending: bool) -> np.ndarray:
    """Indices of a stable sort; NaN is the largest."""
    array = operand(input, input.dtype, "sort")
    if not descending:
        return np.argsort(array, axis=dim, kind="stable")
    flipped = np.flip(np.argsort(np.flip(array, dim), axis=dim, kind="stable"), dim)
    return array.shape[dim] - 1 - flipped


def sort(input, dim: int = -1, descending=False, stable=False):
    """(values, indices) of a dim in order; equal ones keep theirs."""
    if not input.shape:
        return _SORT(input.clone(), new(np.zeros((), np.int64)))
    dim = wrap(dim, len(input.shape))
    order = _order(input, dim, descending)
    return _SORT(
        made_of(np.take_along_axis(input.array, order, dim), input.dtype, input), made_of(order, int64, input)
    )


def argsort(input, dim: int = -1, descending=False, stable=False) -> Tensor:
    """The indices that sort a dim."""
    return sort(input, dim, descending, stable).indices


def topk(input, k: int, dim: int = -1, largest=True, sorted=True):
    """(values, indices) of the k largest of a dim, in order."""
    dim = wrap(dim, len(input.shape))
    if not 0 <= k <= input.shape[dim]:
        raise RuntimeError("selected index k out of range")
    values, indices = sort(input, dim, largest)
    cut = (*[slice(None)] * dim, slice(0, k))
    return _TOPK(values[cut].clone(), indices[cut].clone())


argmax, argmin = _position("argmax", np.argmax), _position("argmin", np.argmin)
FUNCTIONS = {
    "argmax": argmax, "argmin": argmin, "nonzero": nonzero, "sort": sort, "argsort": argsort, "topk": topk,
    "max": _picked("max", _MAX, np.max, argmax, _math.FUNCTIONS["maximum"]),
    "min": _picked("min", _MIN, np.min, argmin, _math.FUNCTIONS["minimum"]),
}  # fmt: skip
