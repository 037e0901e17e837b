"""Time the lesson kernels over warps and stages on this GPU, and write the record behind kernels/launch.py.

    python scripts/sweep_launch.py --out snippets/results/nvidia-h200/launch_sweep.json

Every configuration is compiled first, in parallel; then each is timed alone, by graph replay over more
KV bytes than the L2 cache holds. Interrupt it at will: finished rows are kept and skipped next time.
"""

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
import triton

from kernels.checks import check_lesson_inputs
from kernels.l2_paged_decode import launch_naive_paged_decode, launch_paged_decode
from kernels.l3_split_kv_decode import launch_split, new_partials
from kernels.launch import Launch, new_outputs
from scripts.sweep_grid import Sweep, error_of, latency_us, num_pools

NUM_KV_HEADS = 8
KV_BYTES = 2**27
DTYPES = {"fp16": torch.float16, "fp32": torch.float32}


def grid_points(quick: bool):
    """(kernel, dtype, group_size, head_dim, page_size, batch_size, ctx, num_splits, warps, stages)."""
    # The lesson's own shapes, densely: Hq 32, Hkv 8, D 128, page 16, fp16.
    shapes = [(1, 32768, 64), (8, 4096, 8), (64, 1024, 1)]
    for (batch_size, ctx, num_splits), warps, stages in itertools.product(shapes, (1, 2, 4, 8), range(1, 8)):
        if stages <= 5:
            yield ("naive", "fp16", 4, 128, 16, batch_size, ctx, 1, warps, stages)
        yield ("packed", "fp16", 4, 128, 16, batch_size, ctx, 1, warps, stages)
        if num_splits > 1:
            yield ("split", "fp16", 4, 128, 16, batch_size, ctx, num_splits, warps, stages)
    if quick:
        return
    # Everything else that the lesson kernels take, at 512 programs.
    for dtype, group_size, head_dim, page_size in itertools.product(
        DTYPES, (4, 32, 64), (16, 32, 64, 128, 256), (16, 32, 64, 128)
    ):
        item = DTYPES[dtype].itemsize
        if page_size * head_dim * item > 2**16:
            continue  # K and V of one page, and what a dot needs beside them, are over 227 KB
        ctx = KV_BYTES // (2 * 64 * NUM_KV_HEADS * head_dim * item)
        for warps in (1, 2, 4, 8, 16):
            if not too_few_or_too_many(warps, dtype, max(16, group_size), head_dim, page_size):
                for stages in (2, 3, 5, 7) if dtype == "fp16" else (2, 3, 5):
                    shape = (64, ctx, 1, warps, stages)
                    yield ("packed", dtype, group_size, head_dim, page_size, *shape)


def too_few_or_too_many(warps: int, dtype: str, rows: int, head_dim: int, page_size: int) -> bool:
    """Warps that would spill by far (their compile takes minutes), or would hold next to nothing."""
    if dtype == "fp32":
        usual = max(page_size, rows) * head_dim // 512
        return not min(usual // 2, 8) <= warps <= max(1, usual * 2) and warps != 16
    usual = max(page_size * head_dim, rows * head_dim, rows * page_size) // 2048
    return not usual // 4 <= warps <= max(1, usual * 2)


def build(point, pools: int):
    """A function that launches this point on page pool i, and the number of pools."""
    kernel, dtype, group_size, head_dim, page_size, batch_size, ctx, num_splits, warps, stages = point
    pages = batch_size * triton.cdiv(ctx, page_size)
    options = {"dtype": DTYPES[dtype], "device": "cuda"}
    q = torch.randn(batch_size, NUM_KV_HEADS * group_size, head_dim, **options)
    cache = torch.randn(2, pools * pages, page_size, NUM_KV_HEADS, head_dim, **options)
    table = torch.stack([torch.randperm(pages, device="cuda") + i * pages for i in range(pools)])
    table = table.view(pools, batch_size, -1).int()
    lens = torch.full((batch_size,), ctx, dtype=torch.int32, device="cuda")
    o, lse = new_outputs(q)
    partials = new_partials(q, num_splits)
    inputs = check_lesson_inputs(q, cache[0], cache[1], table[0], lens, "NHD")
    launch = Launch(warps, stages)

    def run(pool: int):
        tail = (q, inputs, table[pool], lens, None, launch)
        if kernel == "naive":
            return launch_naive_paged_decode(o, lse, *tail)
        if kernel == "packed":
            return launch_paged_decode(o, lse, *tail)
        return launch_split(*partials, None, *tail)

    return run


def compile_point(point) -> str | None:
    """In a worker: compile one point into Triton's cache by launching it on a small case."""
    # One sequence is enough, and its arguments are specialised just as those that will be timed.
    return error_of(lambda: build((*point[:5], 1, *point[6:]), 1)(0))


def measure(point) -> dict:
    """Latency of one point and what the compiler made of it."""
    kv_bytes = 2 * point[5] * point[6] * NUM_KV_HEADS * point[3] * DTYPES[point[1]].itemsize
    pools = num_pools(kv_bytes)
    run = build(point, pools)
    compiled = run(0)
    return {
        "latency_us": latency_us(run, pools), "kv_bytes": kv_bytes, "num_regs": compiled.n_regs,
        "num_spills": compiled.n_spills, "shared_bytes": compiled.metadata.shared,
    }  # fmt: skip


FIELDS = (
    "kernel", "dtype", "group_size", "head_dim", "page_size", "batch_size", "ctx", "num_splits",
    "num_warps", "num_stages",
)  # fmt: skip


MEASURED = ("kernels/l2_paged_decode.py", "kernels/l3_split_kv_decode.py")
SWEEP = Sweep("launch_sweep", FIELDS, MEASURED, grid_points, compile_point, measure)

if __name__ == "__main__":
    SWEEP.main(__doc__, "the lesson's own shapes only")
