"""The tile of L7 in sizes that the table picks on a GPU: in the interpreter fast_decode takes 16 tokens."""

import pytest
import torch

from kernels import DecodePlan, paged_attention_reference
from kernels import l7_fast_decode as l7
from kernels.l7_launch import Tile
from tests.helpers.cases import Shape, listed_lengths, make_case
from tests.helpers.poison import poisoned

# Pages in a tile, at odds with it, and a tile in a page: each finds its ids and rows in another way.
PAGE_SIZES = [16, 24, 64]


@pytest.mark.parametrize("mask_all", [False, True], ids=["masked tail", "masked loop"])
@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.float8_e4m3fn], ids=["float16", "e4m3"])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("block_n", [32, 64, 128])
def test_tiles(block_n, page_size, kv_dtype, mask_all, monkeypatch):
    monkeypatch.setattr(l7, "masks_all", lambda *_: mask_all)
    lens = [*listed_lengths(page_size), block_n - 1, 2 * block_n + 1]
    case = make_case(lens, Shape(3, 40, page_size), torch.float16, num_kv_heads=1)
    caches = [cache.to(kv_dtype) for cache in (case.k_cache, case.v_cache)]
    args = (case.q, *caches, case.block_table, case.seq_lens)
    inputs = l7.check_fast_inputs(*args, "NHD", None, None)
    wanted_o, wanted_lse = paged_attention_reference(
        case.q.double(), *(cache.double() for cache in caches), *args[3:], return_lse=True
    )
    for num_splits in (1, 3):
        call = l7.FastCall(case.q, inputs, case.block_table, DecodePlan(num_splits), Tile(block_n, 1, 2))
        with poisoned():
            o, lse, scratch = call.new_outputs()
            call(o, lse, scratch, *args)
        assert torch.allclose(o.double(), wanted_o, rtol=2e-3, atol=2e-3)
        assert torch.allclose(lse.double(), wanted_lse, rtol=1e-5, atol=1e-5)
