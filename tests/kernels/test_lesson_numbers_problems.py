"""Numbers on the problem and interview pages, worked out again, and the tests that those pages print."""

import json
import math
import re
import struct
from pathlib import Path

import pytest
import torch

from scripts.mutant_files import all_ids
from tests.helpers.marks import interpreter_only

DOCS = Path(__file__).resolve().parents[2] / "docs"
LESSONS = ("online_softmax", "l2_paged_decode", "l3_split_kv_decode")


def text_of(lang: str, folder: str, name: str) -> str:
    return (DOCS / lang / folder / f"{name}.md").read_text(encoding="utf-8")


def assert_typed(name: str, *numbers: str, folder: str = "problems") -> None:
    """Both languages print these."""
    for lang in ("zh", "en"):
        text = text_of(lang, folder, name)
        missing = [number for number in numbers if number not in text]
        assert not missing, f"docs/{lang}/{folder}/{name}.md does not print {missing}"


def sum_of(step: float, count: int, dtype: torch.dtype) -> float:
    """Where a running sum of equal steps stands after so many, or from where on it no longer moves."""
    total = torch.tensor(0.0, dtype=dtype)
    for _ in range(count):
        after = total + torch.tensor(step, dtype=dtype)
        if after == total:
            break
        total = after
    return total.item()


def test_a_state_in_16_bits_stops_growing():
    assert sum_of(1, 32768, torch.float16) == 2048 and 32768 / 2048 == 16
    assert sum_of(16, 32768, torch.float16) == 32768
    assert sum_of(1, 32768, torch.bfloat16) == 256
    start = torch.tensor(2.0**24)
    assert start + 1 == start == 16_777_216 and start - 1 != start
    assert_typed("online_softmax", "2048", "32768", "256", "16,777,216")


def test_bases_other_than_the_maximum():
    assert round(math.exp(8)) == 2981 < torch.finfo(torch.float16).max == 65504
    assert 2**20 * math.exp(8) == pytest.approx(3.1e9, rel=0.01)
    assert (torch.exp(torch.tensor([1.0, 2.0, 3.0, 0.0]) - 1000) == 0).all()
    assert torch.exp(torch.tensor(88.72)).isfinite() and torch.exp(torch.tensor(88.73)).isinf()
    assert_typed("online_softmax", "2981", "65504", "88.72", r"3.1 \times 10^9")


def test_bytes_of_one_pass_and_of_two():
    k = 64 * 1024 * 8 * 128 * 2
    assert k == 134_217_728 and 3 * k == 402_653_184 and 3 * k / (2 * k) == 1.5
    assert 32768 * 4 == 131072 and (2 + 128) * 4 == 520
    assert 16 * 128 == 2048 and 2048 // 32 == 64
    assert_typed("online_softmax", "134,217,728", "402,653,184", "131072", "520")


def test_bases_of_the_logarithm():
    assert struct.pack(">f", math.log2(math.e)).hex() == "3fb8aa3b"
    lse = torch.tensor([math.log(math.exp(1) + math.exp(2)), math.log(math.exp(3) + 1)], dtype=torch.float64)
    o = torch.tensor([10 + 10 / (1 + math.exp(-1)), 40 - 10 / (1 + math.exp(-3))], dtype=torch.float64)
    base_2 = lse / math.log(2)
    assert [round(x, 3) for x in lse.tolist()] == [2.313, 3.049]
    assert [round(x, 3) for x in base_2.tolist()] == [3.337, 4.398]
    assert (torch.softmax(lse, 0) @ o).item() == pytest.approx(26.21, abs=5e-3)
    assert (torch.softmax(base_2, 0) @ o).item() == pytest.approx(27.09, abs=5e-3)
    assert o.mean().item() == pytest.approx(23.89, abs=5e-3)
    # An empty split with an lse of 0 has a vote.
    assert math.exp(0 - 3.049) == pytest.approx(0.047, abs=5e-4)
    voted = torch.softmax(torch.cat([lse, torch.zeros(1)]), 0) @ torch.cat([o, torch.zeros(1)])
    assert voted.item() == pytest.approx(25.39, abs=5e-3)
    assert_typed("online_softmax", "0f3FB8AA3B", "1.442695", "0.693147", "3.337", "4.398", "27.09")
    assert_typed("l3_split_kv_decode", "17.31", "30.47", "23.89", "25.39", "0.047")


def test_bytes_and_operations_of_a_step():
    kv, flop = 2 * 64 * 1024 * 8 * 128 * 2, 4 * 64 * 32 * 1024 * 128
    assert kv / 1e6 == pytest.approx(268, abs=0.5) and flop / kv == 4
    assert [round(kv / 4.8e6, 1), round(flop / 989.5e6, 1), round(4 * flop / 989.5e6, 1)] == [55.9, 1.1, 4.3]
    assert 8 * 3 * 8 == 192 and 512 * 3 * 8 / 1024 == 12  # KiB, MiB
    assert 2 * 128 * (576 + 512) == 278_528 and round(278_528 / 1152) == 242
    assert_typed("l2_paged_decode", "55.9", "1.1", "4.3", "192 KiB", "12 MiB", "278,528", "242")
    assert_typed("l2_paged_decode", "268 MB", folder="interviews")


def test_where_int32_wraps():
    stride = 16 * 8 * 128
    assert 131071 * stride == 2_147_467_264 < 2**31 == 2_147_483_648 == 131072 * stride
    assert 200_000 * stride > 2**31
    assert 2**31 // (16 * 128) == 1_048_576 and 2**31 * 2 == 4 * 2**30
    assert_typed("l2_paged_decode", "131071 × 16384 = 2,147,467,264", "1,048,576")
    assert_typed("l2_paged_decode", "200000", folder="interviews")


def test_groups_cut_among_cards():
    for cards, group_size, times in ((8, 4, 1), (16, 2, 2)):
        q_heads, kv_heads = 32 // cards, max(1, 8 // cards)
        assert q_heads // kv_heads == group_size and cards * kv_heads / 8 == times


def test_stages_in_shared_memory_and_registers():
    assert 4096 + 8192 + 4 == 12292 and 12292 + 2 * (8192 + 4) == 28684
    assert 168 * 32 * 4 == 21_504
    assert_typed("l2_paged_decode", "12292", "28684", "8192 + 4", "21,504", "65,536")


def test_splits_and_their_partials():
    assert round(math.exp(10)) == 22026 and round(math.exp(4)) == 55
    assert 63 * 8 * (64 - 16) == 24192 and 528 // 512 == 1
    assert 4 * 128 * 4 == 2048 and 2 * 2048 / 8192 == 0.5 and round(2 * 2048 / (32 * 8192), 3) == 0.016
    assert 1 * 32 * 64 * 128 * 4 == 1_048_576 and 64 * 128 * 4 == 32 * 1024
    assert 227 * 1024 // (29_184 + 1024) == 7 and 7 * 132 == 924 and 1024 - 924 == 100
    assert_typed("l3_split_kv_decode", "22026", "24192", "1.6", "1,048,576", "29,184", "924")


def test_instructions_that_exp2_saves():
    path = DOCS.parent / "snippets/generated/l7_fast_decode/evidence.json"
    rungs = json.loads(path.read_text(encoding="utf-8"))["rungs"]
    assert [rungs[name]["sm_90"]["loop"]["FMUL"] for name in ("vector_table", "exp2")] == [134, 80]
    assert_typed("online_softmax", "134", "80")


@pytest.mark.parametrize("name", LESSONS)
def test_every_known_mistake_is_on_the_page(name):
    for lang in ("zh", "en"):
        shown = re.findall(r"^\{\{ mutant:(\S+) \}\}$", text_of(lang, "problems", name), re.M)
        assert sorted(shown) == sorted(all_ids(name))


@pytest.mark.parametrize("name", LESSONS)
def test_both_languages_begin_with_the_same_test(name):
    assert printed_test("zh", name) == printed_test("en", name)


@interpreter_only
@pytest.mark.parametrize("name", LESSONS)
def test_the_solution_passes_the_test_that_the_page_prints(name):
    scope: dict = {}
    exec(compile(printed_test("en", name), f"{name}.md", "exec"), scope)
    tests = [value for key, value in scope.items() if key.startswith("test_")]
    assert len(tests) == 1
    tests[0]()


def printed_test(lang: str, name: str) -> str:
    section = text_of(lang, "problems", name).split("{#write-tests}")[1]
    return re.search(r"```python\n(.*?)```", section, re.S)[1]
