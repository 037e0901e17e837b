"""The l3_split_kv_decode lesson: the ranges of the splits, both kernels, and what is merged."""

import math

import torch
import triton
import triton.language as tl

from kernels import choose_num_splits, merge_states, paged_decode, split_kv_decode
from kernels.checks import check_lesson_inputs
from kernels.l3_split_kv_decode import launch_combine, launch_split, new_partials, split_range
from kernels.launch import Launch, new_outputs
from scripts.trace_examples import (
    PAGE_SIZE,
    SCORES,
    VALUES,
    bench_shape,
    coordinates,
    int32,
    launch_grid,
    page_slots,
    paged_example,
    rounded,
    shown,
    softmax,
    softmax_of,
    states,
)
from scripts.tracer import launches_alone, trace
from scripts.traces.l2_paged_decode import NUM_SMS

H200_SMS = NUM_SMS["NVIDIA H200"]
LAUNCH = Launch(num_warps=1, num_stages=1)  # the interpreter knows neither


def record() -> dict:
    """The ranges of 4 splits; both launches at 1 x 32768; one head combined; the merge worked by hand."""
    return {
        "page_ranges": [page_ranges(ctx, 4) for ctx in (1000, 37, 100)],
        "launch": two_kernels(),
        "combine_head": combine_head(),
        "merge_example": merge_example(),
        "sm_grid": sm_grid(),
    }


def page_ranges(ctx: int, num_splits: int, page_size: int = PAGE_SIZE) -> dict:
    """The logical pages whose table entries each split read, and the tokens whose keys it read."""
    arguments = paged_example(ctx, 1, 1, page_size=page_size)
    q, _, _, table, seq_lens = arguments
    inputs = check_lesson_inputs(*arguments, "NHD")
    with trace() as t:
        launch_split(*new_partials(q, num_splits), None, q, inputs, table, seq_lens, None, LAUNCH)
    splits = []
    for s in range(num_splits):
        table_reads = coordinates(t.reads("block_table_ptr"), (0, 0, s))
        tokens = sum(map(len, page_slots(t.reads("k_ptr"), (0, 0, s)).values()))
        splits.append({"pages": table_reads[1] if table_reads else [], "tokens": tokens})
    return {"ctx": ctx, "page_size": page_size, "splits": splits}


@triton.jit
def _ranges_kernel(
    begin_ptr, end_ptr,  # [B, num_splits] int32, out
    seq_lens_ptr,  # [B] int32, in
    num_splits,
    PAGE_SIZE: tl.constexpr,
    BLOCK_S: tl.constexpr,  # num_splits rounded up to a power of two
):  # fmt: skip
    """Grid (B,): the range that the split kernel gives each split of a sequence, all splits at once."""
    seq_id = tl.program_id(0)
    split_id = tl.arange(0, BLOCK_S)
    begin, end = split_range(tl.load(seq_lens_ptr + seq_id), split_id, num_splits, PAGE_SIZE)
    out = seq_id * num_splits + split_id
    tl.store(begin_ptr + out, begin, mask=split_id < num_splits)
    tl.store(end_ptr + out, end, mask=split_id < num_splits)


def split_ranges(seq_lens: list[int], num_splits: int, page_size: int) -> list[dict]:
    """What `page_ranges` gives for each length, from the kernel's own `split_range`: no page is read.

    A hundred times as fast, so that a reader's numbers can be drawn while they are typed.
    """
    begin, end = (torch.empty(len(seq_lens), num_splits, dtype=torch.int32) for _ in range(2))
    block_s = triton.next_power_of_2(num_splits)
    _ranges_kernel[(len(seq_lens),)](
        begin, end, int32(seq_lens), num_splits, PAGE_SIZE=page_size, BLOCK_S=block_s
    )
    rows = []
    for ctx, *bounds in zip(seq_lens, begin.tolist(), end.tolist(), strict=True):
        pages = [list(range(*bound)) for bound in zip(*bounds, strict=True)]
        tokens = [sum(min(page_size, ctx - page * page_size) for page in found) for found in pages]
        splits = [{"pages": p, "tokens": n} for p, n in zip(pages, tokens, strict=True)]
        rows.append({"ctx": ctx, "page_size": page_size, "splits": splits})
    return rows


def sm_grid(
    gpu: str = "NVIDIA H200", batch_size: int = 1, num_kv_heads: int = 8, ctx: int = 32768,
    num_splits: int | None = None,
) -> dict:  # fmt: skip
    """The grids of paged_decode and of split_kv_decode on a card; num_splits None: as many as are chosen.

    Grids follow from the shapes, and no program runs: one token a sequence and a head dim of 16 are enough.
    """
    chosen = num_splits is None
    if chosen:
        num_splits = choose_num_splits(batch_size, num_kv_heads, ctx, PAGE_SIZE, NUM_SMS[gpu])
    q = torch.zeros(batch_size, num_kv_heads, 16)
    cache = torch.zeros(1, PAGE_SIZE, num_kv_heads, 16)
    arguments = q, cache, cache, int32([[0]] * batch_size), int32([1] * batch_size)
    with launches_alone() as launches:
        paged_decode(*arguments)
        split_kv_decode(*arguments, num_splits=num_splits)
    unsplit, split, *_ = launches
    return {
        "gpu": gpu, "num_sms": NUM_SMS[gpu], "batch_size": batch_size, "num_kv_heads": num_kv_heads,
        "ctx": ctx, "num_splits": num_splits, "chosen": chosen,
        "unsplit_grid": unsplit.grid[:2], "grid": split.grid, "kernel": split.kernel,
    }  # fmt: skip


def two_kernels() -> dict:
    """Both launches of L3 at 1 x 32768: grids, tensors, and who reads and writes what."""
    arguments = bench_shape(2 * PAGE_SIZE)
    q, k_cache, v_cache, table, seq_lens = arguments
    num_splits = choose_num_splits(1, 8, 32768, PAGE_SIZE, H200_SMS)
    inputs = check_lesson_inputs(*arguments, "NHD")
    o, lse = new_outputs(q)
    o_partial, lse_partial = new_partials(q, num_splits)
    with trace() as t:
        launch_split(o_partial, lse_partial, None, q, inputs, table, seq_lens, None, LAUNCH)
        launch_combine(o, lse, o_partial.permute(2, 0, 1, 3), lse_partial.permute(2, 0, 1))
    tensors = {
        "q": q, "k_cache": k_cache, "v_cache": v_cache, "block_table": table, "seq_lens": seq_lens,
        "o_partial": o_partial, "lse_partial": lse_partial, "o": o, "lse": lse,
    }  # fmt: skip
    name_of = {tensor.data_ptr(): name for name, tensor in tensors.items()}
    kernels = []
    for launch in t.launches:
        accesses = [access for access in t.accesses if access.launch is launch]
        used = {
            op: [name for name in tensors
                 if name in {name_of[a.view.tensor.data_ptr()] for a in accesses if a.op == op}]
            for op in ("load", "store")
        }  # fmt: skip
        kernels.append(
            {"name": launch.kernel, "grid": launch.grid, "reads": used["load"], "writes": used["store"]}
        )
    return {
        "batch_size": 1, "ctx": 32768, "num_sms": H200_SMS, "num_splits": num_splits, "kernels": kernels,
        "tensors": {
            name: {"shape": list(x.shape), "dtype": str(x.dtype).removeprefix("torch."), "bytes": x.nbytes}
            for name, x in tensors.items()
        },
        "unsplit_grid": launch_grid(),
    }  # fmt: skip


def combine_head(ctx: int = 37, num_splits: int = 4, head: int = 2) -> dict:
    """One program of the combine kernel: the partials it read, the weights it gave them, the row it wrote."""
    arguments = paged_example(ctx, 4, 1)
    q, _, _, table, seq_lens = arguments
    inputs = check_lesson_inputs(*arguments, "NHD")
    o, lse = new_outputs(q)
    o_partial, lse_partial = new_partials(q, num_splits)
    launch_split(o_partial, lse_partial, None, q, inputs, table, seq_lens, None, LAUNCH)
    with trace() as t:
        launch_combine(o, lse, o_partial.permute(2, 0, 1, 3), lse_partial.permute(2, 0, 1))
    program = (0, head, 0)
    read_o, read_lse = (coordinates(t.reads(f"{x}_partial_ptr"), program) for x in ("o", "lse"))
    written_o, written_lse = (coordinates(t.writes(f"{x}_ptr"), program) for x in ("o", "lse"))
    return {
        "ctx": ctx, "head": head, "grid": t.launches[0].grid,
        "reads": {"splits": read_o[0], "heads": read_o[2], "columns": read_o[3], "lse_splits": read_lse[0]},
        "writes": {"heads": written_o[1], "columns": written_o[2], "lse_heads": written_lse[1]},
        "o_partial": [[rounded(x, 3) for x in row] for row in o_partial[0, head].tolist()],
        "lse_partial": list(map(rounded, lse_partial[0, head].tolist())),
        "factors": factors(lse_partial[0, head][:, None, None]),
        "o": [rounded(x, 3) for x in o[0, head].tolist()], "lse": rounded(lse[0, head].item()),
    }  # fmt: skip


def merge_example(scores: list[float] = SCORES, values: list[float] = VALUES, cut: int = 2) -> dict:
    """Scores before and after the cut as two splits, merged; and in one pass. A split may be empty."""
    splits, parts = [], []
    for part in (slice(cut), slice(cut, None)):
        own, weighed = scores[part], values[part]
        # The state has a row of a power of two; -inf fills it up, and weighs nothing.
        padding = triton.next_power_of_2(max(1, len(own))) - len(own)
        (state,) = states([*own, *[-math.inf] * padding], [*weighed, *[0.0] * padding], len(own) + padding)
        o, lse = softmax(own, weighed)
        splits.append({"scores": own, "values": weighed, **state, **shown(o, lse)})
        parts.append((o, lse))
    o, lse = (torch.stack(x).view(2, 1, 1, -1) for x in zip(*parts, strict=True))
    merged_o, merged_lse = merge_states(o, lse[..., 0])
    return {
        "splits": splits,
        "factors": factors(lse[..., 0]),
        "merged": shown(merged_o, merged_lse),
        "one_pass": softmax_of(scores, values),
    }


def factors(lse: torch.Tensor) -> list[float]:
    """exp(lse_s - max lse) of each split, as the combine kernel has them; lse [S, 1, 1].

    Splits that hold unit vectors show them: what comes out is the share of each, and the largest factor is 1.
    """
    shares, _ = merge_states(torch.eye(len(lse))[:, None, None], lse)
    return [rounded(share) for share in (shares / shares.max()).flatten().tolist()]
