"""Split-KV decode with un-normalised partials (m, l, acc): the combine kernel alone divides.

Lesson: l3_split_kv_decode. Reference: paged_attention_reference. Source: own.
"""

import torch
import triton
import triton.language as tl

from kernels.checks import check_lesson_inputs
from kernels.l3_split_kv_decode import launch_split, new_partials, resolve_num_splits
from kernels.launch import choose_launch, new_outputs


# region combine
@triton.jit
def _combine_unnormalized_kernel(
    o_ptr,  # [B, Hq, D] contiguous, out
    lse_ptr,  # [B, Hq] fp32 contiguous, out
    acc_partial_ptr,  # [B, Hq, num_splits, D] fp32 contiguous, in
    m_partial_ptr,  # [B, Hq, num_splits] fp32 contiguous, in
    l_partial_ptr,  # [B, Hq, num_splits] fp32 contiguous, in
    num_splits,
    HEAD_DIM: tl.constexpr,  # D, a power of two
    BLOCK_S: tl.constexpr,  # splits a step, a power of two
):
    """Grid (B, Hq): a program owns o[seq, head, :] and lse[seq, head]."""
    out = tl.program_id(0).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
    offs_d = tl.arange(0, HEAD_DIM)
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([HEAD_DIM], tl.float32)
    for start_s in range(0, num_splits, BLOCK_S):
        offs_s = start_s + tl.arange(0, BLOCK_S)
        mask_s = offs_s < num_splits
        row = out * num_splits + offs_s
        m_s = tl.load(m_partial_ptr + row, mask=mask_s, other=-float("inf"))  #: load_states
        l_s = tl.load(l_partial_ptr + row, mask=mask_s, other=0.0)
        acc_s = tl.load(
            acc_partial_ptr + row[:, None] * HEAD_DIM + offs_d[None, :],
            mask=mask_s[:, None],
            other=0.0,
        )  # [BLOCK_S, HEAD_DIM]  #: load_states
        m_new = tl.maximum(m_i, tl.max(m_s, 0))  #: top
        m_safe = tl.where(m_new > -float("inf"), m_new, 0.0)  # every split so far was empty  #: top
        alpha = tl.exp(m_i - m_safe)
        w = tl.exp(m_s - m_safe)  #: factor
        l_i = l_i * alpha + tl.sum(w * l_s, 0)  #: sum_l
        acc = acc * alpha + tl.sum(w[:, None] * acc_s, 0)  #: sum_acc
        m_i = m_new
    l_safe = tl.where(l_i > 0, l_i, 1.0)
    tl.store(o_ptr + out * HEAD_DIM + offs_d, acc / l_safe)  #: divide_once
    tl.store(lse_ptr + out, tl.where(l_i > 0, m_i + tl.log(l_safe), -float("inf")))
# endregion combine


# region launcher
def split_kv_decode_unnormalized(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False,
    num_splits=None, max_seq_len=None,
):
    """The same result as `split_kv_decode`, from partials (m, l, acc)."""
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)
    launch = choose_launch(inputs, q)
    num_splits = resolve_num_splits(inputs, q, num_splits, max_seq_len)
    o, lse = new_outputs(q)
    acc_partial, m_partial = new_partials(q, num_splits)
    l_partial = torch.empty_like(m_partial)
    launch_split(
        acc_partial, m_partial, l_partial, q, inputs, block_table, seq_lens, sm_scale, launch
    )
    _combine_unnormalized_kernel[(inputs.batch_size, inputs.num_qo_heads)](
        o, lse, acc_partial, m_partial, l_partial, num_splits,
        HEAD_DIM=inputs.head_dim, BLOCK_S=min(16, triton.next_power_of_2(num_splits)),
        num_warps=1,
    )
    return (o, lse) if return_lse else o
# endregion launcher
