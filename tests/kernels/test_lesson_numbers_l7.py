"""The numbers worked by hand on the L7 page, section by section; those of the compiled kernels are read from
what is committed, snippets/generated/compiled and .../l7_fast_decode/evidence.json."""

import json
import math
from pathlib import Path
from unittest import mock

import pytest
import torch

from kernels import DecodePlan, choose_num_splits, fast_decode, l7_plan, make_plan
from kernels.l7_launch import TILES, Tile, choose_tile, tile_shared_bytes
from kernels.l7_rungs import fill_num_splits
from kernels.launch import TARGETS
from scripts.compiled_evidence import evidence
from tests.helpers.cases import Shape, make_case
from tests.helpers.lesson import assert_numbers, nbytes
from tests.helpers.marks import interpreter_only
from tests.helpers.mode import DEVICE, ON_GPU
from tests.helpers.traced import run_traced

LESSON = "l7_fast_decode"
GENERATED = Path(__file__).parents[2] / "snippets/generated"
EVIDENCE = json.loads((GENERATED / "l7_fast_decode/evidence.json").read_text())["rungs"]
# The examples: Hq = 32, Hkv = 8, G = 4, D = 128, PAGE = 16, fp16, 132 SMs, 4.8 TB/s.
HKV, D, PAGE, SMS, PEAK = 8, 128, 16, 132, 4.8e12
PAGE_BYTES = nbytes(2, PAGE, D)
MIB = 2**20
LOG2_E = math.log2(math.e)
SCALE = 128**-0.5


def kv_bytes(batch_size: int, ctx: int) -> int:
    return nbytes(2, batch_size, ctx, HKV, D)


def loop(name: str, opcode: str = "") -> int:
    """Instructions of a rung's page loop on sm_90, of one opcode or all."""
    counts = EVIDENCE[name]["sm_90"]["loop"]
    return sum(n for found, n in counts.items() if not opcode or found.split(".")[0] == opcode)


def row(name: str, field: str, target: str = "sm_90") -> int:
    return EVIDENCE[name][target][field]


NUMBERS = {
    "floor": [
        (kv_bytes(1, 32768), "134,217,728"), (kv_bytes(1, 32768) / PEAK * 1e6, "28.0"),
        (kv_bytes(1, 32768) / MIB, "128"),
    ],
    "where-l3-stands": [
        (PEAK * 1e-6 / 1e6, "4.8"), (PEAK * 1e-6 / SMS / 1e3, "36"), (PAGE_BYTES / 1024, "8"),
        (1 * HKV * 64, "512"), (512 * 3 * PAGE_BYTES / MIB, "12"), (512 * PAGE_BYTES / MIB, "4"),
    ],
    "rung-vector-table": [
        (loop("split"), "404"), (loop("split", "IMAD"), "1"), (loop("vector_table"), "861"),
        (loop("vector_table", "IMAD"), "136"), (row("vector_table", "num_regs"), "255"),
        (row("vector_table", "spilled_bytes", "sm_120"), "88"), (row("vector_table", "block_n"), "32"),
    ],
    "rung-exp2": [
        (SCALE, "0.08839"), (-16 * SCALE, "-1.4142"), (math.exp(-16 * SCALE), "0.2431"), (LOG2_E, "1.4427"),
        (SCALE * LOG2_E, "0.12752"), (-16 * SCALE * LOG2_E, "-2.0403"),
        (2 ** (-16 * SCALE * LOG2_E), "0.2431"),
        (loop("vector_table", "FMUL"), "134"), (loop("exp2", "FMUL"), "80"),
    ],
    "rung-unmasked": [
        (loop("prefetch", "FSEL"), "8"), (loop("unmasked", "FSEL"), "0"), (loop("prefetch"), "422"),
        (loop("unmasked"), "402"), (row("prefetch", "num_regs"), "192"), (row("unmasked", "num_regs"), "236"),
        (row("unmasked", "programs_per_sm"), "4"), (row("prefetch", "programs_per_sm"), "5"),
    ],
    "rung-fill": [(2 * SMS, "264"), (2 * SMS // 8, "33"), (2 * SMS // 64, "4")],
    "rung-early": [
        (row("dependent_combine", "num_regs"), "96"), (row("dependent_combine", "shared_bytes"), "256"),
    ],
    "not-kept": [
        (row("evict_first", "policies_made"), "32"), (loop("evict_first"), "575"),
        (loop("int32_offsets"), "459"),
        (loop("evict_first", "IMAD"), "128"), (loop("int32_offsets", "IMAD"), "34"), (loop("tma"), "271"),
        (row("tma", "num_regs"), "190"), (2**31 * 2 / 2**30, "4"), (4 * math.ceil(33 / 16), "12"),
    ],
    "fast-combine": [
        (nbytes(64, D, element_bytes=4) / 1024, "32"), (D / (2048 / 64), "4"), (2048 / 1024, "2"),
    ],
    "write": [(math.log(2), "0.6931")],
    "why-pairs": [(32 * D, "4096"), (32 * D / 32, "128"), (2 * 32 * D, "8192"), (2 * 32 * D / 32, "256")],
    "tiles": [(3 * PAGE_BYTES + 16 * D * 2, "28,672"), (2 * PAGE_BYTES + 16 * D * 2, "20,480"),
        (PAGE_BYTES, "8192"), (16 * D * 2, "4096")],
    "regret": [
        (4 * SMS // 8, "66"), (math.ceil(2048 / 66), "32"), (4 * SMS // 32, "16"), (4 * SMS, "528"),
        (128 * HKV, "1024"),
    ],
    "host": [(kv_bytes(1, 1024), "4,194,304")],
    "targets": [(kv_bytes(4, 2048), "33,554,432"), (kv_bytes(4, 2048) / PEAK * 1e6, "7.0")],
    "pitfall-log2e": [(1 / math.log(2), "1.44"), (2 ** (-16 * SCALE), "0.3752")],
    "pitfall-ln2": [(1 / math.log(2), "1.4427")],
    "check-yourself": [(8 * HKV, "64"), (528 // 64, "8"), (4096 // PAGE, "256"), (256 * HKV, "2048")],
    "interview": [(loop("packed_habit", "BAR"), "9"), (loop("packed", "BAR"), "2")],
}  # fmt: skip


@pytest.mark.parametrize("anchor", NUMBERS)
def test_arithmetic(anchor):
    """The section named by the id."""
    assert_numbers(LESSON, anchor, NUMBERS[anchor])


def test_less_than_a_microsecond():
    """#host: the KV of 1 x 1024 at the nominal bandwidth."""
    assert kv_bytes(1, 1024) / PEAK < 1e-6


def test_fill():
    """#rung-fill"""
    assert [fill_num_splits(b, HKV, n, 64, SMS) for b, n in ((1, 32768), (8, 4096), (64, 1024))] == [33, 4, 1]


def test_instructions_that_dependent_launch_adds():
    """#rung-dependent"""
    added = {"dependent_launch": "PREEXIT", "dependent_combine": "ACQBULK"}
    for name, opcode in added.items():
        assert row(name, "kernel")[opcode] == 1 and opcode not in row("fill_sms", "kernel")
        assert opcode not in row("combine", "kernel")


def test_the_policy_is_on_no_copy():
    """#not-kept"""
    assert row("evict_first", "policies_on_copies") == 0


def test_barriers_by_warps():
    """#interview: 9 with 4 warps, 2 with one."""
    assert {loop(name, "BAR") for name in EVIDENCE if row(name, "num_warps") == 4} == {9}
    assert {loop(name, "BAR") for name in ("packed", "split", "vector_table", "exp2", "evict_first")} == {2}


@interpreter_only  # needs the trace
def test_the_even_cut():
    """#range-by-hand: the table, and ctx = 272 in 16 splits."""
    for ctx, num_splits, tokens in ((1000, 4, [240, 256, 256, 248]), (272, 16, [16] * 15 + [32])):
        t = run_traced(
            fast_decode, make_case([ctx], Shape(1, 16, 16), num_kv_heads=1), plan=DecodePlan(num_splits)
        )
        read = [0] * num_splits
        for access in t.reads("k_ptr"):
            pages, slots = (axis.tolist() for axis in access.coordinates[:2])
            read[access.program[1]] += len(set(zip(pages, slots, strict=True)))
        assert read == tokens
    assert_numbers(LESSON, "range-by-hand", [(n, str(n)) for n in (240, 256, 248, 232)])
    assert [63 * s // 4 for s in range(5)] == [0, 15, 31, 47, 63] and math.ceil(63 / 4) == 16
    per_split = math.ceil(17 / 16)
    assert sum(s * per_split < 17 for s in range(16)) == 9


def test_plan_of_three_sequences():
    """#plan-by-hand"""
    lens = torch.tensor([40, 1000, 300], dtype=torch.int32, device=DEVICE)
    with mock.patch.object(l7_plan, "num_sms", return_value=12):
        plan = make_plan(lens, 2, programs_per_sm=1)
    assert plan.slots.tolist() == [[7, 1], [0, 5], [5, 2]]
    rows = [[1, s, 5, 0] for s in range(5)] + [[2, 0, 2, 0], [2, 1, 2, 0], [0, 0, 1, 0], [0, 2, 2, 0]]
    assert plan.work.tolist() == rows and len(rows) == 3 + math.ceil(12 / 2) == 9
    tokens = math.ceil(sum(lens.tolist()) * 2 / 12)
    assert tokens == 224 > l7_plan.MIN_TOKENS
    assert [math.ceil(n / tokens) for n in (40, 1000, 300)] == [1, 5, 2]
    assert [63 * s // 5 for s in range(6)] == [0, 12, 25, 37, 50, 63]
    numbers = [(2 * 1340, "2680"), (tokens, "224"), (1000 / 5, "200"), (300 / 2, "150")]
    assert_numbers(LESSON, "plan-by-hand", numbers)


BYTES = {0x38: (1.0, 0x3C00), 0x45: (3.25, 0x4280), 0x40: (2.0, 0x4000), 0xB8: (-1.0, 0xBC00),
         0x7E: (448.0, 0x5F00), 0x01: (2.0**-9, 0x1800), 0xC4: (-3.0, 0xC200)}  # fmt: skip


@pytest.mark.parametrize("code", BYTES, ids=hex)
def test_bytes_of_e4m3(code):
    """#e4m3-by-hand, #check-yourself"""
    half = torch.tensor([code], dtype=torch.uint8).view(torch.float8_e4m3fn).half()
    value, bits = BYTES[code]
    assert half.item() == value and half.view(torch.int16).item() & 0xFFFF == bits
    sign, exponent, mantissa = code >> 7, code >> 3 & 15, code & 7
    by_hand = 2.0 ** (exponent - 7) * (1 + mantissa / 8) if exponent else 2.0**-6 * mantissa / 8
    assert (-1) ** sign * by_hand == value


def test_the_unpacking_by_hand():
    """#e4m3-by-hand: cvt, then prmt; the pairs as they lie in memory."""

    def cvt(pair: int) -> int:
        return BYTES[pair & 0xFF][1] | BYTES[pair >> 8][1] << 16

    def prmt(a: int, b: int, selector: int) -> int:
        source = a.to_bytes(4, "little") + b.to_bytes(4, "little")
        return int.from_bytes(bytes(source[selector >> 4 * i & 7] for i in range(4)), "little")

    memory = torch.tensor([0x38, 0x45, 0x40, 0xB8], dtype=torch.uint8).view(torch.int16)
    first, second = (pair & 0xFFFF for pair in memory.tolist())
    assert (first, second) == (0x4538, 0xB840)
    x, y = cvt(first), cvt(second)
    assert (x, y) == (0x42803C00, 0xBC004000)
    assert (prmt(x, y, 0x5410), prmt(x, y, 0x7632)) == (0x40003C00, 0xBC004280)


def test_error_of_e4m3():
    """#e4m3-error: half a step of 3 bits of mantissa."""
    x = torch.linspace(2**-6, 448, 100_000)
    error = ((x.to(torch.float8_e4m3fn).float() - x).abs() / x).max().item()
    assert 0.9 / 16 < error <= 1 / 16


def test_the_tile():
    """#tiles: fp16, D = 128; an SM holds 7."""
    tile = choose_tile(TARGETS["sm_90"], 2, 16, D, 4, True)
    assert tile == Tile(16, 1, 4) and TILES[2, 16].split()[3] == "16x1x4"
    needed = 3 * PAGE_BYTES + 16 * D * 2
    assert evidence("l7_fast", "sm_90").shared_bytes == needed <= tile_shared_bytes(tile, 2, 16, D)
    assert 228 * 1024 // (needed + 1024) == 7


@pytest.mark.parametrize(
    ("batch_size", "ctx", "splits"),
    [(1, 32768, 64), (4, 2048, 16), (128, 2048, 2), (8, 4096, 8), (256, 512, 1)],
)
def test_choices(batch_size, ctx, splits):
    """#regret, #check-yourself"""
    assert choose_num_splits(batch_size, HKV, ctx, PAGE, SMS) == splits


@pytest.mark.skipif(ON_GPU, reason="of the pinned Triton, on a CPU")
def test_what_was_compiled():
    """#compiled"""
    fast, fp8 = (evidence(kernel, "sm_90") for kernel in ("l7_fast", "l7_fast_fp8"))
    assert fast.count("LDGSTS.E.BYPASS.128", loop=True) == 16 and PAGE_BYTES == 16 * 32 * 16
    assert fast.count("FSEL", loop=True) == fp8.count("LDS.U8", loop=True) == 0
    tiles = [(k.record["constants"]["BLOCK_N"], k.record["num_warps"]) for k in (fast, fp8)]
    assert tiles == [(16, 1), (64, 4)]
    whole = [kernel.count("*", loop=True) - kernel.count("NOP", loop=True) for kernel in (fast, fp8)]
    numbers = [
        (whole[0], "287"), (loop("split"), "404"), (whole[1], "406"), (64 / 4, "16"),
        (fp8.count("LDSM.MT88", loop=True), "4"), (fp8.count("F2FP.E4M3.UNPACK_B", loop=True), "64"),
        (fp8.count("PRMT", loop=True), "64"), (2 * 64 * D / 128, "128"),
    ]  # fmt: skip
    assert_numbers(LESSON, "compiled", numbers)
