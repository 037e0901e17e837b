"""How operations on elements work: promotion, broadcasting, layout of the result, writes in place."""

import numpy as np

from torch import _dtypes
from torch._copies import refuse_overlap, refuse_partial_overlap, store
from torch._dtypes import float16, float32
from torch._new import is_meta, uninitialised
from torch._storage import CPU, META, dense_strides, is_dense
from torch._tensor import Tensor


def spoken(dtype: _dtypes.dtype) -> str:
    """What torch's messages call a dtype."""
    return _SPOKEN.get(dtype.name, dtype.name)


_SPOKEN = {
    "float16": "Half", "float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "bfloat16": "BFloat16",
}  # fmt: skip


def kinds(*operands):
    """(dtype, rank) of each operand, for `_dtypes.combine`."""
    return [
        (x.dtype, len(x.shape)) if isinstance(x, Tensor) else (_dtypes.of_scalar(x), None) for x in operands
    ]


def result_type(tensor, other) -> _dtypes.dtype:
    """The dtype of an operation on both."""
    return _dtypes.combine(kinds(tensor, other))


def held(dtype: _dtypes.dtype) -> np.dtype:
    """What numpy computes a dtype in."""
    return np.dtype(np.float32) if dtype is float16 else dtype.numpy


def operand(x, dtype: _dtypes.dtype, what: str, exact: bool = True) -> np.ndarray:
    """A tensor or number, converted to what `dtype` is computed in.

    exact: a number, or a tensor without dims, beside float16 keeps the precision of float32.
    """
    if isinstance(x, Tensor):
        _dtypes.require_computed(x.dtype, what)
        found = x.array
    else:
        found = np.asarray(x)
    if not exact and not found.shape:
        found = found.astype(dtype.numpy)
    return found.astype(held(dtype), copy=False)


def require_shapes(*operands) -> None:
    """Refuse shapes that do not broadcast, in torch's words."""
    shapes = [x.shape for x in operands if isinstance(x, Tensor)]
    first = shapes[0] if shapes else ()
    for other in shapes[1:]:
        if first == other:
            continue
        rank = max(len(first), len(other))
        for back in range(1, min(len(first), len(other)) + 1):
            a, b = first[-back], other[-back]
            if a != b and 1 not in (a, b):
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton "
                    f"dimension {rank - back}"
                )
        first = np.broadcast_shapes(first, other)


def made_of(array: np.ndarray, dtype: _dtypes.dtype, *operands) -> Tensor:
    """The result of an operation: in the order in memory of its operands, as torch lays it out."""
    array = np.asarray(array)
    tensors = [x for x in operands if isinstance(x, Tensor)]
    meta = is_meta(*tensors)
    made = uninitialised(array.shape, dtype, META if meta else CPU, written=True)
    if not all(x.is_contiguous() and len(x.shape) in (0, array.ndim) for x in tensors):
        made = made.alias(array.shape, _result_strides(array.shape, tensors))
    if not meta and array.size:
        made.array[...] = _dtypes.rounded(array, dtype)
    return made


def _result_strides(shape, tensors) -> tuple[int, ...]:
    alike = len({(tuple(x.shape), x.stride()) for x in tensors}) == 1 and tensors[0].shape == shape
    if alike and is_dense(shape, tensors[0].stride()):
        return tensors[0].stride()
    known = []
    for x in tensors:
        front = len(shape) - len(x.shape)
        sizes = zip(x.shape, x.stride(), shape[front:], strict=True)
        known.append((*[0] * front, *(0 if n == 1 != whole else step for n, step, whole in sizes)))
    return dense_strides(shape, *known)


_EXACT_NUMBERS = ("add", "sub", "mul", "div")


def binary(name: str, function, input, other, *, into=None, floats: bool = False) -> Tensor:
    """function(input, other); into: the dtype of the result, if it is not that of the operands."""
    require_numbers(name, input, other)
    dtype = _dtypes.require_computed(result_type(input, other), name)
    if floats and not dtype.is_floating_point:
        dtype = float32
    require_shapes(input, other)
    exact = name in _EXACT_NUMBERS
    try:
        array = function(operand(input, dtype, name, exact), operand(other, dtype, name, exact))
    except TypeError:  # of numpy: no loop for this type
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{spoken(dtype)}'") from None
    return made_of(array, into or dtype, input, other)


def require_numbers(name: str, *operands) -> None:
    """Refuse what is neither a tensor nor a number."""
    for x in operands:
        if not isinstance(x, (Tensor, int, float, np.generic)):
            raise TypeError(f"{name}(): argument must be a Tensor or a number, not {type(x).__name__}")


def unary(name: str, function, input, *, into=None, floats: bool = False) -> Tensor:
    """function(input); floats: integers become float32 first."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    dtype = _dtypes.require_computed(input.dtype, name)
    if floats and not dtype.is_floating_point:
        dtype = float32
    try:
        array = function(operand(input, dtype, name))
    except TypeError:  # of numpy: no loop for this type
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{spoken(dtype)}'") from None
    return made_of(array, into or dtype, input)


def in_place(name: str, function):
    """The function that writes its result into its first argument."""

    def call(self, *args, **kwargs):
        found = function(self, *args, **kwargs)
        refuse_overlap(self)
        for x in args:
            if isinstance(x, Tensor):
                refuse_partial_overlap(self, x)
        if not _dtypes.can_cast(found.dtype, self.dtype):
            types = spoken(found.dtype), spoken(self.dtype)
            raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*types))
        if found.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(found.shape)}"
            )
        store(self, found)
        return self

    call.__doc__ = f"`{name}`, written into this tensor."
    return call
