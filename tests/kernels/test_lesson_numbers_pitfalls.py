"""Numbers of the pitfalls of L2 and L3 that follow from the mistake itself; the wrong merges are in
test_lesson_numbers_merge.py."""

import math

import pytest
import torch

from kernels import paged_decode
from tests.helpers.cases import Shape, make_case
from tests.helpers.lesson import assert_numbers, nbytes
from tests.helpers.marks import interpreter_only
from tests.helpers.mode import DEVICE
from tests.helpers.oracle import run_poisoned

PAGE = 16


def of_37_tokens(values: dict[int, float], table: list[int]):
    """One sequence, equal scores, whose pages hold these values, in a cache of 12 pages."""
    case = make_case([37], Shape(4, 16, PAGE), num_kv_heads=1, spare_pages=9)
    case.q.zero_()
    for page, value in values.items():
        case.k_cache[page], case.v_cache[page] = 0, value
    case.block_table[0, :3] = torch.tensor(table, device=DEVICE)
    return case


def test_l2_interleaved_heads():
    """#pitfall-heads: KV head of each query head, Hq = 32, Hkv = 8; head 13, as in #gqa."""
    case = make_case([5], Shape(4, 16, PAGE), num_kv_heads=8)
    case.v_cache[:] = torch.arange(8, device=DEVICE)[:, None]
    o, _ = run_poisoned(paged_decode, case)
    assert o[0, :, 0].round().int().tolist() == [head // 4 for head in range(32)]
    assert [head // 4 for head in range(9)] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert [head % 8 for head in range(10)] == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


def test_l2_scores_not_masked():
    """#pitfall-score-mask: 48 slots share what belongs to 37 tokens."""
    o, lse = run_poisoned(paged_decode, of_37_tokens({9: 1, 3: 1, 7: 1}, [9, 3, 7]))
    assert o.allclose(torch.ones_like(o))
    numbers = [(lse[0, 0].item(), "3.6109"), (math.log(48), "3.8712"), (37 / 48, "0.7708")]
    assert_numbers("l2_paged_decode", "pitfall-score-mask", numbers)


@pytest.mark.parametrize(("table", "o"), [([9, 3, 7], "1.7027"), ([9, 0, 7], "44.0811")])
def test_l2_clamped_page(table, o):
    """#pitfall-clamp: -1 in the place of page 3 becomes page 0, somebody else's."""
    result = run_poisoned(paged_decode, of_37_tokens({9: 1, 3: 2, 7: 3, 0: 100}, table))[0][0, 0, 0].item()
    by_hand = (16 * 1 + 16 * (2 if table[1] else 100) + 5 * 3) / 37
    assert_numbers("l2_paged_decode", "pitfall-clamp", [(result, o), (by_hand, o)])


@interpreter_only  # on a GPU only with KERNELS_CHECKED=1: tests/kernels/test_checked_mode.py
def test_l2_the_message_about_page_minus_one():
    """#pitfall-clamp"""
    message = r"block_table\[0, 1\] is -1; wanted 0 to 11: the cache has 12 pages"
    with pytest.raises(ValueError, match=message):
        paged_decode(*of_37_tokens({9: 1, 7: 3}, [9, -1, 7]).args)


def test_l2_sizes():
    """#pitfall-padding-rows, #pitfall-empty, #pitfall-scale"""
    assert_numbers("l2_paged_decode", "pitfall-padding-rows", [((16 - 4) * 16, "192")])
    assert_numbers("l2_paged_decode", "pitfall-empty", [(8 * 16, "128")])
    assert_numbers("l2_paged_decode", "pitfall-scale", [(math.sqrt(64), "8")])
    assert nbytes(131072, 16384) == 4 * 2**30


def test_l3_rounded_down():
    """#pitfall-floor: pages nobody reads, and a sequence that seems empty."""
    pages = math.ceil(1000 / PAGE)
    assert 4 * (pages // 4) == 60 and list(range(60, pages)) == [60, 61, 62]
    assert math.ceil(37 / PAGE) // 4 == 0


def test_l3_the_page_at_the_cut():
    """#pitfall-cut-page: ctx = 1000 in tokens of 250."""
    tokens = math.ceil(1000 / 4)
    read = []
    for split_id in range(4):
        token_end = min((split_id + 1) * tokens, 1000)
        read += range(split_id * tokens // PAGE, math.ceil(token_end / PAGE))
    assert tokens == 250 and math.ceil(250 / PAGE) == 16 and 250 // PAGE == 15
    assert sorted(page for page in set(read) if read.count(page) == 2) == [15, 31, 46]
