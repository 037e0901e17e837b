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


# TODO: The split kernel, _split_kernel, with grid (B, Hkv, num_splits): a program attends to its
#   pages (attend_pages of L2) and stores o and lse of its split.
#   Call its pointers o_partial_ptr, lse_partial_ptr, q_ptr, k_ptr, v_ptr, block_table_ptr and
#   seq_lens_ptr: the tests look accesses up by these names.


# TODO: The combine kernel, _combine_kernel: merges the num_splits states of each head.
#   Call its pointers o_ptr, lse_ptr, o_partial_ptr and lse_partial_ptr.


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
    # TODO: One split has nothing to merge: launch_paged_decode of L2 writes o and lse itself.
    #   Else: scratch for the partials, both launches; return o, or (o, lse) if return_lse.
    #   new_outputs and input_arguments help; inputs.block_g is the rows of the tile.


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
