"""torch.einsum, and what it shares with the other products (_linalg.py)."""

import string

import numpy as np

from torch import _dtypes
from torch._dtypes import bool_
from torch._elementwise import held, operand
from torch._new import is_meta, new
from torch._tensor import Tensor
from torch._views import permute


def require_same(name: str, *operands) -> _dtypes.dtype:
    """The dtype of the operands of a product; they must have the same."""
    first = operands[0].dtype
    for other in operands[1:]:
        if other.dtype is not first:
            types = f"{_c_name(first)} != {_c_name(other.dtype)}"
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {types}")
    if first is bool_:
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    return _dtypes.require_computed(first, name)


def _c_name(dtype: _dtypes.dtype) -> str:
    """What torch's messages about products call a dtype."""
    return {"float16": "c10::Half", "float32": "float", "float64": "double", "int64": "long long"}.get(
        dtype.name, dtype.name
    )


def product(array, dtype: _dtypes.dtype, *operands) -> Tensor:
    """A result, row-major."""
    return new(_dtypes.rounded(np.asarray(array), dtype), dtype, is_meta(*operands))


def einsum(equation: str, *operands) -> Tensor:
    """A sum of products, named by letters; `...` stands for leading dims that broadcast."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    dtype = require_same("einsum", *operands)
    inputs, output = _require_letters(equation, operands)
    if len(operands) == 1 and sorted(inputs[0]) == sorted(output):  # nothing is added up: a view
        return permute(operands[0], [inputs[0].index(letter) for letter in output])
    order = _memory_order(inputs, output)
    arrays = [operand(x, dtype, "einsum") for x in operands]
    found = np.einsum(f"{','.join(inputs)}->{order}", *arrays, dtype=held(dtype), optimize=len(arrays) > 2)
    return permute(product(found, dtype, *operands), [order.index(letter) for letter in output])


def _memory_order(inputs: list[str], output: str) -> str:
    """The output's letters in the order in memory that a batched matrix product of two operands gives."""
    if len(inputs) != 2 or set("".join(inputs)) <= set(output):
        return output
    left, right = inputs
    shared = [x for x in output if x in left and x in right]
    alone = [x for x in output if x not in shared]
    first, second = (right, left) if alone and alone[0] in right else (left, right)
    return "".join([*shared, *(x for x in alone if x in first), *(x for x in alone if x in second)])


def _require_letters(equation: str, operands) -> tuple[list[str], str]:
    """The letters of each operand and of the output, with letters of their own for `...`."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise RuntimeError(
            f"einsum(): the equation has {len(inputs)} operands and {len(operands)} tensors were given"
        )
    free = [x for x in string.ascii_letters if x not in equation]
    ranks = [len(x.shape) - len(term.replace("...", "")) for term, x in zip(inputs, operands, strict=True)]
    dots = [rank for term, rank in zip(inputs, ranks, strict=True) if "..." in term]
    leading = "".join(free[: max(dots, default=0)])
    sizes: dict[str, int] = {}
    for i, (term, x, rank) in enumerate(zip(inputs, operands, ranks, strict=True)):
        if rank < 0 or (rank and "..." not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(x.shape) - rank}) does not match "
                f"the number of dimensions ({len(x.shape)}) for operand {i}"
            )
        inputs[i] = term.replace("...", leading[len(leading) - rank :])
        for letter, size in zip(inputs[i], x.shape, strict=True):
            have = sizes.setdefault(letter, size)
            if have != size and 1 not in (have, size):
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {size} for operand {i} which does not broadcast "
                    f"with previously seen size {have}"
                )
            sizes[letter] = max(have, size)
    if not arrow:
        letters = "".join(inputs)
        output = leading + "".join(sorted(x for x in set(letters) - set(leading) if letters.count(x) == 1))
    output = output.replace("...", leading)
    unknown = [x for x in output if x not in sizes]
    if unknown or len(set(output)) < len(output):
        raise RuntimeError(f"einsum(): output subscripts {output!r} are not each once those of an operand")
    return inputs, output
