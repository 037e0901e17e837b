"""Parts of a tensor, as views: rows of a dim, cuts, the diagonal."""

from torch._tensor import Tensor, wrap


def narrow(input, dim: int, start: int, length: int) -> Tensor:
    """`length` rows of a dim from `start` on."""
    dim = wrap(dim, len(input.shape))
    size = input.shape[dim]
    start = start + size if start < 0 else start
    if not 0 <= start <= size or length < 0 or start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    shape = (*input.shape[:dim], length, *input.shape[dim + 1 :])
    return input.alias(shape, input.stride(), input.storage_offset() + start * input.stride()[dim])


def select(input, dim: int, index: int) -> Tensor:
    """One row of a dim, without that dim."""
    if not input.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = wrap(dim, len(input.shape)), index.__index__()
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    offset = input.storage_offset() + index % size * input.stride()[dim]
    keep = [d for d in range(len(input.shape)) if d != dim]
    return input.alias([input.shape[d] for d in keep], [input.stride()[d] for d in keep], offset)


def split(tensor, split_size_or_sections, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of one size, or of the sizes given."""
    dim = wrap(dim, len(tensor.shape))
    total, sizes = tensor.shape[dim], split_size_or_sections
    if isinstance(sizes, int):
        if sizes <= 0:
            raise RuntimeError(f"split expects split_size be positive, but got split_size={sizes}")
        sizes = [min(sizes, total - at) for at in range(0, total, sizes)] or [0]
    if sum(sizes) != total or min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(sizes)}"
        )
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(narrow(tensor, dim, at, n) for at, n in zip(starts, sizes, strict=True))


def chunk(input, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most this many parts of equal size, the last perhaps smaller."""
    size = input.shape[wrap(dim, len(input.shape))]
    return split(input, max(1, -(-size // chunks)), dim)


def unbind(input, dim: int = 0) -> tuple[Tensor, ...]:
    """All rows of a dim."""
    if not input.shape:
        raise TypeError("iteration over a 0-d tensor")
    return tuple(select(input, dim, i) for i in range(input.shape[wrap(dim, len(input.shape))]))


def diagonal(input, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dims, as the last dim."""
    a, b = wrap(dim1, len(input.shape)), wrap(dim2, len(input.shape))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input.shape[a] - max(0, -offset), input.shape[b] - max(0, offset)
    start = input.stride()[b] * offset if offset >= 0 else input.stride()[a] * -offset
    length = max(0, min(rows, columns))
    keep = [d for d in range(len(input.shape)) if d not in (a, b)]
    return input.alias(
        [*(input.shape[d] for d in keep), length],
        [*(input.stride()[d] for d in keep), input.stride()[a] + input.stride()[b]],
        input.storage_offset() + (start if length else 0),
    )


FUNCTIONS = METHODS = (narrow, select, split, chunk, unbind, diagonal)
