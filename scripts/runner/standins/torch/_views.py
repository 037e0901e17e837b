"""Views of a tensor: the same memory under another shape. Nothing here copies, but where torch does."""

import math
import operator

from torch import _dtypes
from torch._copies import copied
from torch._storage import contiguous_strides
from torch._tensor import Tensor, require_inside, wrap


def sizes_of(size) -> tuple[int, ...]:
    """The shape that `f(2, 3)` and `f((2, 3))` both name."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    return tuple(operator.index(n) for n in size)


def _resolved(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """A shape with its -1 worked out."""
    known = math.prod(n for n in shape if n != -1)
    free = shape.count(-1)
    if free > 1:
        raise RuntimeError("only one dimension can be inferred")
    if free and (known == 0 or numel % known):
        if known == 0 and numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                "dimension size -1 can be any value and is ambiguous"
            )
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    shape = tuple(numel // known if n == -1 else n for n in shape) if free else shape
    if math.prod(shape) != numel:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return shape


def _view_strides(tensor: Tensor, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides under which the same elements have this shape; None if there are none."""
    if tensor.numel() == 0:
        return tensor.stride() if tuple(tensor.shape) == shape else contiguous_strides(shape)
    # Runs of dims that lie in memory like one dim: (size, stride).
    runs: list[list[int]] = []
    for n, step in zip(tensor.shape, tensor.stride(), strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * step:
            runs[-1] = [runs[-1][0] * n, step]
        else:
            runs.append([n, step])
    strides, left = [0] * len(shape), list(reversed(runs))
    size, step = left.pop(0) if left else (1, 1)
    for d in reversed(range(len(shape))):
        if size == 1 and left and shape[d] != 1:
            size, step = left.pop(0)
        if shape[d] == 1:
            strides[d] = step
        elif size % shape[d] == 0:
            strides[d] = step
            size, step = size // shape[d], step * shape[d]
        else:
            return None
    return tuple(strides)


def view(self: Tensor, *shape) -> Tensor:
    """The same elements under another shape, or the same bytes under another dtype."""
    if len(shape) == 1 and isinstance(shape[0], _dtypes.dtype):
        return _reinterpreted(self, shape[0])
    shape = _resolved(sizes_of(shape), self.numel())
    strides = _view_strides(self, shape)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return self.alias(shape, strides)


def _reinterpreted(self: Tensor, dtype: _dtypes.dtype) -> Tensor:
    old, size = self.dtype.itemsize, dtype.itemsize
    if old == size:
        return self.alias(self.shape, self.stride(), dtype=dtype)
    if not self.shape:
        types = f"{self.dtype} as {dtype} (different element sizes)"
        raise RuntimeError(f"self.dim() cannot be 0 to view {types}")
    small, large = min(old, size), max(old, size)
    ratio, inner = large // small, self.stride()[:-1]
    if self.stride(-1) != 1:
        raise RuntimeError(
            f"self.stride(-1) must be 1 to view {self.dtype} as {dtype} (different element sizes), "
            f"but got {self.stride(-1)}"
        )
    if old > size:
        strides = (*(step * ratio for step in inner), 1)
        shape = (*self.shape[:-1], self.shape[-1] * ratio)
        return self.alias(shape, strides, self.storage_offset() * ratio, dtype)
    if self.shape[-1] % ratio or self.storage_offset() % ratio or any(step % ratio for step in inner):
        raise RuntimeError(
            f"sizes, strides and offset must be divisible by {ratio} to view {self.dtype} as {dtype} "
            f"(different element sizes), but got {list(self.shape)}, {list(self.stride())}"
        )
    strides = (*(step // ratio for step in inner), 1)
    shape = (*self.shape[:-1], self.shape[-1] // ratio)
    return self.alias(shape, strides, self.storage_offset() // ratio, dtype)


def reshape(input, *shape) -> Tensor:
    """A view where there is one, else a copy."""
    shape = _resolved(sizes_of(shape), input.numel())
    strides = _view_strides(input, shape)
    if strides is not None:
        return input.alias(shape, strides)
    return view(copied(input, input.dtype, keep_order=False), shape)


def view_as(self, other: Tensor) -> Tensor:
    """The same elements in the shape of another tensor."""
    return view(self, other.shape)


def reshape_as(self, other: Tensor) -> Tensor:
    """The same elements in the shape of another tensor, copied if need be."""
    return reshape(self, other.shape)


def flatten(input, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dims start_dim to end_dim as one."""
    rank = len(input.shape)
    first, last = wrap(start_dim, rank), wrap(end_dim, rank)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if rank == 0:
        return reshape(input, 1)
    middle = math.prod(input.shape[first : last + 1])
    return reshape(input, (*input.shape[:first], middle, *input.shape[last + 1 :]))


def unflatten(input, dim: int, sizes) -> Tensor:
    """One dim as several."""
    dim = wrap(dim, len(input.shape))
    sizes = _resolved(tuple(sizes), input.shape[dim])
    return view(input, (*input.shape[:dim], *sizes, *input.shape[dim + 1 :]))


def permute(input, *dims) -> Tensor:
    """Dims in another order."""
    dims = [wrap(d, len(input.shape)) for d in sizes_of(dims)]
    if sorted(dims) != list(range(len(input.shape))):
        raise RuntimeError(f"permute(): wanted each of {len(input.shape)} dims once, got {dims}")
    return input.alias([input.shape[d] for d in dims], [input.stride()[d] for d in dims])


def transpose(input, dim0: int, dim1: int) -> Tensor:
    """Two dims swapped."""
    rank = len(input.shape)
    order = list(range(rank))
    a, b = wrap(dim0, rank), wrap(dim1, rank)
    if rank:
        order[a], order[b] = order[b], order[a]
    return permute(input, order)


def t(input) -> Tensor:
    """A matrix transposed; a vector is itself."""
    if len(input.shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(input.shape)}D")
    return transpose(input, 0, 1) if len(input.shape) == 2 else input


def movedim(input, source: int, destination: int) -> Tensor:
    """One dim moved to another place."""
    order = list(range(len(input.shape)))
    order.insert(wrap(destination, len(order)), order.pop(wrap(source, len(order))))
    return permute(input, order)


def squeeze(input, dim: int | None = None) -> Tensor:
    """Without its dims of size 1, or without one of them."""
    rank = len(input.shape)
    chosen = range(rank) if dim is None else [wrap(dim, rank)]
    keep = [d for d in range(rank) if d not in chosen or input.shape[d] != 1]
    return input.alias([input.shape[d] for d in keep], [input.stride()[d] for d in keep])


def unsqueeze(input, dim: int) -> Tensor:
    """With one more dim of size 1."""
    dim = wrap(dim, len(input.shape) + 1)
    step = input.shape[dim] * input.stride()[dim] if dim < len(input.shape) else 1
    shape, strides = list(input.shape), list(input.stride())
    return input.alias([*shape[:dim], 1, *shape[dim:]], [*strides[:dim], step, *strides[dim:]])


def expand(self, *sizes) -> Tensor:
    """Dims of size 1 repeated without a copy: their stride is 0. -1 leaves a dim as it is."""
    sizes = sizes_of(sizes)
    extra = len(sizes) - len(self.shape)
    if extra < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(sizes)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(self.shape)})"
        )
    shape, strides = [], []
    for d, wanted in enumerate(sizes):
        have, step = (1, 0) if d < extra else (self.shape[d - extra], self.stride()[d - extra])
        if wanted == -1 and d >= extra:
            wanted = have
        if wanted < 0 or (have != wanted and have != 1):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at "
                f"non-singleton dimension {d}.  Target sizes: {list(sizes)}.  "
                f"Tensor sizes: {list(self.shape)}"
            )
        shape.append(wanted)
        strides.append(step if have == wanted and d >= extra else 0)
    return self.alias(shape, strides)


def expand_as(self, other: Tensor) -> Tensor:
    """Expanded to the shape of another tensor."""
    return expand(self, other.shape)


def as_strided(input, size, stride, storage_offset: int | None = None) -> Tensor:
    """Any view of its storage that stays inside it."""
    offset = input.storage_offset() if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if input.device.type != "meta":
        require_inside(input.untyped_storage(), input.dtype, size, stride, offset)
    return input.alias(size, stride, offset)


FUNCTIONS = (
    reshape, flatten, unflatten, permute, transpose, t, movedim, squeeze, unsqueeze, as_strided,
)  # fmt: skip
METHODS = (*FUNCTIONS, view, view_as, reshape_as, expand, expand_as)
