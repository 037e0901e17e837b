"""The numbers worked by hand on the L2 page, section by section; those of compiled kernels are in
test_lesson_numbers_compiled.py, those of the pitfalls in test_lesson_numbers_pitfalls.py."""

import json
import math
from pathlib import Path

import pytest
import torch

from kernels import paged_decode
from kernels.checks import check_paged_inputs
from kernels.launch import TARGETS, packed_launch
from tests.helpers.cases import Shape, make_case
from tests.helpers.lesson import assert_numbers, nbytes
from tests.helpers.mode import DEVICE
from tests.helpers.oracle import run_poisoned

# The examples: Hq = 32, Hkv = 8, G = 4, D = 128, PAGE = 16, fp16. An H200: 132 SMs, 4.8 TB/s, 989.5 TFLOP/s.
HQ, HKV, G, D, PAGE = 32, 8, 4, 128, 16
SMS, BANDWIDTH, TENSOR_FLOPS = 132, 4.8e12, 989.5e12
KV_BYTES = {(b, ctx): nbytes(2, b, ctx, HKV, D) for b, ctx in ((64, 1024), (8, 4096), (1, 32768))}
FLOP = 4 * 64 * HQ * 1024 * D
REST = 2 * nbytes(64, HQ, D) + nbytes(64, 64, element_bytes=4) + nbytes(64, HQ, element_bytes=4)
FACTS = json.loads((Path(__file__).parents[2] / "snippets/generated/facts.json").read_text())


def strides(nhd: bool) -> torch.Tensor:
    """A cache without memory, as an NHD view [pages, PAGE, Hkv, D], laid out as NHD or as HND."""
    inner = (PAGE, HKV) if nhd else (HKV, PAGE)
    cache = torch.empty(10, *inner, D, dtype=torch.float16, device="meta")
    return cache if nhd else cache.transpose(1, 2)


NHD, HND = strides(nhd=True), strides(nhd=False)

NUMBERS = {
    "bytes": [
        (KV_BYTES[64, 1024], "268,435,456"), (KV_BYTES[64, 1024] / 1e6, "268"),
        (nbytes(64, HQ, D), "524,288"), (nbytes(64, 64, element_bytes=4), "16,384"),
        (nbytes(64, HQ, element_bytes=4), "8,192"), (100 * REST / KV_BYTES[64, 1024], "0.4"),
        (KV_BYTES[64, 1024] / BANDWIDTH * 1e6, "55.9"),
    ],
    "flop-per-byte": [
        (TENSOR_FLOPS / BANDWIDTH, "206"), (209.5e12 / 1.792e12, "117"), (67e12 / BANDWIDTH, "14"),
    ],
    "gqa": [(HQ // HKV, "4"), (13 // G, "3"), (13 % HKV, "5")],
    "pack": [
        (3 * G, "12"), (3 * G + 3, "15"), (3 * G + 4, "16"), (3 * G + 15, "27"), (100 * (1 - G / 16), "75"),
        (FLOP, "1,073,741,824"), (FLOP / TENSOR_FLOPS * 1e6, "1.1"), (4 * FLOP / TENSOR_FLOPS * 1e6, "4.3"),
        (8 * FLOP / TENSOR_FLOPS * 1e6, "8.7"), (KV_BYTES[64, 1024] / BANDWIDTH * 1e6, "55.9"),
    ],
    "block-table": [
        (math.ceil(37 / PAGE), "3"), (37 - 2 * PAGE, "5"), (36 // PAGE, "2"), (36 % PAGE, "4"),
        (NHD.stride(0), "16384"), (NHD.stride(1), "1024"), (NHD.stride(2), "128"),
        (7 * NHD.stride(0), "114688"), (4 * NHD.stride(1), "4096"), (3 * NHD.stride(2), "384"),
        (NHD[7, 4, 3].storage_offset(), "119168"),
        (HND.stride(0), "16384"), (HND.stride(1), "128"), (HND.stride(2), "2048"),
        (4 * HND.stride(1), "512"), (3 * HND.stride(2), "6144"), (HND[7, 4, 3].storage_offset(), "121344"),
    ],
    "fetch": [
        (131071 * NHD.stride(0), "2,147,467,264"), (2**31, "2,147,483,648"),
        (131072 * NHD.stride(0) * 2 / 2**30, "4"),
    ],
    "write-back": [
        (3 * G + 4, "16"), (3 * G + 15, "27"), (7 * G + 4, "32"), (7 * G + 15, "43"), (7 * G + 15 - HQ, "11"),
        (nbytes(12, D), "3072"), (math.log(37), "3.6109"),
    ],
    "launcher": [(64 * HKV, "512"), (1 * HKV, "8")],
    "layouts": [(nbytes(D), "256"), (nbytes(D) / 32, "8"), (nbytes(PAGE, D) / 1024, "4")],
    "warps-stages": [
        (nbytes(16, D), "4096"), (2 * nbytes(PAGE, D), "8192"),
        (packed_launch(TARGETS["sm_90"], 2, 16, D, PAGE).num_stages, "7"), (64 * HKV / SMS, "4"),
    ],
    "measured": [
        (G * KV_BYTES[64, 1024], "1,073,741,824"), (KV_BYTES[8, 4096], "134,217,728"),
        (KV_BYTES[1, 32768], "134,217,728"),
    ],
    "small-batch": [
        (SMS - HKV, "124"), (32768 / PAGE, "2048"), (nbytes(2, PAGE, D), "8192"),
        (32768 // PAGE * nbytes(2, PAGE, D), "16,777,216"), (3 * nbytes(2, PAGE, D) / 1024, "24"),
        (8 * HKV, "64"), (4096 / PAGE, "256"), (64 * HKV, "512"), (1024 / PAGE, "64"),
    ],
    "check-yourself": [
        (20 // PAGE, "1"), (20 % PAGE, "4"), (64 // HKV, "8"), (5 * 8, "40"), (5 * 8 + 7, "47"),
        (KV_BYTES[8, 4096], "134,217,728"), (KV_BYTES[8, 4096] / BANDWIDTH * 1e6, "28.0"),
        (16 * 1 * 128, "2048"), (2**31 / 2048, "1,048,576"), (2**31 * 2 / 2**30, "4"),
    ],
    "interview": [
        (512 + 64, "576"), (nbytes(576), "1152"), (2 * 128 * (576 + 512), "278,528"),
        (278_528 / 1152, "242"), (TENSOR_FLOPS / BANDWIDTH, "206"), (4 * G, "16"),
        (16 / 2, "8"), (64 / 2, "32"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("anchor", NUMBERS)
def test_arithmetic(anchor):
    """The section named by the id."""
    assert_numbers("l2_paged_decode", anchor, NUMBERS[anchor])


def test_what_is_left_out_of_the_account():
    """#bytes: q, o, table and lse are below 0.4% of K and V."""
    assert 100 * REST / KV_BYTES[64, 1024] < 0.4


@pytest.mark.parametrize(("group_size", "rows"), [(4, 16), (5, 16), (17, 32), (8, 16)])
def test_rows_of_the_tile(group_size, rows):
    """#pack, #check-yourself: BLOCK_G."""
    case = make_case([5], Shape(group_size, 16, PAGE), num_kv_heads=1)
    assert check_paged_inputs(*case.args, "NHD").block_g == rows


def test_int32_wraps_at_page_131072():
    """#fetch"""
    pages = torch.tensor([131071, 131072], dtype=torch.int32)
    assert (pages * torch.tensor(16384, dtype=torch.int32)).tolist() == [2_147_467_264, -(2**31)]
    assert 7700 < 2**31 / 276_000 < 7800  # the strides of #pitfall-int32's kin: past page 7.7k


def test_three_pages_by_hand():
    """#update: the table of states, from the sequence cut after 16, 32 and 37 tokens."""
    case = make_case([16, 32, 37], Shape(G, PAGE, PAGE), num_kv_heads=1, spare_pages=4, sm_scale=1.0)
    case.q.zero_()
    case.q[..., 0] = 1
    case.block_table.fill_(-1)
    for b in range(3):
        case.block_table[b, : b + 1] = torch.tensor([9, 3, 7], device=DEVICE)[: b + 1]
    case.k_cache.fill_(math.nan)
    case.v_cache.fill_(math.nan)
    for page, score, value, tokens in ((9, 1, 10, 16), (3, 3, 20, 16), (7, 2, 30, 5)):
        case.k_cache[page, :tokens] = 0
        case.k_cache[page, :tokens, 0, 0] = score
        case.v_cache[page, :tokens] = value
    o, lse = (t[:, 0].double() for t in run_poisoned(paged_decode, case))
    m = torch.tensor([1.0, 3.0, 3.0], dtype=torch.float64, device=DEVICE)
    sums = torch.exp(lse - m).tolist()
    accs = (o[:, 0] * torch.exp(lse - m)).tolist()
    assert sums == pytest.approx([16, 18.1654, 20.0048], abs=5.1e-5)
    assert accs == pytest.approx([160, 341.6536, 396.8356], abs=2e-4)
    assert o[2, 0].item() == pytest.approx(19.8371, abs=5.1e-5)
    assert lse[2].item() == pytest.approx(5.9960, abs=5.1e-5)


def test_three_pages_in_float64():
    """#update: the same table, to the last digit."""
    e = math.exp
    l_1, acc_1 = 16 * e(-2) + 16, 160 * e(-2) + 320
    l_2, acc_2 = l_1 + 5 * e(-1), acc_1 + 30 * 5 * e(-1)
    numbers = [
        (e(-2), "0.1353"), (e(-1), "0.3679"), (5 * e(-1), "1.8394"), (150 * e(-1), "55.1819"),
        (l_1, "18.1654"), (acc_1, "341.6536"), (l_2, "20.0048"), (acc_2, "396.8356"),
        (acc_2 / l_2, "19.8371"), (3 + math.log(l_2), "5.9960"),
    ]  # fmt: skip
    assert_numbers("l2_paged_decode", "update", numbers)


@pytest.mark.parametrize(
    ("dtype", "unit", "rounded", "error"),
    [(torch.float16, 4.9e-4, "0.367920", 1.1e-4), (torch.bfloat16, 3.9e-3, "0.367188", 1.9e-3)],
)
def test_the_price_of_casting_p(dtype, unit, rounded, error):
    """#p-cast: u, and exp(-1) in the dtype."""
    assert torch.finfo(dtype).eps / 2 == pytest.approx(unit, abs=5e-2 * unit)
    exact = math.exp(-1)
    cast = torch.tensor(exact, dtype=torch.float64).to(dtype).item()
    assert_numbers("l2_paged_decode", "p-cast", [(exact, "0.367879"), (cast, rounded)])
    assert abs(cast - exact) / exact == pytest.approx(error, abs=0.05 * 10 ** math.floor(math.log10(error)))


def test_a_padding_row():
    """#write-back: q = 0 gives the mean of V and ln 37."""
    case = make_case([37], Shape(G, PAGE, PAGE), num_kv_heads=1)
    case.q.zero_()
    o, lse = run_poisoned(paged_decode, case)
    v = case.v_cache[case.block_table[0, :3].long()].flatten(0, 1)[:37, 0]
    torch.testing.assert_close(o[0, 0], v.mean(0), rtol=1e-5, atol=1e-6)
    assert f"{lse[0, 0]:.4f}" == "3.6109"


def test_what_the_measured_ratios_say():
    """#measured: below G at B = 64, about G at B = 1; the bytes naive asks for exceed the bandwidth."""
    assert float(FACTS["h200.l2.64x1024.naive_over_packed"]) < G
    assert round(float(FACTS["h200.l2.1x32768.naive_over_packed"])) == G
    assert G * KV_BYTES[64, 1024] / (float(FACTS["h200.l2.64x1024.naive.us"]) * 1e-6) > BANDWIDTH
