"""New tensors: memory as it is found, or filled with what numpy computed."""

import numpy as np

from torch import _dtypes
from torch._storage import CPU, META, Size, allocate, contiguous_strides, device
from torch._tensor import Tensor


def is_meta(*operands) -> bool:
    """Whether one of them is a tensor without memory: then so is the result."""
    return any(isinstance(x, Tensor) and x.device.type == "meta" for x in operands)


def uninitialised(shape, dtype, device_=CPU, written: bool = False) -> Tensor:
    """A new contiguous tensor."""
    shape = Size(shape)
    if any(n < 0 for n in shape):
        bad = min(shape)
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: {list(shape)}")
    if device_.type == "meta":
        return Tensor(None, dtype, shape, contiguous_strides(shape), device=META)
    storage = allocate(shape.numel() * dtype.itemsize, written)
    return Tensor(storage, dtype, shape, contiguous_strides(shape), device=device_)


def new(array: np.ndarray, dtype=None, meta: bool = False) -> Tensor:
    """A new tensor with these numbers; the array is in the storage of `dtype`, or says which it is."""
    dtype = dtype or _dtypes.from_numpy_dtype(array.dtype)
    made = uninitialised(array.shape, dtype, META if meta else CPU, written=True)
    if not meta and array.size:
        made.array[...] = array
    return made


def as_device(found) -> device:
    """The device of an argument; None is the CPU."""
    return CPU if found is None else device(found)
