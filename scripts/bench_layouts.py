"""Measure the write kernel and the read kernel of a paged cache in both layouts, NHD and HND.

    python scripts/bench_layouts.py                    snippets/results/<gpu>/l1_paged_cache.json
    python scripts/bench_layouts.py --quick --out DIR  a look

Writes: one token of each of N sequences (a decode step) and N tokens of one sequence (a prompt), into slots
scattered over a large pool; beside the kernel, the same by indexing in PyTorch, and a copy of as many bytes
in one piece. Reads: paged_decode of lesson L2, the same pages in both layouts. Everything is checked in the
same run, writes bit by bit, reads against float64; what fails is not timed, and makes the exit status 1.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
from rich.console import Console
from rich.progress import Progress

from scripts import layout_variants, records
from scripts.bench_inputs import POOL_BYTES, Shape, make_pool, name_of
from scripts.layout_variants import (
    DTYPE,
    HEAD_DIM,
    MOST_SETS,
    NUM_KV_HEADS,
    NUM_QO_HEADS,
    PAGE_SIZE,
    Variant,
    read_variants,
    write_variants,
)
from scripts.read_ceiling import gbps, measure_ceilings
from scripts.timing import REPLAYS, LaunchGraph, eager_latency, interleaved_latency

LESSON = "l1_paged_cache"
KERNELS = ["kernels/l1_write_kv.py", "kernels/l2_paged_decode.py"]
LAYOUTS = ("NHD", "HND")
# (sequences, new tokens of each)
WRITES = ((1, 1), (8, 1), (64, 1), (256, 1), (1, 512), (1, 8192))
READS = ((1, 32768), (8, 4096), (64, 1024))
READ_PAGES = (16, 64)
ROUNDS, QUICK_ROUNDS = 7, 2
METHOD = {
    "latency_us": "us a launch, from replays of a CUDA graph of back-to-back launches; p20, p50 and p80 over "
    "all replays; the variants of a shape take turns, round after round",
    "cache": "reads: cold L2, launches rotate over disjoint page sets. Writes: launches rotate over up to "
    f"{MOST_SETS} sets of inputs and slots (rotation_bytes); inputs as small as a decode step's stay in L2, "
    "as in use, where the projection has just made them",
    "eager_us": "us of one call of the public function on an idle GPU, until its work is done; host_us: "
    "until it returns",
    "bandwidth_gbps": "reads: kv_bytes / p50; writes: bytes read and bytes written / p50; GB = 1e9",
    "check": "writes: every bit of the cache, the slots that nobody wrote too; reads: o and lse against "
    "float64, at most twice the error of plain PyTorch",
}

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def measure(variants: list[Variant], rounds: int) -> list[dict]:
    """A row a variant: checked, then timed in turns with the others; a failure stands in its row."""
    rows, graphs = [{"variant": v.name, **v.about} for v in variants], {}
    for i, (variant, row) in enumerate(zip(variants, rows, strict=True)):
        try:
            row |= {name: float(f"{value:.3g}") for name, value in variant.check().items()}
            graphs[str(i)] = LaunchGraph(variant.launches)
            if variant.calls:
                row["eager_us"], row["host_us"] = eager_latency(variant.calls)
        except Exception as error:  # whatever it is, it belongs in the record
            row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            graphs.pop(str(i), None)
    for i, latency in interleaved_latency(graphs, rounds).items():
        moved = variants[int(i)].moved_bytes
        rows[int(i)] |= {
            "latency_us": latency,
            "moved_bytes": moved,
            "bandwidth_gbps": gbps(moved, latency["p50"]),
        }
    return rows


def line_of(row: dict) -> str:
    """A finished row, in one line."""
    head = f"{row['kind']:<5} {row['batch_size']:>3}x{row['ctx']:<6} page {row['page_size']:<3} "
    head += f"{row['variant']:<13} {row['kv_layout']:<4}"
    if "error" in row:
        return f"{head} FAILED {row['error']}"
    us = row["latency_us"]
    return f"{head} {us['p50']:9.2f} us ({us['p20']:.2f}-{us['p80']:.2f}) {row['bandwidth_gbps']:7.1f} GB/s"


def bench(record: dict, rounds: int) -> dict:
    """Fill in rows and ceilings."""
    record["rows"], record["ceilings"] = [], []
    page_bytes = 2 * PAGE_SIZE * NUM_KV_HEADS * HEAD_DIM * DTYPE.itemsize
    num_pages = max(POOL_BYTES // page_bytes, *(b * -(-n // PAGE_SIZE) for b, n in WRITES))
    nhd = torch.empty(
        2, num_pages, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM, dtype=DTYPE, device=layout_variants.DEVICE
    )
    caches = {"NHD": nhd, "HND": torch.empty_like(nhd).view(2, num_pages, NUM_KV_HEADS, PAGE_SIZE, HEAD_DIM)}
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(LESSON, total=len(WRITES) + len(READS) * len(READ_PAGES))

        def add(variants: list[Variant]) -> None:
            rows = measure(variants, rounds)
            record["rows"] += rows
            for row in rows:
                console.print(line_of(row))
            bar.advance(task)

        torch.manual_seed(0)
        for num_seqs, num_tokens in WRITES:
            add(write_variants(num_seqs, num_tokens, caches))
        del nhd, caches
        for page_size in READ_PAGES:
            for batch_size, ctx in READS:
                shape = Shape(batch_size, ctx, page_size, NUM_QO_HEADS, NUM_KV_HEADS, HEAD_DIM, DTYPE)
                pool = make_pool(shape, layout_variants.DEVICE, record["gpu"]["l2_bytes"], POOL_BYTES)
                record["ceilings"].append(measure_ceilings(pool, rounds))
                add(read_variants(pool))
    return record


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=records.RESULTS, help="folder of records")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds, not {ROUNDS}; marked so"
    )
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        console.print("bench_layouts.py: no CUDA GPU here; the published records are in snippets/results/")
        return 2
    rounds = QUICK_ROUNDS if args.quick else ROUNDS
    record = records.provenance(LESSON, KERNELS) | {
        "quick": args.quick,
        "method": METHOD | {"rounds": rounds, "replays": rounds * REPLAYS},
        "problem": {
            "dtype": name_of(DTYPE), "num_qo_heads": NUM_QO_HEADS, "num_kv_heads": NUM_KV_HEADS,
            "head_dim": HEAD_DIM, "block_table": "shuffled",
        },
    }  # fmt: skip
    bench(record, rounds)
    target = args.out / record["gpu"]["slug"] / f"{LESSON}.json"
    records.save(target, record)
    failed = sum("error" in row for row in record["rows"])
    console.print(f"{target}: {len(record['rows'])} rows, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
