"""One decode step of one layer on buffers that never move: written once, run eagerly or replayed.

Lesson: l1_table_to_device. Reference: paged_attention_reference on the cache after the write.
Source: own.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from kernels.checks import check_lesson_inputs, require
from kernels.l1_table_to_device import Declaration, SharedMetadata
from kernels.l1_write_kv import write_kv
from kernels.l3_split_kv_decode import launch_split_kv, new_partials
from kernels.launch import choose_launch, new_outputs


# region tables
class StepTables(NamedTuple):
    """What the host decides anew at each step.

    Three views of one int32 tensor: one copy moves all.
    """

    seq_lens: torch.Tensor  # [B] tokens, the new one included; 0: idle row
    slot_mapping: torch.Tensor  # [B] where the new token goes; -1: nowhere
    block_table: torch.Tensor  # [B, max_pages]


def declare_tables(batch_size: int, max_pages: int) -> Declaration:
    """StepTables of B rows at their largest, as one flat tensor."""
    return Declaration("step_tables", (batch_size * (2 + max_pages),))


def as_tables(flat: torch.Tensor, batch_size: int) -> StepTables:
    """The three views of a flat tensor, on either side."""
    lens, slots, table = flat.split([batch_size, batch_size, flat.numel() - 2 * batch_size])
    return StepTables(lens, slots, table.view(batch_size, -1))
# endregion tables


# region buffers
class StepBuffers(NamedTuple):
    """All that one step touches: addresses and shapes stay, contents change."""

    q: torch.Tensor  # [B, Hq, D], in: of the new tokens
    k: torch.Tensor  # [B, Hkv, D], in: likewise
    v: torch.Tensor  # [B, Hkv, D], in: likewise
    tables: StepTables  # in, on the device
    k_cache: torch.Tensor  # [num_pages, page_size, Hkv, D], in and out
    v_cache: torch.Tensor  # [num_pages, page_size, Hkv, D], in and out
    o: torch.Tensor  # [B, Hq, D], out
    lse: torch.Tensor  # [B, Hq] fp32, out
    o_partial: torch.Tensor  # [B, Hq, num_splits, D] fp32, scratch
    lse_partial: torch.Tensor  # [B, Hq, num_splits] fp32, scratch


def new_buffers(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tables: StepTables,
    k_cache: torch.Tensor, v_cache: torch.Tensor, num_splits: int,
) -> StepBuffers:
    """These inputs and NHD caches, with outputs and scratch for num_splits."""
    require(isinstance(num_splits, int) and num_splits >= 1, "num_splits", num_splits, "an int >= 1")
    return StepBuffers(
        q, k, v, tables, k_cache, v_cache, *new_outputs(q), *new_partials(q, num_splits)
    )
# endregion buffers


# region step
def decode_step(x: StepBuffers) -> None:
    """Write the new tokens' K and V, then attend: x.o and x.lse.

    Grids follow from shapes alone, lengths and tables are read on the
    device, nothing is allocated or copied: so it can be captured.
    """
    seq_lens, slot_mapping, block_table = x.tables
    write_kv(x.k, x.v, x.k_cache, x.v_cache, slot_mapping)  #: step_write
    inputs = check_lesson_inputs(x.q, x.k_cache, x.v_cache, block_table, seq_lens, "NHD")
    launch = choose_launch(inputs, x.q)
    partials = (x.o_partial, x.lse_partial) if x.o_partial.shape[2] > 1 else None
    launch_split_kv(x.o, x.lse, partials, x.q, inputs, block_table, seq_lens, None, launch)  #: step_attend
# endregion step


# region refill
def refill_tables(
    shared: SharedMetadata, batch_size: int,
    lens: Sequence[int], slots: Sequence[int], pages: Mapping[tuple[int, int], int],
) -> None:
    """The host's part of a step: n <= B sequences, then B - n idle rows.

    lens [n]: tokens of each, the new one included.
    slots [n]: where the new ones go.
    pages: what is new in the table since the last step, (row, logical page)
    -> physical page. The rest of it stays.
    """
    n = len(lens)
    require(n <= batch_size, "sequences", n, f"at most {batch_size}, as the buffers hold")
    require(len(slots) == n, "slots", len(slots), f"{n}, as lens")
    tables = as_tables(shared.host_acquire(), batch_size)  #: host_waits
    tables.seq_lens[:n] = torch.tensor(lens, dtype=torch.int32)
    tables.seq_lens[n:] = 0  #: idle_rows
    tables.slot_mapping[:n] = torch.tensor(slots, dtype=torch.int32)
    tables.slot_mapping[n:] = -1  #: idle_rows
    table = tables.block_table.numpy()  # the same memory
    for place, page in pages.items():
        table[place] = page  #: new_pages
    shared.host_release()  #: host_done
# endregion refill


# region capture
def capture_step(x: StepBuffers) -> torch.cuda.CUDAGraph:
    """The step as a CUDA graph: launches on the addresses of x, no copy.

    Each replay reads what lies in x then. x has to outlive the graph.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compile outside the capture
        decode_step(x)  #: warm_up
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decode_step(x)  #: capture
    return graph


def replay_step(graph: torch.cuda.CUDAGraph, shared: SharedMetadata) -> None:
    """One step: the copy before the graph and outside it, on one stream."""
    shared.device_acquire()  #: refill_outside
    graph.replay()  #: replay
    shared.device_release()
# endregion capture
