"""The ladder from L3 to fast_decode: one kernel, a switch a rung, so that each is measured alone.

Lesson: l7_fast_decode. Reference: paged_attention_reference.
Source: own. The rungs, in their order and with their launches, are in kernels/l7_rungs.py.
"""

import triton
import triton.language as tl

from kernels.l3_split_kv_decode import _combine_kernel, split_range
from kernels.online_softmax import online_softmax_step

LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(x * log2(e))


# region page_ids
@triton.jit
def _load_page_ids(
    table_row_ptr, start_n, end_n, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr, TMA: tl.constexpr
):
    """Physical pages of the tokens from start_n on, [BLOCK_N], 0 past the end; with TMA of one page."""
    table_row_ptr += start_n // PAGE_SIZE
    if TMA:
        page_ids = tl.load(table_row_ptr, mask=start_n < end_n, other=0)
    else:
        offs_n = tl.arange(0, BLOCK_N)
        page_ids = tl.load(  #: vector_read
            table_row_ptr + offs_n // PAGE_SIZE, mask=start_n + offs_n < end_n, other=0
        )  #: vector_read
    return page_ids
# endregion page_ids


# region tile
@triton.jit
def _load_tile(
    cache_ptr,  # K or V from this KV head on; with TMA the descriptor of the whole cache
    page_ids, kv_head, mask_n, stride_page, stride_n,
    HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr, INT32_OFFSETS: tl.constexpr, EVICT_FIRST: tl.constexpr, TMA: tl.constexpr,
):
    """BLOCK_N tokens of K or V, [BLOCK_N, HEAD_DIM]; masked tokens give 0."""
    if TMA:
        tile = cache_ptr.load([page_ids, 0, kv_head, 0]).reshape(BLOCK_N, HEAD_DIM)  #: tma_load
        if MASKED:  # the copy brings whole pages, and what lies past the end may be NaN
            tile = tl.where(mask_n[:, None], tile, 0.0)  #: tma_mask
    else:
        offs_n = tl.arange(0, BLOCK_N) % PAGE_SIZE  # slots: a tile begins at a page's edge
        offs_d = tl.arange(0, HEAD_DIM)
        EVICTION: tl.constexpr = "evict_first" if EVICT_FIRST else ""  #: evict_first
        if INT32_OFFSETS:
            rows = page_ids * stride_page + offs_n * stride_n  #: int32_offsets
        else:
            rows = page_ids.to(tl.int64) * stride_page + offs_n * stride_n
        cache_ptr += rows[:, None] + offs_d[None, :]
        if MASKED:
            tile = tl.load(cache_ptr, mask=mask_n[:, None], other=0.0, eviction_policy=EVICTION)
        else:
            tile = tl.load(cache_ptr, eviction_policy=EVICTION)  #: unmasked_load
    return tile
# endregion tile


# region attend
@triton.jit
def _attend_tile(
    q, m_i, l_i, acc,  # [BLOCK_G, HEAD_DIM]; the state of its rows
    k_ptr, v_ptr, page_ids, kv_head, mask_n, score_scale,
    stride_k_page, stride_k_n, stride_v_page, stride_v_n,
    HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
    EXP2: tl.constexpr, INT32_OFFSETS: tl.constexpr, EVICT_FIRST: tl.constexpr, TMA: tl.constexpr,
):
    """Take BLOCK_N tokens into the state; at least one of them is not masked, so m_i is finite."""
    k = _load_tile(
        k_ptr, page_ids, kv_head, mask_n, stride_k_page, stride_k_n,
        HEAD_DIM, PAGE_SIZE, BLOCK_N, MASKED, INT32_OFFSETS, EVICT_FIRST, TMA,
    )
    v = _load_tile(
        v_ptr, page_ids, kv_head, mask_n, stride_v_page, stride_v_n,
        HEAD_DIM, PAGE_SIZE, BLOCK_N, MASKED, INT32_OFFSETS, EVICT_FIRST, TMA,
    )
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * score_scale  # [BLOCK_G, BLOCK_N]
    if MASKED:
        s = tl.where(mask_n[None, :], s, -float("inf"))  #: mask_scores
    m_new = tl.maximum(m_i, tl.max(s, 1))
    if EXP2:
        alpha, p = tl.exp2(m_i - m_new), tl.exp2(s - m_new[:, None])  #: exp2
    else:
        alpha, p = tl.exp(m_i - m_new), tl.exp(s - m_new[:, None])  #: exp
    l_i = l_i * alpha + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
    return m_new, l_i, acc
# endregion attend


# region kernel
# region signature
@triton.jit
def _ladder_kernel(
    o_partial_ptr,  # [B, Hq, num_splits, D] fp32 contiguous, out: o of each split
    lse_partial_ptr,  # [B, Hq, num_splits] fp32 contiguous, out: lse of each split
    o_ptr,  # [B, Hq, D] contiguous, out if LAST_COMBINES, else None
    lse_ptr,  # [B, Hq] fp32 contiguous, out if LAST_COMBINES, else None
    counter_ptr,  # [B, Hkv] int32, 0 before and after, if LAST_COMBINES, else None
    q_ptr,  # [B, Hq, D], in
    k_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in; with TMA its descriptor
    v_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in; with TMA its descriptor
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
    BLOCK_N: tl.constexpr,  # tokens an iteration, a power of two, a multiple of PAGE_SIZE
    EXP2: tl.constexpr,  # log2(e) is in the scale of the scores, and exp is exp2
    PREFETCH: tl.constexpr,  # page ids are read an iteration ahead of their use
    UNMASKED: tl.constexpr,  # whole tiles have no masks; the rest of a split is one masked tile
    EVEN_SPLITS: tl.constexpr,  # splits differ by a tile at most; else by the last one's rest
    TRIGGER: tl.constexpr,  # when the combine kernel may start: at the "end", or "late", "early"
    EVICT_FIRST: tl.constexpr,  # K and V are the first to leave the L2 cache
    INT32_OFFSETS: tl.constexpr,  # the launcher has seen that the caches end below 2**31 elements
    TMA: tl.constexpr,  # the copy engine takes a page from a descriptor; BLOCK_N is PAGE_SIZE
    LAST_COMBINES: tl.constexpr,  # the last program of a (sequence, KV head) merges its splits
):
    """Grid (B, Hkv, num_splits): a program owns one split of the GROUP_SIZE rows of its KV head."""
    # endregion signature
    # region program
    if TRIGGER == "early":
        tl.extra.cuda.gdc_launch_dependents()  #: early_trigger
    seq_id = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split_id = tl.program_id(2)
    num_splits = tl.num_programs(2)
    seq_len = tl.load(seq_lens_ptr + seq_id)
    if EVEN_SPLITS:
        num_tiles = tl.cdiv(seq_len, BLOCK_N)  #: even_range
        tile_begin = num_tiles * split_id // num_splits
        tile_end = num_tiles * (split_id + 1) // num_splits  #: even_range
    else:
        tile_begin, tile_end = split_range(seq_len, split_id, num_splits, BLOCK_N)  #: l3_range
    end_n = tl.minimum(tile_end * BLOCK_N, seq_len)
    begin_n = tl.minimum(tile_begin * BLOCK_N, end_n)  # equal in an empty split
    # endregion program

    # region queries
    offs_g = tl.arange(0, BLOCK_G)
    offs_d = tl.arange(0, HEAD_DIM)
    offs_n = tl.arange(0, BLOCK_N)
    mask_g = offs_g < GROUP_SIZE
    q_head = kv_head * GROUP_SIZE + offs_g
    q = tl.load(
        q_ptr + seq_id * stride_q_b + q_head[:, None] * stride_q_h + offs_d[None, :],
        mask=mask_g[:, None],
        other=0.0,
    )  # [BLOCK_G, HEAD_DIM]
    if not TMA:
        k_ptr += kv_head * stride_k_h
        v_ptr += kv_head * stride_v_h
    table_row_ptr = block_table_ptr + seq_id * stride_table_b
    if EXP2:
        sm_scale *= LOG2_E  # once a program, where exp would do it once a score  #: fold
    m_i = tl.full([BLOCK_G], -float("inf"), tl.float32)
    l_i = tl.zeros([BLOCK_G], tl.float32)
    acc = tl.zeros([BLOCK_G, HEAD_DIM], tl.float32)
    # endregion queries

    # region loop
    num_whole = (end_n - begin_n) // BLOCK_N
    whole_end = begin_n + num_whole * BLOCK_N if UNMASKED else end_n  #: whole_end
    if PREFETCH:
        next_ids = _load_page_ids(table_row_ptr, begin_n, end_n, PAGE_SIZE, BLOCK_N, TMA)  #: first
    for start_n in range(begin_n, whole_end, BLOCK_N):  #: loop
        if PREFETCH:
            page_ids = next_ids  #: prefetch
            next_ids = _load_page_ids(
                table_row_ptr, start_n + BLOCK_N, end_n, PAGE_SIZE, BLOCK_N, TMA
            )  #: prefetch
        else:
            page_ids = _load_page_ids(table_row_ptr, start_n, end_n, PAGE_SIZE, BLOCK_N, TMA)
        m_i, l_i, acc = _attend_tile(
            q, m_i, l_i, acc, k_ptr, v_ptr, page_ids, kv_head, start_n + offs_n < end_n, sm_scale,
            stride_k_page, stride_k_n, stride_v_page, stride_v_n,
            HEAD_DIM, PAGE_SIZE, BLOCK_N, not UNMASKED, EXP2, INT32_OFFSETS, EVICT_FIRST, TMA,
        )
    # endregion loop

    # region tail
    if UNMASKED:
        mask_n = whole_end + offs_n < end_n
        if whole_end < end_n:  #: tail
            if not PREFETCH:
                next_ids = _load_page_ids(table_row_ptr, whole_end, end_n, PAGE_SIZE, BLOCK_N, TMA)
            m_i, l_i, acc = _attend_tile(
                q, m_i, l_i, acc, k_ptr, v_ptr, next_ids, kv_head, mask_n, sm_scale,
                stride_k_page, stride_k_n, stride_v_page, stride_v_n,
                HEAD_DIM, PAGE_SIZE, BLOCK_N, True, EXP2, INT32_OFFSETS, EVICT_FIRST, TMA,
            )
    if TRIGGER == "late":
        tl.extra.cuda.gdc_launch_dependents()  #: late_trigger
    # endregion tail

    # region partials
    row = seq_id * tl.num_programs(1) * GROUP_SIZE + q_head
    out = row * num_splits + split_id
    l_safe = tl.where(l_i > 0, l_i, 1.0)  # an empty split stores o = 0 and lse = -inf
    # Partials hold natural logarithms, as in L3.
    lse = (m_i + tl.log2(l_safe)) / LOG2_E if EXP2 else m_i + tl.log(l_safe)  #: unfold
    lse = tl.where(l_i > 0, lse, -float("inf"))
    o_out = o_partial_ptr + out[:, None] * HEAD_DIM + offs_d[None, :]
    tl.store(o_out, acc / l_safe[:, None], mask=mask_g[:, None])
    tl.store(lse_partial_ptr + out, lse, mask=mask_g)
    # endregion partials

    # region last_combines
    if LAST_COMBINES:
        tl.debug_barrier()  # all threads have stored before one counts this program  #: barrier
        counter_ptr += seq_id * tl.num_programs(1) + kv_head
        arrived = tl.atomic_add(counter_ptr, 1, sem="acq_rel", scope="gpu")  #: arrive
        if arrived == num_splits - 1:
            tl.store(counter_ptr, 0)  # ready for the next launch  #: reset
            first = (seq_id * tl.num_programs(1) + kv_head) * GROUP_SIZE
            for head in range(GROUP_SIZE):
                _combine_row(
                    o_ptr, lse_ptr, o_partial_ptr, lse_partial_ptr, first + head, num_splits,
                    HEAD_DIM,
                )
    # endregion last_combines
# endregion kernel


# region combine_row
@triton.jit
def _combine_row(
    o_ptr, lse_ptr, o_partial_ptr, lse_partial_ptr, row, num_splits, HEAD_DIM: tl.constexpr
):
    """Merge the num_splits states of row seq * Hq + head, 16 at a time, as L3's combine does."""
    offs_d = tl.arange(0, HEAD_DIM)
    o_partial_ptr += row * num_splits * HEAD_DIM
    lse_partial_ptr += row * num_splits
    m_i, l_i = -float("inf"), 0.0
    acc = tl.zeros([HEAD_DIM], tl.float32)
    for start_s in range(0, num_splits, 16):
        offs_s = start_s + tl.arange(0, 16)
        mask_s = offs_s < num_splits
        # Other SMs wrote them: read the L2 cache, for this SM's L1 may be older.
        lse_s = tl.load(
            lse_partial_ptr + offs_s, mask=mask_s, other=-float("inf"), cache_modifier=".cg"  #: cg
        )
        o_s = tl.load(
            o_partial_ptr + offs_s[:, None] * HEAD_DIM + offs_d[None, :],
            mask=mask_s[:, None],
            other=0.0,
            cache_modifier=".cg",
        )  # [16, HEAD_DIM]
        m_i, l_i, acc = online_softmax_step(m_i, l_i, acc, lse_s, o_s)
    l_safe = tl.where(l_i > 0, l_i, 1.0)
    tl.store(o_ptr + row * HEAD_DIM + offs_d, acc / l_safe)
    tl.store(lse_ptr + row, tl.where(l_i > 0, m_i + tl.log(l_safe), -float("inf")))
# endregion combine_row


# region dependent_combine
@triton.jit
def _dependent_combine_kernel(
    o_ptr, lse_ptr, o_partial_ptr, lse_partial_ptr, num_splits, head_dim,
    stride_o_s, stride_o_b, stride_o_h, stride_lse_s, stride_lse_b, stride_lse_h,
    BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """L3's combine kernel, launched before its inputs are there: grid and arguments are the same."""
    tl.extra.cuda.gdc_wait()  # until the split kernel has ended and its stores can be seen  #: wait
    _combine_kernel(
        o_ptr, lse_ptr, o_partial_ptr, lse_partial_ptr, num_splits, head_dim,
        stride_o_s, stride_o_b, stride_o_h, stride_lse_s, stride_lse_b, stride_lse_h,
        BLOCK_S, BLOCK_D,
    )
# endregion dependent_combine
