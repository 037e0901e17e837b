"""Paged decode attention with GQA: one query token a sequence, keys and values in pages.

Lesson: l2_paged_decode. Reference: paged_attention_reference.
Source: own; the ideas are GQA (arXiv:2305.13245) and PagedAttention (arXiv:2309.06180).
"""

import triton
import triton.language as tl

from kernels.checks import PagedInputs, check_lesson_inputs
from kernels.launch import Launch, choose_launch, input_arguments, new_outputs


@triton.jit
def _paged_decode_kernel(
    o_ptr,  # [B, Hq, D] contiguous, out
    lse_ptr,  # [B, Hq] fp32 contiguous, out
    q_ptr,  # [B, Hq, D], in
    k_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in
    v_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in
    block_table_ptr,  # [B, max_pages] int32, in
    seq_lens_ptr,  # [B] int32, in
    sm_scale,  # factor on q . k
    stride_q_b, stride_q_h,  # all strides in elements
    stride_k_page, stride_k_n, stride_k_h,
    stride_v_page, stride_v_n, stride_v_h,
    stride_table_b,
    GROUP_SIZE: tl.constexpr,  # query heads a KV head, 1 to BLOCK_G
    HEAD_DIM: tl.constexpr,  # D, a power of two
    PAGE_SIZE: tl.constexpr,  # tokens a page, a power of two
    BLOCK_G: tl.constexpr,  # rows of the tile, a power of two, at least 16
    SWAP_K_STRIDES: tl.constexpr,  # how K is transposed; the result is the same
):
    """Grid (B, Hkv): a program owns the GROUP_SIZE rows of o and lse that share its KV head."""
    # TODO: Load the GROUP_SIZE query rows that share the KV head, as a tile of BLOCK_G rows.
    #   Walk the pages of the sequence; write o in its dtype and lse = m + log(l) in fp32.
    #   Rows past GROUP_SIZE are nobody's. An empty sequence gives o = 0 and lse = -inf.
    #   SWAP_K_STRIDES chooses between two ways to load K; you need only one.


def paged_decode(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False
):
    """Decode attention, one program per (sequence, KV head): keys and values are read once a group.

    Args:
        q: [B, Hq, D] fp16, bf16 (GPU only) or fp32; D a power of two from 16 to 256.
        k_cache, v_cache: [num_pages, page_size, Hkv, D] ("NHD") or [num_pages, Hkv, page_size, D]
            ("HND"), q's dtype, any strides with a contiguous last dim; page_size a power of two
            from 16 to 128; Hq / Hkv from 1 to 64.
        block_table: [B, max_pages] int32; entries past a sequence's last page are never read.
        seq_lens: [B] int32, 0 allowed.
        sm_scale: factor on q . k; None means 1 / sqrt(D).
        return_lse: also return the log-sum-exp of the scaled scores.

    Returns:
        o [B, Hq, D] in q's dtype, or (o, lse): lse [B, Hq] fp32, natural log. An empty sequence
        gives 0 and -inf.

    Raises:
        ValueError, TypeError: before any launch, naming the argument.
    """
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)
    launch = choose_launch(inputs, q)
    o, lse = new_outputs(q)
    launch_paged_decode(o, lse, q, inputs, block_table, seq_lens, sm_scale, launch)
    return (o, lse) if return_lse else o


def launch_paged_decode(
    o, lse, q, inputs: PagedInputs, block_table, seq_lens, sm_scale, launch: Launch,
    swap_k_strides: bool = False,
):
    """The launch alone, into given outputs, with given warps and stages: what a bench times.

    Returns the compiled kernel, which knows its registers and shared memory.
    """
    return _paged_decode_kernel[(inputs.batch_size, inputs.num_kv_heads)](
        o, lse, *input_arguments(q, inputs, block_table, seq_lens, sm_scale),
        GROUP_SIZE=inputs.group_size, HEAD_DIM=inputs.head_dim, PAGE_SIZE=inputs.page_size,
        BLOCK_G=inputs.block_g, SWAP_K_STRIDES=swap_k_strides,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )
