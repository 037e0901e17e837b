"""Time fast_decode over its tiles on this GPU, and write the record behind kernels/l7_launch.py.

    python scripts/sweep_tiles.py --out snippets/results/nvidia-h200/tile_sweep.json

Every configuration is compiled first, in parallel; then each is timed alone, by graph replay over more
KV bytes than the L2 cache holds. Interrupt it at will: finished rows are kept and skipped next time.
"""

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
import triton

from kernels.checks import check_fast_inputs
from kernels.l3_split_kv_decode import choose_num_splits
from kernels.l7_fast_decode import FastCall
from kernels.l7_launch import TILES, Tile, block_d
from kernels.l7_plan import DecodePlan
from scripts.sweep_grid import Sweep, error_of, latency_us, num_pools

NUM_KV_HEADS = 8
PAGE_SIZE = 16
KV_BYTES = 2**27
# With splits, with one, and with more programs an SM than run well side by side; heads as in the lesson.
SHAPES = ((1, 32768), (8, 4096), (16, 8192), (64, 1024), (256, 512), (128, 2048))
DTYPES = {"fp8": torch.float8_e4m3fn, "fp16": torch.float16, "fp32": torch.float32}
FIELDS = (
    "dtype", "group_size", "head_dim", "batch_size", "ctx", "num_splits",
    "block_n", "num_warps", "num_stages",
)  # fmt: skip


def grid_points(quick: bool):
    """Points in the order of FIELDS: every entry of TILES, then SHAPES, for SPLIT and MANY."""
    for dtype, group_size, head_dim in itertools.product(DTYPES, (4, 32, 64), (16, 32, 64, 128, 256)):
        if quick and (group_size, head_dim) != (4, 128):
            continue
        ctx = KV_BYTES // (2 * 64 * NUM_KV_HEADS * head_dim * DTYPES[dtype].itemsize)
        for tile in tiles(dtype, group_size, head_dim):
            yield (dtype, group_size, head_dim, 64, ctx, 1, *tile)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    for dtype, (batch_size, ctx) in itertools.product(("fp8", "fp16"), SHAPES):
        num_splits = choose_num_splits(batch_size, NUM_KV_HEADS, ctx, PAGE_SIZE, sms)
        for tile in tiles(dtype, 4, 128):
            yield (dtype, 4, 128, batch_size, ctx, num_splits, *tile)


def tiles(dtype: str, group_size: int, head_dim: int):
    """The table's tile; and those of 2 to 16 KiB of K, with warps that neither spill by far nor idle."""
    item, rows = DTYPES[dtype].itemsize, max(16, group_size)
    columns = block_d(head_dim, dtype == "fp8")
    yield Tile(*map(int, TILES[item, rows].split()[columns.bit_length() - 5].split("x")))
    for block_n in (16, 32, 64, 128):
        if not (2**11 <= block_n * head_dim * item <= 2**14 or (block_n in (16, 64) and head_dim <= 32)):
            continue
        held = max(block_n * (4 if dtype == "fp32" else 1), rows) * head_dim // 2048  # a warp's worth
        for warps, stages in itertools.product((1, 2, 4, 8, 16), (2, 3, 4)):
            if max(1, held // 2) <= warps <= max(1, 2 * held) and (stages > 2 or head_dim == 128):
                yield Tile(block_n, warps, stages)


def build(point, pools: int):
    """A function that launches this point on page pool i."""
    dtype, group_size, head_dim, batch_size, ctx, num_splits, *tile = point
    pages = batch_size * triton.cdiv(ctx, PAGE_SIZE)
    of_q = torch.float32 if dtype == "fp32" else torch.float16
    q = torch.randn(batch_size, NUM_KV_HEADS * group_size, head_dim, dtype=of_q, device="cuda")
    cache = torch.empty(
        2, pools * pages, PAGE_SIZE, NUM_KV_HEADS, head_dim, dtype=DTYPES[dtype], device="cuda"
    )
    for part in cache.flatten(0, 1).split(2**14):
        part.copy_(torch.randn(part.shape, device="cuda"))
    table = torch.stack([torch.randperm(pages, device="cuda") + i * pages for i in range(pools)])
    table = table.view(pools, batch_size, -1).int()
    lens = torch.full((batch_size,), ctx, dtype=torch.int32, device="cuda")
    inputs = check_fast_inputs(q, cache[0], cache[1], table[0], lens, "NHD", None, None)
    call = FastCall(q, inputs, table[0], DecodePlan(num_splits), tile=Tile(*tile))
    o, lse, scratch = call.new_outputs()
    return lambda pool: call(o, lse, scratch, q, cache[0], cache[1], table[pool], lens)


def compile_point(point) -> str | None:
    """In a worker: compile one point into Triton's cache by launching it on a small case."""
    return error_of(lambda: build((*point[:3], 1, *point[4:]), 1)(0))


def measure(point) -> dict:
    """Latency of one point, combine included."""
    kv_bytes = 2 * point[3] * point[4] * NUM_KV_HEADS * point[2] * DTYPES[point[0]].itemsize
    pools = num_pools(kv_bytes)
    return {"latency_us": latency_us(build(point, pools), pools), "kv_bytes": kv_bytes}


MEASURED = ("kernels/l7_fast_decode.py", "kernels/l7_tile.py")
SWEEP = Sweep("tile_sweep", FIELDS, MEASURED, grid_points, compile_point, measure)

if __name__ == "__main__":
    SWEEP.main(__doc__, "groups of 4 and heads of 128 only")
