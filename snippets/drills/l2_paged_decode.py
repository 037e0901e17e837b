"""Paged decode attention with GQA: one query token a sequence, keys and values in pages.

Lesson: l2_paged_decode. Reference: paged_attention_reference.
Source: own; the ideas are GQA (arXiv:2305.13245) and PagedAttention (arXiv:2309.06180).
"""

import triton
import triton.language as tl

from kernels.checks import PagedInputs, check_lesson_inputs
from kernels.launch import Launch, choose_launch, input_arguments, new_outputs


@triton.jit
def _load_k_transposed(k_ptr, stride_k_n, offs_n, offs_d, mask_n, SWAP_K_STRIDES: tl.constexpr):
    """One page of one KV head as [HEAD_DIM, PAGE_SIZE], as q @ K^T wants it; masked tokens: 0."""
    if SWAP_K_STRIDES:
        # Let the addresses do it: the tile is transposed as it is loaded.
        k_ptr += offs_n[None, :] * stride_k_n + offs_d[:, None]
        k_t = tl.load(k_ptr, mask=mask_n[None, :], other=0.0)
    else:
        # Load it as it lies in memory, then swap the two axes of the tile.
        k_ptr += offs_n[:, None] * stride_k_n + offs_d[None, :]
        k_t = tl.trans(tl.load(k_ptr, mask=mask_n[:, None], other=0.0))
    return k_t


@triton.jit
def attend_pages(
    q,  # [BLOCK_G, HEAD_DIM], the rows that share one KV head
    k_ptr, v_ptr,  # the caches, as in the kernels
    table_row_ptr,  # this sequence's row of the block table
    page_begin, page_end,  # logical pages to read: [page_begin, page_end)
    seq_len, kv_head, sm_scale,
    stride_k_page, stride_k_n, stride_k_h,
    stride_v_page, stride_v_n, stride_v_h,
    HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr, BLOCK_G: tl.constexpr,
    SWAP_K_STRIDES: tl.constexpr,
):
    """Online softmax over pages: m_i [BLOCK_G], l_i [BLOCK_G], acc [BLOCK_G, HEAD_DIM], all fp32.

    No pages give (-inf, 0, 0). Each page of the range holds at least one token, so m_i is finite
    from the first one on, and -inf - (-inf) never happens.
    """
    offs_n = tl.arange(0, PAGE_SIZE)
    offs_d = tl.arange(0, HEAD_DIM)
    k_ptr += kv_head * stride_k_h
    v_ptr += kv_head * stride_v_h
    m_i = tl.full([BLOCK_G], -float("inf"), tl.float32)
    l_i = tl.zeros([BLOCK_G], tl.float32)
    acc = tl.zeros([BLOCK_G, HEAD_DIM], tl.float32)
    # Count from the first page of the range, so that every range is a sequence of its own.
    table_row_ptr += page_begin
    seq_len -= page_begin * PAGE_SIZE
    # TODO: Walk the pages of the range; take each into m_i, l_i and acc.
    #   The block table says where a page lies. Its entries past the last page may be anything.
    #   Slots past seq_len may hold NaN, in K and in V. Offsets in a cache pass 2**31 elements.
    return m_i, l_i, acc


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
    seq_id = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    num_qo_heads = tl.num_programs(1) * GROUP_SIZE
    seq_len = tl.load(seq_lens_ptr + seq_id)

    offs_g = tl.arange(0, BLOCK_G)
    offs_d = tl.arange(0, HEAD_DIM)
    mask_g = offs_g < GROUP_SIZE
    q_head = kv_head * GROUP_SIZE + offs_g
    q = tl.load(
        q_ptr + seq_id * stride_q_b + q_head[:, None] * stride_q_h + offs_d[None, :],
        mask=mask_g[:, None],
        other=0.0,
    )  # [BLOCK_G, HEAD_DIM]

    m_i, l_i, acc = attend_pages(
        q, k_ptr, v_ptr, block_table_ptr + seq_id * stride_table_b,
        0, tl.cdiv(seq_len, PAGE_SIZE),
        seq_len, kv_head, sm_scale,
        stride_k_page, stride_k_n, stride_k_h, stride_v_page, stride_v_n, stride_v_h,
        HEAD_DIM, PAGE_SIZE, BLOCK_G, SWAP_K_STRIDES,
    )

    # Both sides of a `where` are computed: l_safe keeps 0 / 0 and log(0) out of the unused side.
    l_safe = tl.where(l_i > 0, l_i, 1.0)
    lse = tl.where(l_i > 0, m_i + tl.log(l_safe), -float("inf"))
    o = acc / l_safe[:, None]
    out = seq_id * num_qo_heads + q_head
    tl.store(o_ptr + out[:, None] * HEAD_DIM + offs_d[None, :], o, mask=mask_g[:, None])
    tl.store(lse_ptr + out, lse, mask=mask_g)


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
