"""Products. float16 is multiplied and added up in float32 and rounded once; other types as numpy does it."""

import numpy as np

from torch._einsum import einsum, product, require_same
from torch._elementwise import operand
from torch._tensor import Tensor


def _by(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))


def matmul(input, other) -> Tensor:
    """The matrix product, over leading dims that broadcast."""
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        raise TypeError("matmul(): both arguments must be Tensor")
    dtype = require_same("matmul", input, other)
    if not input.shape or not other.shape:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(input.shape)}D and "
            f"{len(other.shape)}D"
        )
    inner = other.shape[-2] if len(other.shape) > 1 else other.shape[0]
    if input.shape[-1] != inner:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(input)} and {_by(other)})")
    try:
        found = np.matmul(operand(input, dtype, "matmul"), operand(other, dtype, "matmul"))
    except ValueError:
        raise RuntimeError(
            f"matmul: the leading dims of {list(input.shape)} and {list(other.shape)} do not broadcast"
        ) from None
    return product(found, dtype, input, other)


def _of_ranks(name: str, *ranks: int):
    def call(input, other) -> Tensor:
        if (len(input.shape), len(other.shape)) != ranks:
            raise RuntimeError(
                f"{name}: expected {ranks[0]}D and {ranks[1]}D tensors, got {list(input.shape)} and "
                f"{list(other.shape)}"
            )
        if name == "bmm" and input.shape[0] != other.shape[0]:
            raise RuntimeError(f"bmm: batches of {input.shape[0]} and {other.shape[0]} matrices")
        return matmul(input, other)

    call.__doc__ = f"`matmul` of a {ranks[0]}D and a {ranks[1]}D tensor."
    return call


def outer(input, vec2) -> Tensor:
    """Every product of an element of one vector with one of the other."""
    return input[:, None] * vec2[None, :]


FUNCTIONS = {
    "matmul": matmul, "mm": _of_ranks("mm", 2, 2), "bmm": _of_ranks("bmm", 3, 3),
    "mv": _of_ranks("mv", 2, 1), "dot": _of_ranks("dot", 1, 1), "outer": outer, "einsum": einsum,
}  # fmt: skip
