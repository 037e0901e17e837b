"""Which program reads what: splits for a uniform batch, and a work list for a ragged one.

Lesson: l7_fast_decode. Source: own.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from kernels.checks import PagedInputs, check_runnable, check_tensor, is_checked, require
from kernels.launch import num_sms

# Programs a SM that a plan aims at, and tokens a split that it stops at: measured, see the lesson.
PROGRAMS_PER_SM = 6
MIN_TOKENS = 128
MAX_BATCH = 4096  # one program makes the plan, and holds a sequence in each lane
MAX_PROGRAMS_PER_SM = 64
MAX_GRID = 65535  # CUDA's limit on the second and the third axis of a grid


class DecodePlan(NamedTuple):
    """How the sequences of a batch are split.

    num_splits: of every sequence, if `work` is None; else the most that one may have.
    work: [slots, 4] int32: sequence, split, splits of that sequence, 0.
    slots: [B, 2] int32: a sequence's first row in `work`, and its splits.
    """

    num_splits: int
    work: torch.Tensor | None = None
    slots: torch.Tensor | None = None


# region plan_kernel
@triton.jit
def _plan_kernel(
    work_ptr,  # [num_slots, 4] int32, out
    slots_ptr,  # [B, 2] int32, out
    seq_lens_ptr,  # [B] int32, in
    batch_size,
    num_slots,
    num_kv_heads,
    num_programs,  # to aim at
    MIN_TOKENS: tl.constexpr,  # a split
    BLOCK_B: tl.constexpr,  # B rounded up to a power of two
):
    """Grid (1,): one program plans the whole batch."""
    offs_b = tl.arange(0, BLOCK_B)
    seq_lens = tl.load(seq_lens_ptr + offs_b, mask=offs_b < batch_size, other=0)
    total = tl.sum(seq_lens.to(tl.int64), 0) * num_kv_heads
    tokens = tl.maximum(tl.cdiv(total, num_programs), MIN_TOKENS).to(tl.int32)  #: tokens_a_split

    # The longest splits start first: what is left at the end is short, and fills the gaps.
    longest = tl.cdiv(seq_lens, tl.maximum(tl.cdiv(seq_lens, tokens), 1))  #: longest
    key = longest.to(tl.int64) * BLOCK_B + offs_b
    key = tl.where(offs_b < batch_size, key, -1)
    order = (tl.sort(key, descending=True) % BLOCK_B).to(tl.int32)  #: sort
    valid = offs_b < batch_size  # the others have sorted to the end
    seq_lens = tl.load(seq_lens_ptr + order, mask=valid, other=0)
    splits = tl.where(valid, tl.maximum(tl.cdiv(seq_lens, tokens), 1), 0)  #: splits
    first = tl.cumsum(splits, 0) - splits  #: first
    tl.store(slots_ptr + order * 2, first, mask=valid)
    tl.store(slots_ptr + order * 2 + 1, splits, mask=valid)
    for split in range(tl.max(splits, 0)):
        row = work_ptr + (first + split) * 4
        mask = split < splits
        tl.store(row, order, mask=mask)
        tl.store(row + 1, split, mask=mask)
        tl.store(row + 2, splits, mask=mask)
        tl.store(row + 3, 0, mask=mask)
    # Rows that are left over are the last of two splits plus one: a range with nothing in it.
    for start in range(tl.sum(splits, 0), num_slots, BLOCK_B):  #: left_over
        row = work_ptr + (start + offs_b) * 4
        mask = start + offs_b < num_slots
        tl.store(row, 0, mask=mask)
        tl.store(row + 1, 2, mask=mask)
        tl.store(row + 2, 2, mask=mask)
        tl.store(row + 3, 0, mask=mask)
# endregion plan_kernel


# region make_plan
def make_plan(
    seq_lens: torch.Tensor, num_kv_heads: int, *, programs_per_sm: float = PROGRAMS_PER_SM
) -> DecodePlan:
    """A work list for a ragged batch: every split about as long, the longest first.

    Made on the device by one launch, without a copy to the host: after a first call, which compiles,
    it can be captured in a CUDA graph; one serves all layers of a step. It guides the balance alone:
    `fast_decode` is right with whatever lengths it gets later, if the batch size is the same.

    Args:
        seq_lens: [B] int32, as `fast_decode` takes it; B up to MAX_BATCH.
        num_kv_heads: Hkv of the cache.
        programs_per_sm: programs to aim at, a streaming multiprocessor.
    """
    check_tensor("seq_lens", seq_lens, "B", dtype=torch.int32)
    check_runnable("seq_lens", seq_lens)
    require(seq_lens.stride(0) == 1 or len(seq_lens) < 2, "seq_lens", seq_lens, "contiguous")
    batch_size = len(seq_lens)
    require(batch_size <= MAX_BATCH, "B", batch_size, f"at most {MAX_BATCH} sequences")
    ok = isinstance(num_kv_heads, int) and num_kv_heads >= 1
    require(ok, "num_kv_heads", num_kv_heads, "at least 1, an int")
    ok = isinstance(programs_per_sm, (int, float)) and 0 < programs_per_sm <= MAX_PROGRAMS_PER_SM
    wanted = f"a number above 0, at most {MAX_PROGRAMS_PER_SM}"
    require(ok, "programs_per_sm", programs_per_sm, wanted)
    num_programs = max(1, int(programs_per_sm * num_sms(seq_lens.device)))
    # Rounding up costs each sequence less than one split.
    extra = triton.cdiv(num_programs, num_kv_heads)  #: extra
    num_slots = batch_size + extra if batch_size else 0
    work = torch.empty(num_slots, 4, dtype=torch.int32, device=seq_lens.device)
    slots = torch.empty(batch_size, 2, dtype=torch.int32, device=seq_lens.device)
    if batch_size:
        _plan_kernel[(1,)](
            work, slots, seq_lens, batch_size, num_slots, num_kv_heads, num_programs,
            MIN_TOKENS=MIN_TOKENS, BLOCK_B=triton.next_power_of_2(max(2, batch_size)), num_warps=4,
        )
    return DecodePlan(extra + 1, work, slots)
# endregion make_plan


# region check_plan
def check_plan(plan, inputs: PagedInputs, q) -> None:
    """Refuse what is no plan for this batch size, table and device."""
    require(isinstance(plan, DecodePlan), "plan", plan, "a DecodePlan, as make_plan gives it", TypeError)
    num_splits, work, slots = plan
    batch_size = inputs.batch_size
    ok = isinstance(num_splits, int) and not isinstance(num_splits, bool)
    ok = ok and 1 <= num_splits <= MAX_GRID
    require(ok, "plan.num_splits", num_splits, f"an int from 1 to {MAX_GRID}")
    require(batch_size <= MAX_GRID, "B", batch_size, f"at most {MAX_GRID}: it is an axis of the grid")
    # The kernel computes split * units in int32; a unit has at least 16 tokens.
    product = num_splits * (inputs.max_pages * inputs.page_size // 16 + 1)
    wanted = "less than 2**31: fewer splits, or a narrower table"
    require(product < 2**31, "plan.num_splits * 16-token units of the table", product, wanted)
    if work is None and slots is None:
        return
    for name, tensor, rows, columns in (("work", work, None, 4), ("slots", slots, batch_size, 2)):
        check_tensor(f"plan.{name}", tensor, f"slots, {columns}", like=q, dtype=torch.int32)
        ok = tensor.is_contiguous() and tensor.shape[1] == columns and rows in (None, len(tensor))
        require(ok, f"plan.{name}", tensor, f"a contiguous [{rows or 'slots'}, {columns}], for q's batch")
    require(len(work) <= MAX_GRID, "plan.work", work, f"at most {MAX_GRID} rows")
    if is_checked():
        check_rows(work.tolist(), slots.tolist())


def check_rows(work: list[list[int]], slots: list[list[int]]) -> None:
    """Checked mode: every row of the work list is a split of a sequence, and no slot is out of it."""
    for i, (seq_id, split_id, num_splits, _) in enumerate(work):
        ok = 0 <= seq_id < len(slots) and 0 <= split_id <= num_splits and num_splits >= 1
        require(ok, f"plan.work[{i}]", work[i], f"a sequence below {len(slots)}, a split, and its count")
    for b, (first, count) in enumerate(slots):
        ok = count >= 1 and first >= 0 and first + count <= len(work)
        require(ok, f"plan.slots[{b}]", slots[b], f"rows within the {len(work)} of plan.work")
# endregion check_plan
