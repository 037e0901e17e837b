"""All decoders are one function: drawn shapes, lengths, layouts and splits, beside the listed cases."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels import naive_paged_decode, paged_decode, split_kv_decode, split_kv_decode_unnormalized
from tests.helpers.cases import STORAGES, Shape, make_case
from tests.helpers.mode import DTYPES
from tests.helpers.oracle import assert_right

# Few of them: on a GPU each is a compilation of each kernel.
DRAWN_SHAPES = [Shape(1, 16, 16), Shape(2, 32, 16), Shape(3, 16, 32), Shape(5, 64, 16)]


@st.composite
def calls(draw, max_pages: int = 4):
    """(lens, shape, other arguments of make_case)."""
    shape = draw(st.sampled_from(DRAWN_SHAPES))
    near_an_edge = st.builds(
        lambda pages, extra: max(0, pages * shape.page_size + extra),
        st.integers(0, max_pages),
        st.integers(-1, 1),
    )
    lengths = near_an_edge | st.integers(0, max_pages * shape.page_size)
    return (
        draw(st.lists(lengths, min_size=0, max_size=3)),
        shape,
        {
            "dtype": draw(st.sampled_from(DTYPES)),
            "num_kv_heads": draw(st.integers(1, 2)),
            "kv_layout": draw(st.sampled_from(["NHD", "HND"])),
            "storage": draw(st.sampled_from(STORAGES)),
            "ids": draw(st.sampled_from(["scattered", "ordered"])),
            "strided": draw(st.booleans()),
            "spare_columns": draw(st.integers(0, 2)),
            "spare_pages": draw(st.integers(1, 3)),
            "beyond": draw(st.sampled_from([-1, 2**31 - 1])),
            "seed": draw(st.integers(0, 99)),
        },
    )


@given(call=calls())
def test_naive_and_packed(call):
    lens, shape, kwargs = call
    case = make_case(lens, shape, **kwargs)
    assert_right(naive_paged_decode, case)
    assert_right(paged_decode, case)


@given(call=calls(), num_splits=st.lists(st.integers(1, 6), min_size=2, max_size=2, unique=True))
def test_any_two_numbers_of_splits(call, num_splits):
    lens, shape, kwargs = call
    case = make_case(lens, shape, **kwargs)
    one, other = (assert_right(split_kv_decode, case, num_splits=n) for n in num_splits)
    eps = torch.finfo(case.q.dtype).eps
    assert torch.allclose(one[0], other[0], rtol=4 * eps, atol=4 * eps)
    assert torch.allclose(one[1], other[1], rtol=1e-5, atol=1e-5)


@given(call=calls(), num_splits=st.integers(1, 6))
def test_both_forms_of_partials(call, num_splits):
    lens, shape, kwargs = call
    case = make_case(lens, shape, **kwargs)
    normalized = assert_right(split_kv_decode, case, num_splits=num_splits)
    unnormalized = assert_right(split_kv_decode_unnormalized, case, num_splits=num_splits)
    eps = torch.finfo(case.q.dtype).eps
    assert torch.allclose(normalized[0], unnormalized[0], rtol=4 * eps, atol=4 * eps)
    assert torch.allclose(normalized[1], unnormalized[1], rtol=1e-5, atol=1e-5)
