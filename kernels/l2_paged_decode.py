"""Paged decode attention with GQA: one query token a sequence, keys and values in pages.

Lesson: l2_paged_decode. Reference: paged_attention_reference.
Source: own; the ideas are GQA (arXiv:2305.13245) and PagedAttention (arXiv:2309.06180).
"""

import triton
import triton.language as tl

from kernels.checks import PagedInputs, check_lesson_inputs
from kernels.launch import Launch, choose_launch, input_arguments, new_outputs
from kernels.online_softmax import online_softmax_step


# region naive
@triton.jit
def _naive_paged_decode_kernel(
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
    GROUP_SIZE: tl.constexpr,  # query heads a KV head
    HEAD_DIM: tl.constexpr,  # D, a power of two
    PAGE_SIZE: tl.constexpr,  # tokens a page, a power of two
):
    """Grid (B, Hq): a program owns o[seq, head, :] and lse[seq, head]."""
    seq_id = tl.program_id(0).to(tl.int64)
    q_head = tl.program_id(1)
    kv_head = q_head // GROUP_SIZE  #: naive_kv_head
    seq_len = tl.load(seq_lens_ptr + seq_id)
    offs_n = tl.arange(0, PAGE_SIZE)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + seq_id * stride_q_b + q_head * stride_q_h + offs_d).to(tl.float32)
    k_ptr += kv_head * stride_k_h
    v_ptr += kv_head * stride_v_h

    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([HEAD_DIM], tl.float32)
    for page in range(tl.cdiv(seq_len, PAGE_SIZE)):  #: naive_loop
        page_id = tl.load(block_table_ptr + seq_id * stride_table_b + page).to(tl.int64)
        mask_n = page * PAGE_SIZE + offs_n < seq_len  #: naive_loop
        k = tl.load(  #: naive_loads
            k_ptr + page_id * stride_k_page + offs_n[:, None] * stride_k_n + offs_d[None, :],
            mask=mask_n[:, None],
            other=0.0,
        )  # [PAGE_SIZE, HEAD_DIM]
        v = tl.load(
            v_ptr + page_id * stride_v_page + offs_n[:, None] * stride_v_n + offs_d[None, :],
            mask=mask_n[:, None],
            other=0.0,
        )  # [PAGE_SIZE, HEAD_DIM]  #: naive_loads
        s = tl.sum(q[None, :] * k.to(tl.float32), 1) * sm_scale  # [PAGE_SIZE]  #: naive_scores
        s = tl.where(mask_n, s, -float("inf"))
        m_i, l_i, acc = online_softmax_step(m_i, l_i, acc, s, v.to(tl.float32))  #: naive_step

    l_safe = tl.where(l_i > 0, l_i, 1.0)  #: naive_write
    out = seq_id * tl.num_programs(1) + q_head
    tl.store(o_ptr + out * HEAD_DIM + offs_d, acc / l_safe)
    tl.store(lse_ptr + out, tl.where(l_i > 0, m_i + tl.log(l_safe), -float("inf")))  #: naive_write
# endregion naive


# region load_k
@triton.jit
def _load_k_transposed(k_ptr, stride_k_n, offs_n, offs_d, mask_n, SWAP_K_STRIDES: tl.constexpr):
    """One page of one KV head as [HEAD_DIM, PAGE_SIZE], as q @ K^T wants it; masked tokens: 0."""
    if SWAP_K_STRIDES:
        # Let the addresses do it: the tile is transposed as it is loaded.
        k_ptr += offs_n[None, :] * stride_k_n + offs_d[:, None]  #: k_by_strides
        k_t = tl.load(k_ptr, mask=mask_n[None, :], other=0.0)  #: k_by_strides
    else:
        # Load it as it lies in memory, then swap the two axes of the tile.
        k_ptr += offs_n[:, None] * stride_k_n + offs_d[None, :]  #: k_as_stored
        k_t = tl.trans(tl.load(k_ptr, mask=mask_n[:, None], other=0.0))  #: k_as_stored
    return k_t
# endregion load_k


# region page_loop
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
    m_i = tl.full([BLOCK_G], -float("inf"), tl.float32)  #: state
    l_i = tl.zeros([BLOCK_G], tl.float32)  #: state
    acc = tl.zeros([BLOCK_G, HEAD_DIM], tl.float32)  #: state
    # Count from the first page of the range, so that every range is a sequence of its own.
    table_row_ptr += page_begin  #: from_first
    seq_len -= page_begin * PAGE_SIZE  #: from_first
    for page in range(page_end - page_begin):  #: loop
        # region fetch
        # int64: page_id * stride_k_page passes 2**31 in a cache of a few GiB.
        page_id = tl.load(table_row_ptr + page).to(tl.int64)  #: table_read
        mask_n = page * PAGE_SIZE + offs_n < seq_len  #: mask
        k_t = _load_k_transposed(  #: k_load
            k_ptr + page_id * stride_k_page, stride_k_n, offs_n, offs_d, mask_n, SWAP_K_STRIDES
        )  # [HEAD_DIM, PAGE_SIZE]  #: k_load
        v = tl.load(  #: v_load
            v_ptr + page_id * stride_v_page + offs_n[:, None] * stride_v_n + offs_d[None, :],
            mask=mask_n[:, None],
            other=0.0,  # p is 0 there, but 0 * NaN is NaN  #: v_zero
        )  # [PAGE_SIZE, HEAD_DIM]  #: v_load
        # endregion fetch

        # region update
        s = tl.dot(q, k_t, input_precision="ieee") * sm_scale  # [BLOCK_G, PAGE_SIZE]  #: scores
        s = tl.where(mask_n[None, :], s, -float("inf"))  #: mask_scores
        m_new = tl.maximum(m_i, tl.max(s, 1))  #: new_max
        alpha = tl.exp(m_i - m_new)  #: rescale
        p = tl.exp(s - m_new[:, None])  #: weights
        l_i = l_i * alpha + tl.sum(p, 1)  #: sum
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")  #: pv
        m_i = m_new  #: carry
        # endregion update
    return m_i, l_i, acc
# endregion page_loop


# region kernel
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
    # region program
    seq_id = tl.program_id(0).to(tl.int64)  #: program
    kv_head = tl.program_id(1)  #: program
    num_qo_heads = tl.num_programs(1) * GROUP_SIZE  #: num_qo_heads
    seq_len = tl.load(seq_lens_ptr + seq_id)  #: own_length
    # endregion program

    # region pack
    offs_g = tl.arange(0, BLOCK_G)
    offs_d = tl.arange(0, HEAD_DIM)
    mask_g = offs_g < GROUP_SIZE  #: real_rows
    q_head = kv_head * GROUP_SIZE + offs_g  #: head_map
    q = tl.load(
        q_ptr + seq_id * stride_q_b + q_head[:, None] * stride_q_h + offs_d[None, :],
        mask=mask_g[:, None],
        other=0.0,  #: zero_rows
    )  # [BLOCK_G, HEAD_DIM]
    # endregion pack

    # region walk
    m_i, l_i, acc = attend_pages(
        q, k_ptr, v_ptr, block_table_ptr + seq_id * stride_table_b,  #: table_row
        0, tl.cdiv(seq_len, PAGE_SIZE),  #: all_pages
        seq_len, kv_head, sm_scale,
        stride_k_page, stride_k_n, stride_k_h, stride_v_page, stride_v_n, stride_v_h,
        HEAD_DIM, PAGE_SIZE, BLOCK_G, SWAP_K_STRIDES,
    )
    # endregion walk

    # region write
    # Both sides of a `where` are computed: l_safe keeps 0 / 0 and log(0) out of the unused side.
    l_safe = tl.where(l_i > 0, l_i, 1.0)  #: guard
    lse = tl.where(l_i > 0, m_i + tl.log(l_safe), -float("inf"))  #: lse
    o = acc / l_safe[:, None]  #: divide
    out = seq_id * num_qo_heads + q_head  #: out_row
    tl.store(o_ptr + out[:, None] * HEAD_DIM + offs_d[None, :], o, mask=mask_g[:, None])  #: store
    tl.store(lse_ptr + out, lse, mask=mask_g)  #: store
    # endregion write
# endregion kernel


# region launcher
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
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)  #: check
    launch = choose_launch(inputs, q)  #: choose
    o, lse = new_outputs(q)  #: allocate
    launch_paged_decode(o, lse, q, inputs, block_table, seq_lens, sm_scale, launch)
    return (o, lse) if return_lse else o


def launch_paged_decode(
    o, lse, q, inputs: PagedInputs, block_table, seq_lens, sm_scale, launch: Launch,
    swap_k_strides: bool = False,
):
    """The launch alone, into given outputs, with given warps and stages: what a bench times.

    Returns the compiled kernel, which knows its registers and shared memory.
    """
    return _paged_decode_kernel[(inputs.batch_size, inputs.num_kv_heads)](  #: grid
        o, lse, *input_arguments(q, inputs, block_table, seq_lens, sm_scale),  #: arguments
        GROUP_SIZE=inputs.group_size, HEAD_DIM=inputs.head_dim, PAGE_SIZE=inputs.page_size,
        BLOCK_G=inputs.block_g, SWAP_K_STRIDES=swap_k_strides,  #: block_g
        num_warps=launch.num_warps, num_stages=launch.num_stages,  #: warps
    )
# endregion launcher


# region naive_launcher
def naive_paged_decode(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False
):
    """Decode attention, one program per (sequence, query head); otherwise as `paged_decode`."""
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)
    launch = choose_launch(inputs, q, packed=False)
    o, lse = new_outputs(q)
    launch_naive_paged_decode(o, lse, q, inputs, block_table, seq_lens, sm_scale, launch)
    return (o, lse) if return_lse else o


def launch_naive_paged_decode(
    o, lse, q, inputs: PagedInputs, block_table, seq_lens, sm_scale, launch: Launch
):
    """The launch alone, into given outputs, with given warps and stages."""
    return _naive_paged_decode_kernel[(inputs.batch_size, inputs.num_qo_heads)](  #: naive_grid
        o, lse, *input_arguments(q, inputs, block_table, seq_lens, sm_scale),
        GROUP_SIZE=inputs.group_size, HEAD_DIM=inputs.head_dim, PAGE_SIZE=inputs.page_size,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )
# endregion naive_launcher
