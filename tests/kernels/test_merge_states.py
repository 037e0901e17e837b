"""L3: merge_states, the exact merge of partial attentions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels import merge_states
from scripts.tracer import trace
from tests.helpers.marks import interpreter_only
from tests.helpers.mode import DEVICE, DTYPES, dtype_name
from tests.helpers.oracle import assert_lse_close, assert_twice_as_good, orders
from tests.helpers.poison import poisoned

INF = math.inf


def _states(num_splits, head_dim, dtype=torch.float32, *, batch_size=2, heads=2, spread=2.0, seed=0):
    rng = torch.Generator().manual_seed(seed)
    o = torch.randn(num_splits, batch_size, heads, head_dim, generator=rng).to(DEVICE, dtype)
    lse = (spread * torch.randn(num_splits, batch_size, heads, generator=rng)).to(DEVICE)
    return o, lse


def _plain_merge(o, lse, dtype):
    """The merge in one dtype, by PyTorch."""
    largest = lse.amax(0).nan_to_num(neginf=0.0).to(dtype)
    weights = torch.exp(lse.to(dtype) - largest)
    total = weights.sum(0)
    merged = (weights[..., None] * o.to(dtype)).sum(0) / torch.where(total > 0, total, 1)[..., None]
    return merged, largest + torch.log(total)


def _assert_merged(o, lse):
    with poisoned():
        merged, merged_lse = merge_states(o, lse)
    exact, exact_lse = _plain_merge(o, lse, torch.float64)
    plain = [_plain_merge(o[i], lse[i], torch.float32)[0].to(o.dtype) for i in orders(len(o))]
    assert_twice_as_good(merged, plain, exact)
    largest = torch.where(torch.isinf(exact_lse), 0.0, exact_lse).abs().flatten(1).amax(1)
    assert_lse_close(merged_lse, exact_lse, largest)
    return merged, merged_lse


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
@pytest.mark.parametrize("head_dim", [1, 7, 64, 130])
@pytest.mark.parametrize("num_splits", [1, 2, 3, 16, 33, 100])
def test_any_number_of_splits_and_any_head_dim(num_splits, head_dim, dtype):
    _assert_merged(*_states(num_splits, head_dim, dtype))


def test_one_state_comes_back_as_it_is():
    o, lse = _states(1, 7)
    merged, merged_lse = merge_states(o, lse)
    assert torch.equal(merged, o[0]) and torch.equal(merged_lse, lse[0])


@pytest.mark.parametrize("where", [0, 1, 3])
@pytest.mark.parametrize("filler", [0.0, 1e30, -5.0])
def test_the_identity_changes_nothing(where, filler):
    """(anything finite, -inf): the state of no tokens."""
    o, lse = _states(3, 7)
    expected = merge_states(o, lse)
    with_o = torch.cat([o[:where], torch.full_like(o[:1], filler), o[where:]])
    with_lse = torch.cat([lse[:where], torch.full_like(lse[:1], -INF), lse[where:]])
    merged, merged_lse = _assert_merged(with_o, with_lse)
    assert torch.allclose(merged, expected[0], rtol=1e-6, atol=1e-6)
    assert torch.allclose(merged_lse, expected[1], rtol=1e-6)


@pytest.mark.parametrize("num_splits", [1, 2, 17])
def test_nothing_merged_with_nothing(num_splits):
    """-inf - (-inf) is NaN, and 0 / 0 is, too: neither comes out."""
    o, lse = _states(num_splits, 7)
    lse.fill_(-INF)
    merged, merged_lse = merge_states(o, lse)
    assert torch.equal(merged, torch.zeros_like(merged)) and torch.isneginf(merged_lse).all()


def test_a_first_block_of_splits_that_is_empty():
    """Splits are taken 64 a step: the first step finds nothing, the next one does."""
    o, lse = _states(80, 7)
    lse[:64] = -INF
    merged, merged_lse = _assert_merged(o, lse)
    expected, expected_lse = merge_states(o[64:], lse[64:])
    assert torch.allclose(merged, expected, rtol=1e-6, atol=1e-6) and torch.allclose(merged_lse, expected_lse)


@pytest.mark.parametrize("num_splits", [3, 33])
def test_the_order_does_not_matter(num_splits):
    o, lse = _states(num_splits, 7)
    order = torch.randperm(num_splits, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    merged, merged_lse = merge_states(o, lse)
    other, other_lse = _assert_merged(o[order], lse[order])
    assert torch.allclose(merged, other, rtol=1e-5, atol=1e-6) and torch.allclose(
        merged_lse, other_lse, rtol=1e-6
    )


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_the_grouping_does_not_matter(cut):
    o, lse = _states(5, 7)
    whole, whole_lse = merge_states(o, lse)
    parts = [merge_states(o[:cut], lse[:cut]), merge_states(o[cut:], lse[cut:])]
    grouped, grouped_lse = merge_states(*(torch.stack(t) for t in zip(*parts, strict=True)))
    assert torch.allclose(whole, grouped, rtol=1e-5, atol=1e-6)
    assert torch.allclose(whole_lse, grouped_lse, rtol=1e-6)


@pytest.mark.parametrize("level", [1e4, -1e4])
def test_scores_of_ten_thousand(level):
    """exp(1e4) overflows and exp(-1e4) is 0: only differences may be exponentiated."""
    o, lse = _states(3, 7)
    expected, expected_lse = merge_states(o, lse)
    merged, merged_lse = _assert_merged(o, lse + level)
    assert torch.allclose(merged, expected, atol=1e-2)  # lse + 1e4 is rounded to 1e-3
    assert torch.allclose(merged_lse - level, expected_lse, atol=2e-3)


def test_one_state_far_above_the_others_wins():
    o, lse = _states(3, 7)
    lse[0], lse[1], lse[2] = -1e4, 1e4, 0.0
    merged, merged_lse = merge_states(o, lse)
    assert torch.equal(merged, o[1]) and torch.equal(merged_lse, lse[1])


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
def test_any_strides(dtype):
    """Columns of wider tensors, o with its splits next to each other."""
    o, lse = _states(5, 7, dtype)
    strided_o = torch.full((2, 2, 5, 9), float("nan"), dtype=dtype, device=DEVICE)[..., 1:8].permute(
        2, 0, 1, 3
    )
    strided_o.copy_(o)
    strided_lse = torch.full((2, 5, 6), float("nan"), device=DEVICE)[..., 1:3].transpose(0, 1)
    strided_lse.copy_(lse)
    _assert_merged(strided_o, strided_lse)


@pytest.mark.parametrize("batch_size, heads", [(0, 4), (3, 0)])
def test_no_sequences_or_no_heads(batch_size, heads):
    o, lse = merge_states(*_states(3, 7, batch_size=batch_size, heads=heads))
    assert o.shape == (batch_size, heads, 7) and lse.shape == (batch_size, heads)


@interpreter_only
@pytest.mark.parametrize("num_splits, head_dim", [(1, 1), (3, 7), (33, 130)])
def test_memory_accesses(num_splits, head_dim):
    o, lse = _states(num_splits, head_dim)
    with poisoned(), trace() as t:
        merge_states(o, lse)
    t.assert_in_bounds()
    for name in ("o_ptr", "lse_ptr"):
        t.assert_written_once(name)
    assert (t.read_counts("o_partial_ptr") == 1).all()


@given(
    num_splits=st.integers(1, 40),
    head_dim=st.sampled_from([1, 7, 64]),
    spread=st.sampled_from([0.1, 3.0, 1e3]),
    empty=st.sets(st.integers(0, 39)),
    seed=st.integers(0, 99),
)
def test_any_states(num_splits, head_dim, spread, empty, seed):
    o, lse = _states(num_splits, head_dim, spread=spread, seed=seed, heads=1)
    lse[[s for s in empty if s < num_splits]] = -INF
    _assert_merged(o, lse)
