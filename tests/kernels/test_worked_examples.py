"""Examples worked by hand in L2 and L3, read off the kernels, their traces, or the tensors' own sizes; the
other numbers of the pages are in test_lesson_numbers_*.py.

The walk over [1, 2, 3, 0] in one pass is in test_online_softmax.py, the choice of the number of splits in
test_l3_split_kv_decode.py, the overflow of int32 in test_int32_overflow.py."""

import math
from unittest import mock

import pytest
import torch

from kernels import (
    l2_paged_decode,
    l3_split_kv_decode,
    merge_states,
    naive_paged_decode,
    paged_decode,
    split_kv_decode,
)
from kernels.checks import check_paged_inputs
from kernels.l3_split_kv_decode import new_partials
from scripts.tracer import trace
from tests.helpers.cases import Shape, make_case
from tests.helpers.marks import interpreter_only
from tests.helpers.mode import DEVICE
from tests.helpers.oracle import run_poisoned
from tests.helpers.traced import run_traced

SMALL = Shape(1, 16, 16)


def _kv_bytes(batch_size, ctx, num_kv_heads=8, head_dim=128, page_size=16):
    """Bytes of K and V that one decode step reads, from tensors without memory."""
    shape = (batch_size * ctx // page_size, page_size, num_kv_heads, head_dim)
    return 2 * torch.empty(shape, dtype=torch.float16, device="meta").nbytes


def _pages_read(t):
    """{split: the columns of the block table that its programs of sequence 0 read}."""
    reads = {launch_z: [] for launch_z in range(t.launches[0].grid[2])}
    for access in t.reads("block_table_ptr"):
        reads[access.program[2]].extend(access.coordinates[1].tolist())
    return reads


# L2


@interpreter_only
def test_context_of_37_tokens():
    """PAGE = 16, table [9, 3, 7, ...]: three pages, five tokens in the last, no entry past the third read."""
    case = make_case([37], SMALL, num_kv_heads=1, spare_pages=9, spare_columns=3, beyond=11, ids="ordered")
    for cache in (case.k_cache, case.v_cache):
        cache[[9, 3, 7]] = cache[[0, 1, 2]]
        cache[[0, 1, 2]] = math.nan
    case.block_table[0, :3] = torch.tensor([9, 3, 7])
    t = run_traced(paged_decode, case)
    t.assert_in_bounds()
    assert [access.coordinates[1].tolist() for access in t.reads("block_table_ptr")] == [[0], [1], [2]]
    for name in ("k_ptr", "v_ptr"):
        pages = [(a.coordinates[0][0], len(set(a.coordinates[1].tolist()))) for a in t.reads(name)]
        assert pages == [(9, 16), (3, 16), (7, 5)]
    assert not paged_decode(*case.args).isnan().any()


def test_kv_head_3_serves_query_heads_12_to_15():
    """Hq = 32, Hkv = 8, G = 4; every V holds the number of its KV head."""
    case = make_case([5], Shape(4, 16, 16), num_kv_heads=8)
    case.v_cache[:] = torch.arange(8, device=DEVICE)[:, None]
    for decode in (paged_decode, naive_paged_decode):
        o, _ = run_poisoned(decode, case)
        heads = (o[0].sub(3).abs() < 1e-4).all(1).nonzero().flatten().tolist()
        assert heads == [12, 13, 14, 15]


@interpreter_only
def test_rows_of_the_tile_of_kv_head_3():
    """Rows 0 to 3 of 16 are query heads 12 to 15; the other 12 rows read nothing and write nothing."""
    case = make_case([5], Shape(4, 16, 16), num_kv_heads=8)
    inputs = check_paged_inputs(*case.args, "NHD")
    assert (inputs.group_size, inputs.block_g) == (4, 16)
    assert 1 - inputs.group_size / inputs.block_g == 0.75
    t = run_traced(paged_decode, case)
    assert t.launches[0].grid == [1, 8, 1]
    for access in (*t.reads("q_ptr"), *t.writes("o_ptr"), *t.writes("lse_ptr")):
        first = 4 * access.program[1]
        assert sorted(set(access.coordinates[1].tolist())) == [first, first + 1, first + 2, first + 3]


@interpreter_only
def test_naive_reads_each_key_group_size_times_and_packed_once():
    case = make_case([5], Shape(4, 16, 16), num_kv_heads=8)
    tokens = case.used.numpy()[:, :, None, None]
    for decode, times, programs in ((naive_paged_decode, 4, 32), (paged_decode, 1, 8)):
        t = run_traced(decode, case)
        assert math.prod(t.launches[0].grid) == programs
        for name in ("k_ptr", "v_ptr"):
            assert (t.read_counts(name) == times * tokens).all()


def test_kv_bytes():
    assert _kv_bytes(64, 1024) == 268_435_456
    assert _kv_bytes(8, 4096) == _kv_bytes(1, 32768) == 128 * 2**20


# L3


@interpreter_only
@pytest.mark.parametrize(
    ("ctx", "ranges"),
    [
        (1000, [(0, 15), (16, 31), (32, 47), (48, 62)]),
        (37, [(0, 0), (1, 1), (2, 2), None]),
        (100, [(0, 1), (2, 3), (4, 5), (6, 6)]),
    ],
)
def test_pages_of_four_splits(ctx, ranges):
    case = make_case([ctx], SMALL, num_kv_heads=1)
    t = run_traced(split_kv_decode, case, num_splits=4)
    expected = [[] if pair is None else list(range(pair[0], pair[1] + 1)) for pair in ranges]
    assert list(_pages_read(t).values()) == expected
    assert sum(map(len, expected)) == -(-ctx // 16)
    t.assert_written_once("o_partial_ptr")  # the empty split stores its state, too


@interpreter_only
def test_last_split_of_100_tokens_has_four():
    t = run_traced(split_kv_decode, make_case([100], SMALL, num_kv_heads=1), num_splits=4)
    (access,) = [a for a in t.reads("k_ptr") if a.program[2] == 3]
    assert len(set(access.coordinates[1].tolist())) == 4


def test_64_splits_make_512_programs_of_8():
    """B = 1, Hkv = 8. The launchers' own grids, with nothing launched."""
    case = make_case([16], Shape(4, 16, 16), num_kv_heads=8)
    with (
        mock.patch.object(l2_paged_decode, "_paged_decode_kernel", mock.MagicMock()) as packed,
        mock.patch.object(l3_split_kv_decode, "_split_kernel", mock.MagicMock()) as split,
        mock.patch.object(l3_split_kv_decode, "_combine_kernel", mock.MagicMock()) as combine,
    ):
        paged_decode(*case.args)
        split_kv_decode(*case.args, num_splits=64)
    packed.__getitem__.assert_called_once_with((1, 8))
    split.__getitem__.assert_called_once_with((1, 8, 64))
    combine.__getitem__.assert_called_once_with((1, 32, 1))
    assert 1 * 8 * 64 == 512
    assert 32768 // 16 // 64 == 32  # pages a split at ctx = 32768


def test_halves_of_the_row_merged_by_hand():
    """o = 17.31 and 30.47, lse = 2.313 and 3.049: weights 0.479 and 1, out 26.21, as in one pass."""
    o = torch.tensor([17.31, 30.47], device=DEVICE).view(2, 1, 1, 1)
    lse = torch.tensor([2.313, 3.049], device=DEVICE).view(2, 1, 1)
    weights = torch.exp(lse - lse.max()).flatten().tolist()
    assert weights == pytest.approx([0.479, 1.0], abs=5e-4)
    merged, merged_lse = merge_states(o, lse)
    assert merged.item() == pytest.approx(26.21, abs=5e-3)
    assert merged_lse.item() == pytest.approx(3.440, abs=1e-3)


def test_o_alone_cannot_tell():
    """lse 0 and 10: equal rows merge to themselves whatever the weights, different ones show them."""
    lse = torch.tensor([0.0, 10.0], device=DEVICE).view(2, 1, 1)
    same = torch.tensor([[1.0, 1.0], [1.0, 1.0]], device=DEVICE).view(2, 1, 1, 2)
    assert merge_states(same, lse)[0].flatten().tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]], device=DEVICE).view(2, 1, 1, 2)
    assert merge_states(apart, lse)[0].flatten().tolist() == pytest.approx([0.00005, 0.99995], abs=5e-6)


def test_partials_of_64_splits_are_a_mebibyte():
    """B = 1, Hq = 32, D = 128 in fp32: 1 MiB of o, beside 128 MiB of K and V at ctx = 32768."""
    o_partial, lse_partial = new_partials(torch.empty(1, 32, 128, dtype=torch.float16, device="meta"), 64)
    assert o_partial.dtype == lse_partial.dtype == torch.float32
    assert o_partial.nbytes == 2**20 and _kv_bytes(1, 32768) == 128 * 2**20
    assert lse_partial.nbytes == 8192


@interpreter_only
def test_combine_reads_32_kib_a_head():
    o, lse = torch.zeros(64, 1, 2, 128), torch.zeros(64, 1, 2)
    with trace() as t:
        merge_states(o, lse)
    for head in range(2):
        read = [a for a in t.reads("o_partial_ptr") if a.program[1] == head]
        assert sum(a.offsets.size for a in read) * 4 == 64 * 128 * 4 == 32 * 1024
