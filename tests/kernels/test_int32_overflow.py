"""Page id times stride needs int64: both sides of page 131072 at a stride of 16384 elements."""

import pytest
import torch

from tests.helpers import big_cache
from tests.helpers.decoders import DECODERS
from tests.helpers.far import assert_survives, skip_without_memory
from tests.helpers.marks import gpu_only, interpreter_only

decoders = pytest.mark.parametrize("name", DECODERS)


def test_the_bound_is_where_the_lesson_says():
    assert big_cache.PAGE_STRIDE == 16384
    assert big_cache.FIRST_PAGE_OUT_OF_INT32 == 131072
    assert 131071 * 16384 + 16383 == 2**31 - 1  # the last element that int32 reaches
    assert 131072 * big_cache.PAGE_STRIDE * 2 == 4 * 2**30  # fp16 bytes of K before it: 4 GiB


@interpreter_only
@decoders
def test_pages_on_both_sides_of_the_bound(name):
    assert_survives("big_cache", name)


@gpu_only
@decoders
def test_pages_on_both_sides_of_the_bound_on_a_gpu(name):
    skip_without_memory()
    big_cache.check(name)
    torch.cuda.empty_cache()
