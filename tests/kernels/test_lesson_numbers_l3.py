"""The numbers worked by hand on the L3 page, section by section; those of the merge are in
test_lesson_numbers_merge.py, those of the pitfalls in test_lesson_numbers_pitfalls.py, and that a tile of
64 x 128 spills is in test_lesson_numbers_compiled.py."""

import json
import math
from pathlib import Path
from unittest import mock

import pytest
import torch

from kernels import choose_num_splits, l3_split_kv_decode, split_kv_decode
from kernels.checks import check_paged_inputs
from kernels.l3_split_kv_decode import (
    MAX_QUEUED_SPLITS,
    PROGRAMS_PER_SM,
    TOKENS_PER_SPLIT,
    launch_combine,
    new_partials,
    resolve_num_splits,
)
from kernels.launch import TARGETS, shared_bytes
from scripts.split_regret import BATCH_SIZES, CTXS, grid
from tests.helpers.cases import Shape, make_case
from tests.helpers.lesson import assert_numbers, nbytes
from tests.helpers.marks import interpreter_only
from tests.helpers.oracle import reference
from tests.helpers.traced import run_traced

LESSON = "l3_split_kv_decode"
# The examples: Hq = 32, Hkv = 8, G = 4, D = 128, PAGE = 16, fp16, 132 SMs.
HQ, HKV, G, D, PAGE, SMS = 32, 8, 4, 128, 16, 132
PAGE_BYTES = nbytes(2, PAGE, D)
ROUND_TRIP = 2 * nbytes(G, D, element_bytes=4)  # of one partial of a KV head: written, then read
SHARED = shared_bytes("cuda", 7, 2, 16, D, PAGE)
RESIDENT = TARGETS["sm_90"].shared_bytes // SHARED
MIB = 2**20
FACTS = json.loads((Path(__file__).parents[2] / "snippets/generated/facts.json").read_text())


def kv_bytes(batch_size: int, ctx: int) -> int:
    return nbytes(2, batch_size, ctx, HKV, D)


def partial_bytes(batch_size: int, num_splits: int) -> int:
    """fp32 o of all splits, as the launcher allocates it."""
    return new_partials(torch.empty(batch_size, HQ, D, device="meta"), num_splits)[0].nbytes


def lse_bytes(batch_size: int, num_splits: int) -> int:
    return new_partials(torch.empty(batch_size, HQ, D, device="meta"), num_splits)[1].nbytes


NUMBERS = {
    "idle-sms": [
        (32768 / PAGE, "2048"), (PAGE_BYTES, "8192"), (8 * 3 * PAGE_BYTES / 1024, "192"),
        (512 * 3 * PAGE_BYTES / MIB, "12"), ((7 - 1) // 2, "3"),
    ],
    "page-ranges": [(math.ceil(1000 / PAGE), "63"), (63 // 4, "15"), (63 - 4 * 15, "3")],
    "ranges-by-hand": [(14 * 16 + 8, "232"), (3 * 256 + 232, "1000")],
    "one-warp": [
        (nbytes(64, D, element_bytes=4), "32768"), (nbytes(64, D, element_bytes=4) / 1024, "32"),
        (2048 / 32, "64"), (64 * 128 / 32, "256"), (4 * HQ, "128"), (nbytes(64, element_bytes=4), "256"),
    ],
    "unnormalized": [
        (nbytes(D + 1, element_bytes=4), "516"), (nbytes(D + 2, element_bytes=4), "520"), (64 / 16, "4"),
    ],
    "fp32-partials": [
        (partial_bytes(1, 64), "1,048,576"), (partial_bytes(1, 64) / MIB, "1"),
        (kv_bytes(1, 32768), "134,217,728"), (kv_bytes(1, 32768) / MIB, "128"),
        (kv_bytes(1, 32768) / (2 * partial_bytes(1, 64)), "64"),
        (kv_bytes(1, 32768) / partial_bytes(1, 64), "128"), (100 * math.expm1(1 / 256), "0.4"),
        (math.exp(4), "55"),
    ],
    "price-of-a-split": [
        (PAGE_BYTES, "8192"), (ROUND_TRIP / 2, "2048"), (nbytes(G, element_bytes=4), "16"),
        (ROUND_TRIP, "4096"), (100 * ROUND_TRIP / PAGE_BYTES, "50"),
        (100 * ROUND_TRIP / (4 * PAGE_BYTES), "12.5"), (100 * ROUND_TRIP / (32 * PAGE_BYTES), "1.6"),
        (partial_bytes(64, 64) / MIB, "64"), (2 * partial_bytes(64, 64) / MIB, "128"),
        (kv_bytes(64, 1024) / MIB, "256"), (2 * partial_bytes(1, 64) / MIB, "2"),
        (kv_bytes(1, 32768) / MIB, "128"),
    ],
    "cited-numbers": [(1 * HKV * 64, "512"), (2048 / 64, "32"), (8 * HKV * 16, "1024"), (256 / 16, "16")],
    "our-sweep": [
        (SHARED, "29,184"), (TARGETS["sm_90"].shared_bytes / 1024, "227"), (RESIDENT, "7"),
        (RESIDENT * SMS, "924"), (1024 - RESIDENT * SMS, "100"), (8 * HKV * 16, "1024"),
        (64 * HKV * 2, "1024"), (1 * HKV * 128, "1024"),
    ],
    "choose-num-splits": [
        (PROGRAMS_PER_SM, "4"), (PROGRAMS_PER_SM * SMS, "528"), (TOKENS_PER_SPLIT, "1024"),
        (MAX_QUEUED_SPLITS, "16"), (RESIDENT, "7"), (len([p for p in grid() if not p.wide]), "240"),
        (max(BATCH_SIZES), "256"), (min(CTXS), "512"), (max(CTXS), "131072"), (128 * HKV, "1024"),
    ],
    "max-seq-len": [
        (56 * HKV, "448"), (2048 / PAGE, "128"), (2048 / 128, "16"), (131072 / TOKENS_PER_SPLIT, "128"),
        (choose_num_splits(128, HKV, 131072, PAGE, SMS), "16"),
    ],
    "check-yourself": [
        (16 * HKV, "128"), (528 // 128, "4"), (8192 / PAGE, "512"), (256 * HKV, "2048"), (512 / 8, "64"),
        (partial_bytes(8, 16), "2,097,152"), (partial_bytes(8, 16) / MIB, "2"), (lse_bytes(8, 16), "16,384"),
        (lse_bytes(8, 16) / 1024, "16"),
    ],
    "interview": [
        (63 * HKV * 48, "24192"), (256 / PAGE, "16"), (64 - 16, "48"), (4 * SMS // (64 * HKV), "1"),
        (nbytes(8, HQ, D + 1, element_bytes=4), "132,096"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("anchor", NUMBERS)
def test_arithmetic(anchor):
    """The section named by the id."""
    assert_numbers(LESSON, anchor, NUMBERS[anchor])


# batch size, ctx, SMs -> wanted, most, pages a split, splits
CHOICES = {
    (1, 32768, 132): (66, 66, 32, 64), (8, 4096, 132): (8, 8, 32, 8), (64, 1024, 132): (1, 1, 64, 1),
    (1, 1000, 132): (66, 63, 1, 63), (1, 32768, 170): (85, 85, 25, 82), (8, 4096, 170): (10, 10, 26, 10),
    (64, 1024, 170): (1, 1, 64, 1), (16, 8192, 132): (4, 4, 128, 4), (64, 32768, 132): (1, 1, 2048, 1),
    (1, 2048, 132): (66, 66, 2, 64), (1, 128, 132): (66, 8, 1, 8),
}  # fmt: skip
QUEUED = {(128, 8192): (8, 64), (256, 8192): (8, 64)}  # batch size, ctx -> splits, pages a split


@pytest.mark.parametrize(("batch_size", "ctx", "sms"), CHOICES)
def test_choices(batch_size, ctx, sms):
    """#choose-num-splits, #two-kernels, #check-yourself, #interview: the table, 170 SMs, the two examples."""
    wanted, most, per_split, splits = CHOICES[batch_size, ctx, sms]
    pages = math.ceil(ctx / PAGE)
    assert (4 * sms // (batch_size * HKV), min(wanted, pages)) == (wanted, most) and wanted <= sms
    assert math.ceil(pages / most) == per_split and math.ceil(pages / per_split) == splits
    assert choose_num_splits(batch_size, HKV, ctx, PAGE, sms) == splits
    if sms == SMS and batch_size * ctx in (32768, 65536):  # the three shapes
        assert batch_size * HKV * splits == 512


@pytest.mark.parametrize(("batch_size", "ctx"), QUEUED)
def test_choices_where_programs_queue(batch_size, ctx):
    """#choose-num-splits, #check-yourself: the last row of the table, and B = 256."""
    splits, per_split = QUEUED[batch_size, ctx]
    assert batch_size * HKV > 4 * SMS and math.ceil(ctx / 1024) == splits <= 16
    assert math.ceil(ctx / PAGE / splits) == per_split
    assert choose_num_splits(batch_size, HKV, ctx, PAGE, SMS) == splits


def test_what_a_round_number_of_splits_wastes():
    """#check-yourself: ctx = 272 in 16 splits, and the number that would leave none empty."""
    per_split = math.ceil(17 / 16)
    pages = [len(range(s * per_split, min((s + 1) * per_split, 17))) for s in range(16)]
    assert math.ceil(272 / PAGE) == 17 and pages == [2] * 8 + [1] + [0] * 7
    assert math.ceil(17 / per_split) == 9


@pytest.mark.parametrize(("max_seq_len", "splits", "used"), [(128, 8, 8), (None, 64, 8)])
def test_what_max_seq_len_is_for(max_seq_len, splits, used):
    """#max-seq-len: 128 tokens, a table of 2048; 56 of the 64 splits stay empty."""
    case = make_case([128], Shape(G, 16, PAGE), num_kv_heads=HKV, spare_columns=120)
    inputs = check_paged_inputs(*case.args, "NHD")
    assert inputs.max_pages * PAGE == 2048
    with mock.patch.object(l3_split_kv_decode, "num_sms", return_value=SMS):
        assert resolve_num_splits(inputs, case.q, None, max_seq_len) == splits
    assert math.ceil(8 / math.ceil(8 / splits)) == used


@interpreter_only  # needs the trace
@pytest.mark.parametrize(
    ("ctx", "tokens"), [(1000, [256, 256, 256, 232]), (37, [16, 16, 5, 0]), (100, [32, 32, 32, 4])]
)
def test_tokens_of_four_splits(ctx, tokens):
    """#ranges-by-hand"""
    t = run_traced(split_kv_decode, make_case([ctx], Shape(1, 16, 16), num_kv_heads=1), num_splits=4)
    read = [0] * 4
    for access in t.reads("k_ptr"):
        read[access.program[2]] += len(set(access.coordinates[1].tolist()))
    assert read == tokens


@pytest.mark.parametrize(
    ("num_splits", "block_s", "block_d", "programs", "steps"),
    [(4, 4, 128, 1, 1), (16, 16, 128, 1, 1), (64, 64, 32, 4, 1), (128, 64, 32, 4, 2)],
)
def test_tiles_of_the_combine_kernel(num_splits, block_s, block_d, programs, steps):
    """#one-warp: the table."""
    o, lse = torch.empty(num_splits, 1, HQ, D), torch.empty(num_splits, 1, HQ)
    with mock.patch.object(l3_split_kv_decode, "_combine_kernel", mock.MagicMock()) as kernel:
        launch_combine(None, None, o, lse)
    kernel.__getitem__.assert_called_once_with((1, HQ, programs))
    options = kernel.__getitem__.return_value.call_args.kwargs
    assert options == {"BLOCK_S": block_s, "BLOCK_D": block_d, "num_warps": 1}
    assert block_s * block_d <= 2048 and math.ceil(num_splits / block_s) == steps


def test_partials_in_fp16():
    """#fp32-partials: fp32 inputs, 8 query heads, D = 64, 4 splits; about 1e-7 against about 2e-4."""
    case = make_case([100, 37], Shape(4, 64, 16), num_kv_heads=2)
    exact, _ = reference(case)

    def error():
        return (split_kv_decode(*case.args, num_splits=4).double() - exact).abs().max().item()

    def half(q, num_splits):
        o, lse = new_partials(q, num_splits)
        return o.half(), lse

    assert error() < 5e-7
    with mock.patch.object(l3_split_kv_decode, "new_partials", half):
        assert 5e-5 < error() < 5e-4


@pytest.mark.parametrize(("around", "step"), [(8.0, 1 / 128), (15.9, 1 / 128), (1e4, 8.0)])
def test_neighbours_in_fp16(around, step):
    """#fp32-partials: what lse would lose."""
    value, top = torch.tensor(around).half(), torch.tensor(math.inf).half()
    assert (torch.nextafter(value, top) - value).item() == step


def test_three_shapes_three_trends():
    """#cited-numbers: down; down, then up; up from the first cut on."""
    us = {
        shape: [float(FACTS[f"rtx5090.l3.{shape}.{n}.us"]) for n in ("l2", 4, 16, 64)]
        for shape in ("1x32768", "8x4096", "64x1024")
    }
    assert us["1x32768"] == sorted(us["1x32768"], reverse=True)
    assert us["8x4096"][0] > us["8x4096"][1] > us["8x4096"][2] < us["8x4096"][3]
    assert us["64x1024"] == sorted(us["64x1024"])
