"""Indexing as in torch: ints, slices and None give views, tensors and lists of indices give copies."""

import numpy as np

from torch import _dtypes
from torch._copies import refuse_overlap, refuse_partial_overlap, store
from torch._data import as_stored, require_fits
from torch._data import tensor as make_tensor
from torch._new import new, uninitialised
from torch._parts import select
from torch._storage import dense_strides
from torch._tensor import Tensor, wrap
from torch._views import unsqueeze


def getitem(self: Tensor, index) -> Tensor:
    """self[index]"""
    view, chosen = _basic(self, index)
    if chosen is None:
        return view
    found = view.array[chosen]
    made = uninitialised(found.shape, view.dtype, view.device, written=True)
    made = made.alias(found.shape, dense_strides(found.shape, *_layout(view, chosen)))
    if view.device.type == "meta":
        return made
    if found.size:
        made.array[...] = found
    flags = view.flags()
    if flags is not None and made.numel():  # gathered from memory that is not written, it is not either
        known = flags[chosen]
        if not known.all():
            made.untyped_storage().buffer.written = np.zeros(made.nbytes, bool)
            made.flags()[...] = known
    return made


def _layout(view: Tensor, chosen) -> list[tuple[int, ...]]:
    """Strides of the source and of each index along the dims of the result: what its layout follows."""
    arrays = [item for item in chosen if not isinstance(item, slice)]
    rank = max(len(_steps(item)) for item in arrays)
    kept, places, d = [], set(), 0
    for item in (*chosen, *[slice(None)] * len(view.shape)):
        if d == len(view.shape):
            break
        if isinstance(item, slice):
            kept.append(view.stride()[d])
            d += 1
        else:
            places.add(len(kept))
            d += item.ndim if item.dtype == bool else 1
    at = places.pop() if len(places) == 1 else 0  # the indices' dims: where they adjoin, else in front
    known = [(*kept[:at], *[0] * rank, *kept[at:])]
    for item in arrays:
        steps = _steps(item)
        known.append((*[0] * (at + rank - len(steps)), *steps, *[0] * len(kept[at:])))
    return known


def _steps(item: np.ndarray) -> tuple[int, ...]:
    """Strides of an index in elements, 0 where it is broadcast; a mask is a list of the places in it."""
    if item.dtype == bool:
        return (1,)
    sizes = zip(item.shape, item.strides, strict=True)
    return tuple(0 if n == 1 else step // item.itemsize for n, step in sizes)


def setitem(self: Tensor, index, value) -> None:
    """self[index] = value"""
    view, chosen = _basic(self, index)
    refuse_overlap(view)
    if chosen is None and isinstance(value, Tensor):
        _require_shape(value.shape, view.shape)
        refuse_partial_overlap(view, value)
        trimmed = value if len(value.shape) <= len(view.shape) else _without_ones(value, len(view.shape))
        store(view, trimmed)
        return
    if isinstance(value, Tensor):
        wide = _dtypes.widened(value.array, value.dtype, "a conversion")
        value = value.array if value.dtype is view.dtype else _dtypes.rounded(wide, view.dtype)
    elif isinstance(value, (int, float, np.generic)):
        short = view.dtype.is_floating_point and view.dtype.itemsize == 2  # those go by way of float32
        require_fits(value, _dtypes.float32 if short else view.dtype)
        value = as_stored(value, view.dtype)
    else:
        raise TypeError(f"can't assign a {type(value).__name__} to a tensor of {view.dtype}")
    if chosen is None:
        if view.numel():
            view.array[...] = value
            view.mark_written()
        return
    _require_shape(value.shape, np.broadcast_to(np.int8(0), view.shape)[chosen].shape)
    if view.numel():
        view.array[chosen] = value
        view.mark_written(chosen)


def _require_shape(source, target) -> None:
    """Refuse a value that does not broadcast to where it goes; leading dims of size 1 are ignored."""
    source, target = list(source), list(target)
    while len(source) > len(target) and source[0] == 1:
        source.pop(0)
    fits = len(source) <= len(target) and all(
        a in (1, b) for a, b in zip(reversed(source), reversed(target), strict=False)
    )
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {source} cannot be broadcast to indexing result of "
            f"shape {target}"
        )


def _without_ones(value: Tensor, rank: int) -> Tensor:
    extra = len(value.shape) - rank
    return value.alias(value.shape[extra:], value.stride()[extra:])


def _basic(self: Tensor, index):
    """(the view that ints, slices and None choose, the rest of the index for numpy or None)."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_as_item(item) for item in items]
    taken = sum(_dims_of(item) for item in items)
    if taken > len(self.shape):
        raise IndexError(f"too many indices for tensor of dimension {len(self.shape)}")
    if Ellipsis not in [item for item in items if not isinstance(item, Tensor)]:
        items.append(Ellipsis)
    view, chosen, d = self, [], 0
    for item in items:
        if isinstance(item, Tensor):
            chosen += [slice(None)] * (d - _taken(chosen)) + [item]
            d += _dims_of(item)
            if item.dtype is _dtypes.bool_ and not item.shape:
                view = unsqueeze(view, d)  # a bool without dims is a new dim of size 0 or 1
                chosen[-1] = _view_of_bool(item)
                d += 1
        elif item is Ellipsis:
            d += len(self.shape) - taken
        elif item is None:
            view, d = unsqueeze(view, d), d + 1
        elif isinstance(item, slice):
            view, d = _sliced(view, d, item), d + 1
        else:
            view = select(view, d, item)
    if not chosen:
        return view, None
    return view, tuple(map(_index_array, chosen))


def _view_of_bool(item: Tensor) -> Tensor:
    return item.alias((1,), (1,))


def _taken(chosen: list) -> int:
    return sum(1 if isinstance(item, slice) else _dims_of(item) for item in chosen)


def _dims_of(item) -> int:
    """Dims that one item of an index uses up."""
    if item is None or item is Ellipsis:
        return 0
    return len(item.shape) if isinstance(item, Tensor) and item.dtype is _dtypes.bool_ else 1


def _as_item(item):
    """One item of an index: lists and numpy arrays as tensors, numbers as ints."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        return make_tensor(bool(item))
    if isinstance(item, (list, range, np.ndarray)):
        item = make_tensor(list(item) if isinstance(item, range) else item)
        return item if item.numel() else make_tensor([], dtype=_dtypes.int64)
    if isinstance(item, Tensor):
        if item.dtype.is_floating_point:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if item.dtype is _dtypes.uint8:  # a mask, as it was before torch had bools
            return item.to(_dtypes.bool_)
        if not item.shape and item.dtype is not _dtypes.bool_:
            return item.item()
        return item
    try:
        return item.__index__()
    except (AttributeError, TypeError):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
            f"indices (got {type(item).__name__})"
        ) from None


def _sliced(view: Tensor, d: int, item: slice) -> Tensor:
    if item.step is not None and item.step.__index__() <= 0:
        raise ValueError("step must be greater than zero")
    bounds = (None if x is None else x.__index__() for x in (item.start, item.stop, item.step))
    start, stop, step = slice(*bounds).indices(view.shape[d])
    shape, strides = list(view.shape), list(view.stride())
    shape[d] = len(range(start, stop, step))
    offset = view.storage_offset() + (start * strides[d] if view.numel() else 0)
    strides[d] *= step
    return view.alias(shape, strides, offset)


def _index_array(item):
    """One item of an index as numpy takes it."""
    if isinstance(item, slice):
        return item
    return item.array if item.dtype is _dtypes.bool_ else item.array.astype(np.intp)


def index_select(input, dim: int, index: Tensor) -> Tensor:
    """Rows of a dim, as a copy."""
    dim = wrap(dim, len(input.shape))
    return getitem(input, (*[slice(None)] * dim, index.reshape(-1)))


def masked_select(input, mask: Tensor) -> Tensor:
    """The elements where the mask holds, in one row."""
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return getitem(input.expand(shape), mask.expand(shape))


def gather(input, dim: int, index: Tensor) -> Tensor:
    """out[i, j] = input[i, index[i, j]] for dim 1, and so on."""
    dim = wrap(dim, len(input.shape))
    cut = tuple(slice(n) if d != dim else slice(None) for d, n in enumerate(index.shape))
    rows, size = index.array.astype(np.intp), input.shape[dim]
    if rows.size and not (rows.min() >= 0 and rows.max() < size):
        raise RuntimeError(f"gather(): an index is out of bounds for dimension {dim} with size {size}")
    return new(np.take_along_axis(input.array[cut], rows, dim), input.dtype)


FUNCTIONS = METHODS = (index_select, masked_select, gather)
