"""Time fast_decode over its tiles on this GPU, and write the record behind kernels/l7_launch.py.

    python scripts/sweep_tiles.py --out snippets/results/nvidia-h200/tile_sweep.json

Every configuration is compiled first, in parallel; then each is timed alone, by graph replay over more
KV bytes than the L2 cache holds. Interrupt it at will: finished rows are kept and skipped next time.
"""

import argparse
import itertools
import multiprocessing
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
import triton
from rich.progress import track

from kernels.checks import check_fast_inputs
from kernels.l3_split_kv_decode import choose_num_splits
from kernels.l7_fast_decode import FastCall
from kernels.l7_launch import TILES, Tile, block_d
from kernels.l7_plan import DecodePlan
from scripts import records
from scripts.timing import graph_latency

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
    try:
        build((*point[:3], 1, *point[4:]), 1)(0)
        torch.cuda.synchronize()
    except (triton.runtime.errors.OutOfResources, RuntimeError) as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


def measure(point) -> dict:
    """Latency of one point, combine included."""
    kv_bytes = 2 * point[3] * point[4] * NUM_KV_HEADS * point[2] * DTYPES[point[0]].itemsize
    pools = max(1, 2**28 // kv_bytes)
    run = build(point, pools)
    latency = graph_latency([lambda i=i: run(i) for i in range(pools)], rounds=2)
    return {"latency_us": latency, "kv_bytes": kv_bytes}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the JSON record to write")
    parser.add_argument("--quick", action="store_true", help="groups of 4 and heads of 128 only")
    parser.add_argument("--jobs", type=int, default=14, help="processes that compile (default 14)")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("needs a CUDA GPU")

    points = list(dict.fromkeys(grid_points(args.quick)))
    partial = args.out.with_suffix(".partial.json")
    rows = {tuple(row[f] for f in FIELDS): row for row in records.load_rows(partial)}
    todo = [p for p in points if p not in rows]
    failures = {}
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        results = pool.imap(compile_point, todo, chunksize=4)
        for point, error in zip(todo, track(results, "compile", total=len(todo)), strict=True):
            if error:
                failures[point] = error
    for n, point in enumerate(track(todo, "time")):
        row = dict(zip(FIELDS, point, strict=True))
        rows[point] = row | ({"error": failures[point]} if point in failures else measure(point))
        if n % 100 == 99:
            records.save_rows(partial, list(rows.values()))
    record = records.provenance("tile_sweep") | {"rows": [rows[p] for p in points]}
    # Of the kernels alone: the table that this record leads to is in a file that they import.
    measured = [f"kernels/{name}.py" for name in ("l7_fast_decode", "l7_tile")]
    record["code_hash"] = {path: records.code_hash([path])[path] for path in measured}
    records.save(args.out, record)
    partial.unlink(missing_ok=True)
    print(f"{args.out}: {len(points)} configurations, {len(failures)} of them not launchable")


if __name__ == "__main__":
    main()
