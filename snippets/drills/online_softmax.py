"""Softmax-weighted sum in one pass: the state (m, l, acc) that every decode kernel carries.

Lesson: online_softmax. Reference: torch.softmax(scores, 0) @ values in float64.
Source: own; the recurrence is Milakov and Gimelshein, arXiv:1805.02867.
"""

import torch
import triton
import triton.language as tl

from kernels.checks import check_runnable, check_tensor, is_power_of_two, require


@triton.jit
def _online_softmax_kernel(
    o_ptr,  # [D], out
    lse_ptr,  # [1] fp32, out
    scores_ptr,  # [N], in
    values_ptr,  # [N, D], in
    stride_values_n,  # elements
    num_scores,  # N, 0 allowed
    HEAD_DIM: tl.constexpr,  # D
    BLOCK_N: tl.constexpr,  # scores a step, a power of two
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):
    """Grid (1,): one program walks the whole row and owns all of o and lse."""
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < HEAD_DIM
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([BLOCK_D], tl.float32)
    # TODO: Walk the row, BLOCK_N scores at a time; take each block into m_i, l_i and acc.
    #   There is nothing past num_scores: no weight for it, and what lies there may be NaN.
    #   Scores may be -inf, all those of a block, too.

    # Both sides of a `where` are computed: l_safe keeps 0 / 0 and log(0) out of the unused side.
    l_safe = tl.where(l_i > 0, l_i, 1.0)
    tl.store(o_ptr + offs_d, acc / l_safe, mask=mask_d)
    tl.store(lse_ptr, tl.where(l_i > 0, m_i + tl.log(l_safe), -float("inf")))


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

    head_dim = values.shape[1]
    o = torch.empty(head_dim, dtype=scores.dtype, device=scores.device)
    lse = torch.empty(1, dtype=torch.float32, device=scores.device)
    _online_softmax_kernel[(1,)](
        o, lse, scores, values, values.stride(0), len(scores),
        HEAD_DIM=head_dim, BLOCK_N=block_size, BLOCK_D=triton.next_power_of_2(head_dim),
        num_warps=1,
    )
    return (o, lse[0]) if return_lse else o
