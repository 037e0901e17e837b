"""Softmax-weighted sum in one pass: the state (m, l, acc) that every decode kernel carries.

Lesson: online_softmax. Reference: torch.softmax(scores, 0) @ values in float64.
Source: own; the recurrence is Milakov and Gimelshein, arXiv:1805.02867.
"""

import torch
import triton
import triton.language as tl

from kernels.checks import check_runnable, check_tensor, is_power_of_two, require


# TODO: The kernel: one program walks the row once and writes o [D] and lse [1] fp32.
#   Call its pointers o_ptr, lse_ptr, scores_ptr and values_ptr: the tests look accesses up by
#   these names.


def online_softmax(
    scores: torch.Tensor, values: torch.Tensor, *, block_size: int = 16, return_lse: bool = False
):
    """softmax(scores) @ values in one pass over both.

    Args:
        scores: [N] fp16, bf16 or fp32; N = 0 gives o = 0 and lse = -inf.
        values: [N, D], scores' dtype, any D >= 1.
        block_size: scores a step, a power of two; the result is the same for each.

    Returns:
        o [D] in scores' dtype, or (o, lse): lse [] fp32, natural log.
    """
    check_tensor("scores", scores, "N")
    check_tensor("values", values, "N, D", like=scores)
    check_runnable("scores", scores)
    require(len(values) == len(scores), "values", values, f"{len(scores)} rows, one a score")
    require(values.shape[1] >= 1, "values", values, "at least one column")
    require(is_power_of_two(block_size), "block_size", block_size, "a power of two")

    # TODO: Allocate o and lse with torch.empty, launch, return o, or (o, lse) if return_lse.
    #   Values may be columns of a wider tensor: the last stride is 1, the first may be anything.
