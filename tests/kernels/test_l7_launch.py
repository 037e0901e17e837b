"""The tiles of fast_decode against the sweep that they were chosen from."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from kernels.l7_launch import TILES, Tile, block_d, choose_tile
from kernels.launch import TARGETS

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ROOT / "snippets/results/nvidia-h200/tile_sweep.json"
BYTES = {"fp8": 1, "fp16": 2, "fp32": 4}
CASE = ("dtype", "group_size", "head_dim", "batch_size", "ctx", "num_splits")
NUM_KV_HEADS, NUM_SMS = 8, 132


def swept() -> dict[tuple, dict[Tile, float]]:
    """{(dtype, group_size, head_dim, batch_size, ctx, num_splits): {tile: p50 us}}."""
    cases = defaultdict(dict)
    for row in json.loads(SWEEP.read_text(encoding="utf-8"))["rows"]:
        if "error" not in row:
            case = tuple(row[key] for key in CASE)
            tile = Tile(row["block_n"], row["num_warps"], row["num_stages"])
            cases[case][tile] = row["latency_us"]["p50"]
    return cases


SWEPT = swept()


def chosen(case: tuple) -> Tile:
    dtype, group_size, head_dim, batch_size, _, num_splits = case
    per_sm = batch_size * NUM_KV_HEADS * num_splits / NUM_SMS
    columns = block_d(head_dim, dtype == "fp8")
    rows = max(16, group_size)
    return choose_tile(TARGETS["sm_90"], BYTES[dtype], rows, columns, per_sm, num_splits > 1)


def test_the_sweep_has_every_entry_of_the_table():
    entries = {(BYTES[d], max(16, g), head_dim) for d, g, head_dim, *_ in SWEPT}
    assert entries == {(*key, head_dim) for key in TILES for head_dim in (16, 32, 64, 128, 256)}


LESSON_HEADS = [case for case in SWEPT if case[:3] == ("fp16", 4, 128)]
SPILLING = {("fp16", 32, 16), ("fp8", 32, 128)}  # their fastest tile, on sm_120 or in the pinned Triton


# Products of fp32 take registers: with more rows most tiles that are faster spill on some target.
FITTING = [case for case in SWEPT if case[0] != "fp32" or case[1] <= 16]


@pytest.mark.parametrize("case", FITTING, ids=str)
def test_the_tile_is_near_the_best_of_the_sweep(case):
    limit = 1.2 if case[:3] in SPILLING else 1.1
    assert SWEPT[case][chosen(case)] <= limit * min(SWEPT[case].values())


@pytest.mark.parametrize("case", LESSON_HEADS, ids=str)
def test_the_heads_of_the_lesson_have_the_best_tile(case):
    assert SWEPT[case][chosen(case)] <= 1.02 * min(SWEPT[case].values())
