"""The fastest decode kernel of this repo: split-KV decode with everything that measured better.

Lesson: l7_fast_decode. Reference: paged_attention_reference.
Source: own; what each step brings is measured in the lesson.
"""

import math

import torch
import triton
import triton.language as tl

from kernels.checks import INTERPRETED, PagedInputs, check_fast_inputs, is_checked, require
from kernels.l3_split_kv_decode import choose_num_splits
from kernels.l7_launch import (
    FrozenKernel,
    Tile,
    block_d,
    choose_tile,
    has_dependent_launch,
    masks_all,
    require_fp8,
)
from kernels.l7_plan import PROGRAMS_PER_SM, DecodePlan, check_plan
from kernels.l7_tile import attend_tile, page_ids_of
from kernels.launch import current_target, num_sms

# Scores are kept in base 2: the GPU has an instruction for exp2, and none for exp.
LOG2_E = math.log2(math.e)


# region kernel
# region signature
@triton.jit(do_not_specialize=["num_splits"])
def _fast_decode_kernel(
    o_ptr,  # [B, Hq, D] contiguous, out: of sequences that are one split
    lse_ptr,  # [B, Hq] fp32 contiguous, out: likewise; None: not wanted
    partial_ptr,  # fp32, out: o [slots, Hq, D], then lse [slots, Hq], base 2; None: one split each
    work_ptr,  # [slots, 4] int32, in: sequence, split, splits of it, 0; None: num_splits for all  #: arg_work
    q_ptr,  # [B, Hq, D], in
    k_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in; e4m3 as pairs in int16 if FP8  #: arg_pairs
    v_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in; likewise
    block_table_ptr,  # [B, max_pages] int32, in
    seq_lens_ptr,  # [B] int32, in
    k_scale_ptr,  # [1] fp32, in, or None: qk_scale holds it
    v_scale_ptr,  # [1] fp32, in, or None: o_scale holds it
    qk_scale,  # factor on q . k, log2(e) included
    o_scale,  # factor on o
    num_splits,  # of every sequence; ignored with work_ptr
    stride_q_b, stride_q_h,  # all strides in elements; of pairs for an FP8 cache
    stride_k_page, stride_k_n, stride_k_h,
    stride_v_page, stride_v_n, stride_v_h,
    stride_table_b,
    GROUP_SIZE: tl.constexpr,  # query heads a KV head, 1 to BLOCK_G
    HEAD_DIM: tl.constexpr,  # D, a multiple of 8
    PAGE_SIZE: tl.constexpr,  # tokens a page, any
    BLOCK_G: tl.constexpr,  # rows of the tile, a power of two, at least 16
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two, at least 16; 32 if FP8
    BLOCK_N: tl.constexpr,  # tokens an iteration, a power of two, at least 16
    MASK_ALL: tl.constexpr,  # every tile may be the last one: half the code, for large tiles
    FP8: tl.constexpr,
    PDL: tl.constexpr,  # programmatic dependent launch: sm_90 and later
    INTERPRETED: tl.constexpr,
):
    """Grid (Hkv, splits, B) or (Hkv, slots): a program owns one split of the rows of its KV head."""
    # endregion signature
    # region begin
    kv_head = tl.program_id(0)  #: heads_first
    num_qo_heads = tl.num_programs(0) * GROUP_SIZE
    if PDL:
        # The combine kernel may take its places now; it waits there until this grid is done.
        # A direct kernel holds back until its end: what follows would take room from it.
        if partial_ptr is not None:
            tl.extra.cuda.gdc_launch_dependents()  #: early_trigger
        tl.extra.cuda.gdc_wait()  # nothing is read before the launch before us is done  #: wait
    if work_ptr is None:
        split_id = tl.program_id(1)
        seq_id = tl.program_id(2).to(tl.int64)
        slot_id = seq_id * num_splits + split_id
    else:
        slot_id = tl.program_id(1).to(tl.int64)
        seq_id = tl.load(work_ptr + slot_id * 4).to(tl.int64)  #: work_item
        split_id = tl.load(work_ptr + slot_id * 4 + 1)
        num_splits = tl.load(work_ptr + slot_id * 4 + 2)  #: work_item
    seq_len = tl.load(seq_lens_ptr + seq_id)
    # endregion begin

    # region range
    # Splits are cut at pages, or at tiles where a page holds many; as even as that allows.
    UNIT: tl.constexpr = (
        BLOCK_N if PAGE_SIZE % BLOCK_N == 0  #: unit
        else PAGE_SIZE if BLOCK_N % PAGE_SIZE == 0 and PAGE_SIZE >= 16
        else 16  #: unit
    )
    units = tl.cdiv(seq_len, UNIT)
    token_begin = (units * split_id // num_splits) * UNIT  #: begin
    token_end = tl.minimum((units * (split_id + 1) // num_splits) * UNIT, seq_len)  #: end
    num_tokens = token_end - token_begin
    # endregion range

    # region rows
    offs_g = tl.arange(0, BLOCK_G)
    offs_d = tl.arange(0, BLOCK_D)
    mask_g = offs_g < GROUP_SIZE
    q_head = kv_head * GROUP_SIZE + offs_g
    mask_o = mask_g[:, None] & (offs_d < HEAD_DIM)[None, :]
    q_ptr += seq_id * stride_q_b + q_head[:, None].to(tl.int64) * stride_q_h
    m_i = tl.full([BLOCK_G], -float("inf"), tl.float32)
    l_i = tl.zeros([BLOCK_G], tl.float32)
    if FP8:
        COLUMNS: tl.constexpr = HEAD_DIM // 2
        BLOCK_COLUMNS: tl.constexpr = BLOCK_D // 2
        offs_even = 2 * tl.arange(0, BLOCK_COLUMNS)  #: even_dims
        mask_q = mask_g[:, None] & (offs_even < HEAD_DIM)[None, :]
        q = tl.load(q_ptr + offs_even[None, :], mask=mask_q, other=0.0)
        q_odd = tl.load(q_ptr + offs_even[None, :] + 1, mask=mask_q, other=0.0)  #: even_dims
        acc = tl.zeros([BLOCK_G, BLOCK_COLUMNS], tl.float32)
        acc_odd = tl.zeros([BLOCK_G, BLOCK_COLUMNS], tl.float32)
    else:
        COLUMNS: tl.constexpr = HEAD_DIM
        BLOCK_COLUMNS: tl.constexpr = BLOCK_D
        q = tl.load(q_ptr + offs_d[None, :], mask=mask_o, other=0.0)
        q_odd = q  # not used
        acc = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
        acc_odd = 0.0  # not used
    if k_scale_ptr is not None:
        qk_scale *= tl.load(k_scale_ptr)  #: k_scale
    if v_scale_ptr is not None:
        o_scale *= tl.load(v_scale_ptr)  #: v_scale
    # endregion rows

    # region walk
    k_ptr += kv_head.to(tl.int64) * stride_k_h
    v_ptr += kv_head.to(tl.int64) * stride_v_h
    table_ptr = block_table_ptr + seq_id * stride_table_b
    # Offsets count from the first page of the split, so that the loop starts at 0.
    table_ptr += token_begin // PAGE_SIZE  #: first_page
    offset = token_begin % PAGE_SIZE
    # The loop runs over whole tiles and masks nothing; what is left is one masked tile after it.
    num_full = tl.cdiv(num_tokens, BLOCK_N) if MASK_ALL else num_tokens // BLOCK_N  #: num_full
    page_ids = page_ids_of(table_ptr, offset, num_tokens, PAGE_SIZE, BLOCK_N)
    for i in range(num_full):  #: walk_loop
        # The ids of the next tile are on their way while this one is read.
        next_ids = page_ids_of(  #: next_ids
            table_ptr, offset + (i + 1) * BLOCK_N, num_tokens - (i + 1) * BLOCK_N,
            PAGE_SIZE, BLOCK_N,
        )  #: next_ids
        m_i, l_i, acc, acc_odd = attend_tile(
            q, q_odd, m_i, l_i, acc, acc_odd,
            k_ptr, v_ptr, page_ids, offset + i * BLOCK_N, num_tokens - i * BLOCK_N, qk_scale,
            stride_k_page, stride_k_n, stride_v_page, stride_v_n,
            PAGE_SIZE, BLOCK_N, COLUMNS, BLOCK_COLUMNS, MASK_ALL, FP8, INTERPRETED,
        )
        page_ids = next_ids  #: ahead
    if not MASK_ALL:  # noqa: SIM102 - what follows is compiled only then
        if num_full * BLOCK_N < num_tokens:  #: tail
            m_i, l_i, acc, acc_odd = attend_tile(
                q, q_odd, m_i, l_i, acc, acc_odd,
                k_ptr, v_ptr, page_ids, offset + num_full * BLOCK_N,
                num_tokens - num_full * BLOCK_N, qk_scale,
                stride_k_page, stride_k_n, stride_v_page, stride_v_n,
                PAGE_SIZE, BLOCK_N, COLUMNS, BLOCK_COLUMNS, True, FP8, INTERPRETED,
            )
    # endregion walk

    # region write
    if PDL and partial_ptr is None:
        tl.extra.cuda.gdc_launch_dependents()  #: late_trigger
    if FP8:
        acc = tl.join(acc, acc_odd).reshape(BLOCK_G, BLOCK_D)  #: join
    # An empty split has l_i = 0; it stores o = 0 and lse = -inf, without 0 / 0 or log(0).
    l_safe = tl.where(l_i > 0, l_i, 1.0)  #: guard
    o = acc * (o_scale / l_safe)[:, None]  #: scale_o
    lse = tl.where(l_i > 0, m_i + tl.log2(l_safe), -float("inf"))  #: lse2
    if partial_ptr is None or (work_ptr is not None and num_splits == 1):  #: direct
        out = seq_id * num_qo_heads + q_head
        tl.store(o_ptr + out[:, None] * HEAD_DIM + offs_d[None, :], o, mask=mask_o)
        if lse_ptr is not None:
            tl.store(lse_ptr + out, lse * 0.6931471805599453, mask=mask_g)  # ln(2)
    else:
        out = slot_id * num_qo_heads + q_head
        tl.store(partial_ptr + out[:, None] * HEAD_DIM + offs_d[None, :], o, mask=mask_o)
        num_slots = tl.num_programs(1) * tl.num_programs(2)
        partial_ptr += num_slots.to(tl.int64) * num_qo_heads * HEAD_DIM
        tl.store(partial_ptr + out, lse, mask=mask_g)  #: lse_behind
    # endregion write
# endregion kernel


# region combine
@triton.jit(do_not_specialize=["num_splits", "num_slots"])
def _fast_combine_kernel(
    o_ptr,  # [B, Hq, D] contiguous, out
    lse_ptr,  # [B, Hq] fp32 contiguous, out; None: not wanted
    partial_ptr,  # fp32, in: o [num_slots, Hq, D], then lse [num_slots, Hq], base 2
    slots_ptr,  # [B, 2] int32, in: a sequence's first slot, and its splits; None: num_splits each
    num_splits,
    num_slots,
    HEAD_DIM: tl.constexpr,
    BLOCK_S: tl.constexpr,  # splits a step, a power of two
    BLOCK_D: tl.constexpr,  # columns of one program, a power of two
    PDL: tl.constexpr,
):
    """Grid (Hq, cdiv(D, BLOCK_D), B): a program owns BLOCK_D columns of o[seq, head, :]."""
    q_head = tl.program_id(0)
    seq_id = tl.program_id(2).to(tl.int64)
    offs_d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask_d = offs_d < HEAD_DIM
    if PDL:
        tl.extra.cuda.gdc_wait()  # until every partial is written  #: combine_wait
        tl.extra.cuda.gdc_launch_dependents()
    if slots_ptr is None:
        first_slot = seq_id * num_splits
    else:
        first_slot = tl.load(slots_ptr + seq_id * 2).to(tl.int64)
        num_splits = tl.load(slots_ptr + seq_id * 2 + 1)
    lse_partial_ptr = partial_ptr + num_slots.to(tl.int64) * tl.num_programs(0) * HEAD_DIM
    if slots_ptr is None or num_splits > 1:  # a single split has written o itself  #: if_split
        m_i = -float("inf")
        l_i = 0.0
        acc = tl.zeros([BLOCK_D], tl.float32)
        for start_s in range(0, num_splits, BLOCK_S):  #: combine_steps
            offs_s = start_s + tl.arange(0, BLOCK_S)
            mask_s = offs_s < num_splits
            row = (first_slot + offs_s) * tl.num_programs(0) + q_head
            lse_s = tl.load(lse_partial_ptr + row, mask=mask_s, other=-float("inf"))
            o_s = tl.load(
                partial_ptr + row[:, None] * HEAD_DIM + offs_d[None, :],
                mask=mask_s[:, None] & mask_d[None, :],
                other=0.0,
            )  # [BLOCK_S, BLOCK_D]
            m_new = tl.maximum(m_i, tl.max(lse_s, 0))
            m_safe = tl.where(m_new > -float("inf"), m_new, 0.0)
            alpha = tl.exp2(m_i - m_safe)
            p = tl.exp2(lse_s - m_safe)
            l_i = l_i * alpha + tl.sum(p, 0)
            acc = acc * alpha + tl.sum(p[:, None] * o_s, 0)
            m_i = m_new
        l_safe = tl.where(l_i > 0, l_i, 1.0)
        out = seq_id * tl.num_programs(0) + q_head
        tl.store(o_ptr + out * HEAD_DIM + offs_d, acc / l_safe, mask=mask_d)
        if lse_ptr is not None:  # noqa: SIM102 - what follows is compiled only if there is one
            if tl.program_id(1) == 0:
                lse = tl.where(l_i > 0, m_i + tl.log2(l_safe), -float("inf"))
                tl.store(lse_ptr + out, lse * 0.6931471805599453)
# endregion combine


# region fast_decode
def fast_decode(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False,
    k_scale=None, v_scale=None, plan=None,
):
    """Decode attention at the card's limit; as `paged_decode`, and:

    Any page_size from 1 to 1024, any head dim that is a multiple of 8 up to 256, and caches in
    torch.float8_e4m3fn beside q in fp16 or bf16.

    Args:
        k_scale, v_scale: factors on all of K and of V, as floats or as fp32 tensors of one element
            on q's device; None is 1.
        plan: which program reads what: `make_plan(seq_lens, Hkv)` for a ragged batch, or
            `DecodePlan(num_splits)`. None splits all sequences alike, as for the longest that the
            table can hold. A plan guides the speed alone: it may have been made for other lengths.
    """
    tensors = (q, k_cache, v_cache, block_table, seq_lens)
    try:
        unknown = is_checked() or not q.is_cuda  #: checked
        key = None if unknown else call_key(tensors, kv_layout, return_lse, k_scale, v_scale, plan)
        call = _CALLS.get(key)  #: remembered
    except (AttributeError, TypeError):  # no tensor, no plan: the checks say which argument it is
        key = call = None
    ok = sm_scale is None or isinstance(sm_scale, (int, float))
    require(ok, "sm_scale", sm_scale, "a number, or None for 1 / sqrt(D)", TypeError)
    if call is None:
        call = prepare(*tensors, kv_layout, k_scale, v_scale, plan)
        if key is not None:
            if len(_CALLS) >= MAX_CALLS:
                _CALLS.clear()
            _CALLS[key] = call
    o, lse, scratch = call.new_outputs(return_lse)  #: outputs
    call(o, lse, scratch, *tensors, sm_scale, k_scale, v_scale, plan)
    return (o, lse) if return_lse else o
# endregion fast_decode


# region remember
_CALLS: dict[tuple, "FastCall"] = {}
MAX_CALLS = 4096  # then all are forgotten: shapes that never come back must not pile up


def call_key(tensors, kv_layout, return_lse, k_scale, v_scale, plan) -> tuple:
    """All that decides whether a call is valid and what is compiled for it.

    Shapes, strides, dtypes, devices; and the alignment of each address, for which Triton compiles.
    AttributeError where a tensor or the plan is none.
    """
    if k_scale is not None or v_scale is not None:
        tensors += tuple(x for x in (k_scale, v_scale) if isinstance(x, torch.Tensor))
    if plan is not None and plan.work is not None:
        tensors += (plan.work, plan.slots)
    return (
        kv_layout, return_lse, type(k_scale), type(v_scale), plan and plan.num_splits,
        torch.cuda.current_device(),
        *[(x.shape, x.stride(), x.dtype, x.get_device(), x.data_ptr() % 16) for x in tensors],  #: key
    )
# endregion remember


# region prepare
def prepare(q, k_cache, v_cache, block_table, seq_lens, kv_layout, k_scale, v_scale, plan):
    """Check everything, and settle what does not depend on the tensors' contents."""
    inputs = check_fast_inputs(
        q, k_cache, v_cache, block_table, seq_lens, kv_layout, k_scale, v_scale
    )
    if plan is None:
        capacity = inputs.max_pages * inputs.page_size
        plan = DecodePlan(
            choose_num_splits(
                inputs.batch_size, inputs.num_kv_heads, capacity, inputs.page_size, num_sms(q.device)
            )
        )
    check_plan(plan, inputs, q)
    return FastCall(q, inputs, block_table, plan)


class FastCall:
    """What follows from the shapes, strides and types of a call: grids, constants, compiled kernels.

    tile, pdl: None takes what measured best here; the bench gives others.
    """

    def __init__(
        self, q, inputs: PagedInputs, block_table, plan: DecodePlan, tile: Tile | None = None,
        pdl: bool | None = None,
    ):
        batch_size, num_kv_heads, head_dim = inputs.batch_size, inputs.num_kv_heads, inputs.head_dim
        self.fp8 = inputs.k_cache.dtype == torch.float8_e4m3fn
        if self.fp8:
            require_fp8(q.device)
        self.num_splits = plan.num_splits  # a work list comes with each call; none is kept alive
        ragged = plan.work is not None
        self.num_slots = len(plan.work) if ragged else batch_size * plan.num_splits
        self.merges = ragged or plan.num_splits > 1
        columns = block_d(head_dim, self.fp8)
        kv_bytes = inputs.k_cache.element_size()
        if INTERPRETED:
            self.tile = tile or Tile(16, 1, 1)
        else:
            # Of a work list, the splits that count: it is padded, and short ones are soon gone.
            per_sm = num_kv_heads * self.num_slots / num_sms(q.device)
            per_sm = min(per_sm, PROGRAMS_PER_SM) if ragged else per_sm
            target = current_target(q.device)
            self.tile = tile or choose_tile(
                target, kv_bytes, inputs.block_g, columns, per_sm, self.merges
            )
        pdl = has_dependent_launch(q.device) if pdl is None else pdl
        options = {"launch_pdl": True} if pdl else {}
        pair = 2 if self.fp8 else 1  # the kernel sees two e4m3 as one int16
        self.strides = (
            *q.stride()[:2],
            *[stride // pair for stride in inputs.k_cache.stride()[:3]],
            *[stride // pair for stride in inputs.v_cache.stride()[:3]],
            block_table.stride(0),
        )
        self.o = without_memory(q, q.shape, q.dtype)
        self.lse = without_memory(q, q.shape[:2])
        # For each slot o [Hq, D] and lse [Hq].
        size = self.num_slots * inputs.num_qo_heads * (head_dim + 1) if self.merges else 0
        self.scratch = without_memory(q, (size,))
        grid = (num_kv_heads, self.num_slots, 1)
        self.split = FrozenKernel(
            _fast_decode_kernel,
            grid if ragged else (num_kv_heads, plan.num_splits, batch_size),
            {
                "GROUP_SIZE": inputs.group_size, "HEAD_DIM": head_dim,
                "PAGE_SIZE": inputs.page_size, "BLOCK_G": inputs.block_g, "BLOCK_D": columns,
                "BLOCK_N": self.tile.block_n,
                "MASK_ALL": masks_all(kv_bytes, inputs.block_g, columns), "FP8": self.fp8,
                "PDL": pdl, "INTERPRETED": INTERPRETED,
            },
            {"num_warps": self.tile.num_warps, "num_stages": self.tile.num_stages, **options},
        )  # fmt: skip
        # All splits of a head in one step, if they are at most 64: their loads go out together.
        block_s = 16 if ragged else min(64, triton.next_power_of_2(plan.num_splits))  #: block_s
        columns = max(16, min(columns, 2048 // block_s))
        self.combine = FrozenKernel(
            _fast_combine_kernel,
            (inputs.num_qo_heads, triton.cdiv(head_dim, columns), batch_size),
            {"HEAD_DIM": head_dim, "BLOCK_S": block_s, "BLOCK_D": columns, "PDL": pdl},
            {"num_warps": max(1, block_s * columns // 1024), **options},
        )

    def __call__(
        self, o, lse, scratch, q, k_cache, v_cache, block_table, seq_lens, sm_scale=None,
        k_scale=None, v_scale=None, plan=None,
    ):
        """Launch, one kernel or two. lse: None if not wanted; scratch: as `new_outputs` makes it."""
        if q.shape[0] == 0:
            return
        num_splits, work, slots = plan or DecodePlan(self.num_splits)
        if self.fp8 and self.split.launch is None:  # compiled for what it is given first
            k_cache, v_cache = k_cache.view(torch.int16), v_cache.view(torch.int16)
        qk_scale = (q.shape[2] ** -0.5 if sm_scale is None else sm_scale) * LOG2_E
        o_scale = 1.0
        if isinstance(k_scale, (int, float)):
            qk_scale, k_scale = qk_scale * k_scale, None
        if isinstance(v_scale, (int, float)):
            o_scale, v_scale = float(v_scale), None
        self.split(
            (o, lse, scratch, work, q, k_cache, v_cache, block_table, seq_lens, k_scale, v_scale),
            qk_scale, o_scale, num_splits, *self.strides,
        )
        if self.merges:
            self.combine((o, lse, scratch, slots), num_splits, self.num_slots)

    def new_outputs(self, with_lse: bool = True) -> tuple[torch.Tensor, ...]:
        """(o, lse or None, scratch or None), uninitialised; scratch: room for the partials, fp32."""
        return (
            torch.empty_like(self.o),
            torch.empty_like(self.lse) if with_lse else None,
            torch.empty_like(self.scratch) if self.merges else None,
        )


def without_memory(q, shape, dtype=torch.float32) -> torch.Tensor:
    """A contiguous tensor on q's device that keeps no memory: empty_like of it is the fastest `empty`."""
    tensor = q.new_empty(shape, dtype=dtype)
    tensor.untyped_storage().resize_(0)
    return tensor
# endregion prepare
