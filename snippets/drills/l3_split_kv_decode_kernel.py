"""Split-KV decode: several programs share one sequence, a second kernel merges what they found.

Lesson: l3_split_kv_decode. Reference: paged_attention_reference.
Source: own; the idea is Flash-Decoding (Dao, Haziza, Massa, Sizov, 2023).
"""

import torch
import triton
import triton.language as tl

from kernels.checks import (
    PagedInputs,
    check_lesson_inputs,
    check_offsets,
    check_runnable,
    check_tensor,
    require,
)
from kernels.l2_paged_decode import attend_pages, launch_paged_decode
from kernels.launch import Launch, choose_launch, input_arguments, new_outputs, num_sms
from kernels.online_softmax import online_softmax_step


@triton.jit
def _split_kernel(
    o_partial_ptr,  # [B, Hq, num_splits, D] fp32 contiguous, out: o of each split (or acc)
    lse_partial_ptr,  # [B, Hq, num_splits] fp32 contiguous, out: lse of each split (or m)
    l_partial_ptr,  # [B, Hq, num_splits] fp32 contiguous, out: l; None if NORMALIZED
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
    NORMALIZED: tl.constexpr,  # store (o, lse); else (acc, m, l)
):
    """Grid (B, Hkv, num_splits): a program owns one split of the GROUP_SIZE rows of its KV head."""
    # TODO: Find your pages: the splits of a sequence share whole pages, each page once.
    #   Attend to them (attend_pages of L2) and store o_partial and lse_partial of this split.
    #   A split without pages stores o = 0 and lse = -inf. NORMALIZED is True in this drill.


@triton.jit
def _combine_kernel(
    o_ptr,  # [B, Hq, D] contiguous, out
    lse_ptr,  # [B, Hq] fp32 contiguous, out
    o_partial_ptr,  # [num_splits, B, Hq, D] by its strides, in
    lse_partial_ptr,  # [num_splits, B, Hq] by its strides, in
    num_splits,
    head_dim,  # D
    stride_o_s, stride_o_b, stride_o_h,  # of o_partial, in elements
    stride_lse_s, stride_lse_b, stride_lse_h,  # of lse_partial, in elements
    BLOCK_S: tl.constexpr,  # splits a step, a power of two
    BLOCK_D: tl.constexpr,  # columns of one program, a power of two
):
    """Grid (B, Hq, cdiv(D, BLOCK_D)): a program owns BLOCK_D columns of o[seq, head, :]."""
    # TODO: Merge num_splits states of one head: lse says what each o weighs.
    #   The strides say where a split's o and lse lie. D need not be a multiple of BLOCK_D.
    #   Heads whose splits are all empty give o = 0 and lse = -inf.


# All three from the sweep in snippets/results/nvidia-h200/split_choice.json, 240 shapes.
PROGRAMS_PER_SM = 4  # that run side by side, to keep the memory busy
TOKENS_PER_SPLIT = 1024  # where programs queue anyway: short ones keep neighbours together
MAX_QUEUED_SPLITS = 16  # there; a guess from the table's width may be far too large


def choose_num_splits(
    batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int
) -> int:
    """Splits a sequence, at least 1: enough programs for all SMs, and none of them empty."""
    num_pages = -(-max_seq_len // page_size)
    at_once = PROGRAMS_PER_SM * num_sms
    programs = max(1, batch_size * num_kv_heads)
    if programs <= at_once:
        wanted = min(at_once // programs, num_sms)  # more would cost in the combine
    else:
        wanted = min(-(-max_seq_len // TOKENS_PER_SPLIT), MAX_QUEUED_SPLITS)
    most = min(wanted, num_pages)
    pages_per_split = -(-num_pages // max(1, most))
    return max(1, -(-num_pages // max(1, pages_per_split)))  # none of them empty


def split_kv_decode(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False,
    num_splits=None, max_seq_len=None,
):
    """Decode attention, num_splits programs per (sequence, KV head); as `paged_decode`, and:

    Args:
        num_splits: None chooses it on the host, from B, Hkv, max_seq_len and the number of SMs.
        max_seq_len: the longest sequence, where the caller knows it; None takes the capacity of
            the table. It guides that choice alone: the result is right whatever it says.
    """
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)
    launch = choose_launch(inputs, q)
    num_splits = resolve_num_splits(inputs, q, num_splits, max_seq_len)
    o, lse = new_outputs(q)
    partials = new_partials(q, num_splits) if num_splits > 1 else None
    launch_split_kv(o, lse, partials, q, inputs, block_table, seq_lens, sm_scale, launch)
    return (o, lse) if return_lse else o


def launch_split_kv(
    o, lse, partials, q, inputs: PagedInputs, block_table, seq_lens, sm_scale, launch: Launch
):
    """The launches alone, into given outputs; partials: from `new_partials`, or None for one split."""
    arguments = q, inputs, block_table, seq_lens, sm_scale, launch
    if partials is None:  # nothing to merge: L2's kernel writes o itself
        launch_paged_decode(o, lse, *arguments)
    else:
        o_partial, lse_partial = partials
        launch_split(o_partial, lse_partial, None, *arguments)
        launch_combine(o, lse, o_partial.permute(2, 0, 1, 3), lse_partial.permute(2, 0, 1))


def launch_split(
    o_partial, lse_partial, l_partial, q, inputs: PagedInputs, block_table, seq_lens, sm_scale,
    launch: Launch,
):
    """The split kernel alone; with l_partial it stores un-normalised partials (acc, m, l)."""
    num_splits = o_partial.shape[2]
    return _split_kernel[(inputs.batch_size, inputs.num_kv_heads, num_splits)](
        o_partial, lse_partial, l_partial,
        *input_arguments(q, inputs, block_table, seq_lens, sm_scale),
        GROUP_SIZE=inputs.group_size, HEAD_DIM=inputs.head_dim, PAGE_SIZE=inputs.page_size,
        BLOCK_G=inputs.block_g, NORMALIZED=l_partial is None,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )


def launch_combine(o, lse, o_partial, lse_partial):
    """The combine kernel alone: o_partial [S, B, Hq, D], lse_partial [S, B, Hq], any strides."""
    num_splits, batch_size, num_qo_heads, head_dim = o_partial.shape
    block_s, block_d = combine_tile(num_splits, head_dim)
    _combine_kernel[(batch_size, num_qo_heads, triton.cdiv(head_dim, block_d))](
        o, lse, o_partial, lse_partial, num_splits, head_dim,
        *o_partial.stride()[:3], *lse_partial.stride(),
        BLOCK_S=block_s, BLOCK_D=block_d,
        num_warps=1,  # a tile of 2048 fp32 is 64 registers a lane
    )


def combine_tile(num_splits: int, head_dim: int) -> tuple[int, int]:
    """Splits a step and columns a program of the combine kernel: at most 2048 elements."""
    block_s = min(64, triton.next_power_of_2(num_splits))
    return block_s, min(2048 // block_s, triton.next_power_of_2(head_dim))


def resolve_num_splits(inputs: PagedInputs, q, num_splits, max_seq_len) -> int:
    """The number of splits to launch, from what the caller gave; no device data is read."""
    if num_splits is not None:
        ok = isinstance(num_splits, int) and 1 <= num_splits <= 65535  # CUDA's limit on grid axis 2
        require(ok, "num_splits", num_splits, "an int from 1 to 65535")
        return num_splits
    capacity = inputs.max_pages * inputs.page_size
    max_seq_len = capacity if max_seq_len is None else max_seq_len
    ok = isinstance(max_seq_len, int) and max_seq_len >= 0
    require(ok, "max_seq_len", max_seq_len, "an int >= 0")
    return choose_num_splits(
        inputs.batch_size, inputs.num_kv_heads, min(max_seq_len, capacity), inputs.page_size,
        num_sms(q.device),
    )


def new_partials(q, num_splits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """o_partial [B, Hq, num_splits, D] and lse_partial [B, Hq, num_splits], fp32, uninitialised."""
    shape = (*q.shape[:2], num_splits)
    return (
        torch.empty(*shape, q.shape[2], dtype=torch.float32, device=q.device),
        torch.empty(shape, dtype=torch.float32, device=q.device),
    )
