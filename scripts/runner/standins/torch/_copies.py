"""Copies: another dtype, another layout, into another tensor. What was never written stays so."""

from torch import _dtypes
from torch._names import absent
from torch._new import uninitialised
from torch._storage import contiguous_strides, dense_strides, is_dense
from torch._tensor import Tensor


def clone(input, memory_format=None) -> Tensor:
    """A copy, dense in the order of its strides; unwritten elements stay unwritten."""
    if memory_format is not None and memory_format.name != "contiguous_format":
        raise NotImplementedError(absent(f"memory_format={memory_format!r}"))
    return copied(input, input.dtype, keep_order=memory_format is None)


def contiguous(self) -> Tensor:
    """Itself, or a row-major copy."""
    return self if self.is_contiguous() else copied(self, self.dtype, keep_order=False)


def preserved_strides(tensor: Tensor) -> tuple[int, ...]:
    """The strides of a copy that keeps the layout: the tensor's own, or the same order without gaps."""
    if tensor.is_contiguous():
        return contiguous_strides(tensor.shape)
    if is_dense(tensor.shape, tensor.stride()):
        return tensor.stride()
    return dense_strides(tensor.shape, tensor.stride())


def copied(tensor: Tensor, dtype: _dtypes.dtype, keep_order: bool = True) -> Tensor:
    """A copy in another dtype; keep_order: of a dense tensor the strides, too, as torch does."""
    made = uninitialised(tensor.shape, dtype, tensor.device, written=tensor.flags() is None)
    if keep_order:
        made = made.alias(tensor.shape, preserved_strides(tensor))
    if tensor.device.type != "meta":
        store(made, tensor)
    return made


def store(target: Tensor, source: Tensor) -> None:
    """Copy numbers into a tensor, converted; what was never written stays so. Shapes broadcast."""
    if target.numel() == 0:
        return
    if source.dtype is target.dtype:
        target.array[...] = source.array
    else:
        wide = _dtypes.widened(source.array, source.dtype, "a conversion")
        target.array[...] = _dtypes.rounded(wide, target.dtype)
    flags, known = target.flags(), source.flags()
    if flags is not None:
        flags[...] = True if known is None else known.all(-1, keepdims=True)


def refuse_overlap(view: Tensor) -> None:
    """No writes into an expanded tensor: several of its elements are one."""
    if any(n > 1 and step == 0 for n, step in zip(view.shape, view.stride(), strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def refuse_partial_overlap(target: Tensor, source: Tensor) -> None:
    """No writes into what is read, shifted: each of two dense views of one storage begins elsewhere."""
    if source.untyped_storage() is not target.untyped_storage() or not target.numel() or not source.numel():
        return
    if not (is_dense(target.shape, target.stride()) and is_dense(source.shape, source.stride())):
        return
    (a, m), (b, n) = ((x.storage_offset() * x.dtype.itemsize, x.nbytes) for x in (target, source))
    if a < b + n and b < a + m and (a, m) != (b, n):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


FUNCTIONS = (clone,)
METHODS = (clone, contiguous)
