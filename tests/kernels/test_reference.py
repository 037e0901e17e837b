"""The reference itself, held to cases worked by hand and to PyTorch's own attention."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from kernels import paged_attention_reference
from tests.helpers.cases import PLAIN, STORAGES, Shape, listed_lengths, make_case
from tests.helpers.mode import DEVICE
from tests.helpers.oracle import tokens_of

INF = math.inf


def _ints(values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def _doubles(values):
    return torch.tensor(values, dtype=torch.float64, device=DEVICE)


def test_one_sequence_by_hand():
    """Scores 1, 2, 3, 0 and values 10, 20, 30, 40: the row of the lessons, in two pages of two tokens."""
    nan = math.nan
    k = _doubles([[nan, nan], [3, 0], [1, 2]]).view(3, 2, 1, 1)
    v = _doubles([[nan, nan], [30, 40], [10, 20]]).view(3, 2, 1, 1)
    q = torch.ones(1, 1, 1, dtype=torch.float64, device=DEVICE)
    o, lse = paged_attention_reference(q, k, v, _ints([[2, 1, -1]]), _ints([4]), return_lse=True)
    e = math.e
    total = e + e**2 + e**3 + 1
    assert o.item() == pytest.approx((10 * e + 20 * e**2 + 30 * e**3 + 40) / total, rel=1e-14)
    assert lse.item() == pytest.approx(math.log(total), rel=1e-14)


def test_scale_heads_and_lengths_by_hand():
    """Two query heads a KV head; equal keys give the mean of the values, whatever sm_scale is."""
    page_size, num_kv_heads = 4, 2
    k = torch.ones(1, page_size, num_kv_heads, 2, dtype=torch.float64, device=DEVICE)
    v = torch.arange(16.0, dtype=torch.float64, device=DEVICE).view(1, page_size, num_kv_heads, 2)
    q = torch.ones(1, 4, 2, dtype=torch.float64, device=DEVICE)
    for sm_scale, score in ((None, 2 / math.sqrt(2)), (0.5, 1.0), (0.0, 0.0)):
        o, lse = paged_attention_reference(
            q, k, v, _ints([[0]]), _ints([3]), sm_scale=sm_scale, return_lse=True
        )
        # Tokens 0, 1, 2 of head 0 hold (0, 1), (4, 5), (8, 9); of head 1 (2, 3), (6, 7), (10, 11).
        assert torch.allclose(o[0], _doubles([[4, 5], [4, 5], [6, 7], [6, 7]]), rtol=1e-14)
        assert torch.allclose(lse, torch.full_like(lse, score + math.log(3)), rtol=1e-14)


def test_empty_sequences_and_no_sequences():
    case = make_case([0, 0], dtype=torch.float32)
    o, lse = paged_attention_reference(*case.args, return_lse=True)
    assert torch.equal(o, torch.zeros_like(o)) and torch.isneginf(lse).all()
    case = make_case([], dtype=torch.float32)
    o, lse = paged_attention_reference(*case.args, return_lse=True)
    assert o.shape == (0, 4, 32) and lse.shape == (0, 4)


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("shape", [Shape(1, 16, 16), Shape(4, 64, 16), Shape(3, 32, 32)])
def test_equals_torch_attention(shape, storage, kv_layout):
    case = make_case(
        listed_lengths(shape.page_size),
        shape,
        torch.float64,
        kv_layout=kv_layout,
        storage=storage,
        strided=True,
    )
    o = paged_attention_reference(*case.args, **case.kwargs)
    for b, n in enumerate(case.lens):
        if n:
            k, v = (t.transpose(0, 1) for t in tokens_of(case, b))
            expected = scaled_dot_product_attention(case.q[b, :, None].contiguous(), k, v)[:, 0]
            assert torch.allclose(o[b], expected, rtol=1e-11, atol=1e-13)


def test_enable_gqa_of_torch_maps_heads_the_same_way():
    case = make_case([21], Shape(4, 16, 16), torch.float64, num_kv_heads=3)
    k, v = (c[case.block_table[0, :2].long()].flatten(0, 1)[:21].transpose(0, 1) for c in case.nhd_caches)
    expected = scaled_dot_product_attention(case.q[0, :, None], k, v, enable_gqa=True)[:, 0]
    assert torch.allclose(paged_attention_reference(*case.args)[0], expected, rtol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_results_come_in_the_dtypes_of_the_contract(dtype):
    case = make_case([5], PLAIN, dtype)
    o, lse = paged_attention_reference(*case.args, return_lse=True)
    exact, exact_lse = paged_attention_reference(
        *(t.double() for t in case.args[:3]), *case.args[3:], return_lse=True
    )
    assert o.dtype == dtype and lse.dtype == torch.float32
    assert torch.equal(o, exact.to(dtype)) and torch.equal(lse, exact_lse.float())
    assert torch.equal(paged_attention_reference(*case.args), o)
