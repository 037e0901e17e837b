"""What the L2 and L3 pages say of the compiled kernels: shared memory, registers, instructions (sm_90)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.launch import TABLE, TARGETS, packed_launch
from tests.helpers.lesson import assert_numbers
from tests.helpers.mode import ON_GPU

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles with the pinned Triton, on a CPU")

LESSON_CASE = 2, 16, 128, 16  # element bytes, rows, D, PAGE


@pytest.fixture(scope="module")
def compiled() -> dict[str, dict]:
    """{kernel and "warps x stages": its figures}, from one process without the interpreter."""
    command = [sys.executable, "-m", "tests.helpers.compiled"]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout)


def count(instructions: dict[str, int], start: str) -> int:
    return sum(n for opcode, n in instructions.items() if opcode.startswith(start))


@pytest.mark.parametrize(
    ("stages", "buffers", "needed"),
    [
        (2, 1, 4096 + 8192),
        (3, 1, 4096 + 8192 + 4),
        (4, 1, 4096 + 8192 + 4),
        (5, 2, 4096 + 2 * (8192 + 4)),
        (6, 2, 4096 + 2 * (8192 + 4)),
        (7, 3, 4096 + 3 * (8192 + 4)),
    ],
)
def test_l2_shared_memory_by_stages(compiled, stages, buffers, needed):
    """l2_paged_decode#warps-stages: the table."""
    assert buffers == max(1, (stages - 1) // 2)
    assert compiled[f"packed 1x{stages}"]["shared_bytes"] == needed
    assert_numbers("l2_paged_decode", "warps-stages", [(needed, str(needed))])


def test_l2_stages_that_are_the_same(compiled):
    """l2_paged_decode#interview: 4 stages compile to what 3 do, the 5th brings a second buffer."""
    assert compiled["packed 1x3"] == compiled["packed 1x4"] != compiled["packed 1x5"]
    assert compiled["packed 1x5"] == compiled["packed 1x6"] != compiled["packed 1x7"]


def test_l2_what_the_loop_waits_for(compiled):
    """l2_paged_decode#warps-stages: wait_group 0 with 3 stages, 6 with 7, three groups a page."""
    assert compiled["packed 1x3"]["loop_waits"][0] == 0
    assert compiled["packed 1x7"]["loop_waits"] == [6]
    assert compiled["packed 1x7"]["loop"]["cp.async.commit_group"] == 3
    assert 6 // 3 == 2  # pages under way during the arithmetic


def test_l2_barriers_a_page(compiled):
    """l2_paged_decode#warps-stages: 9 with 4 warps, 2 with one."""
    assert count(compiled["packed 4x3"]["loop"], "bar.sync") == 9
    assert count(compiled["packed 1x7"]["loop"], "bar.sync") == 2


def test_l2_registers(compiled):
    """l2_paged_decode#warps-stages: 168 and 64 a thread; four programs of the former fit an SM easily."""
    assert packed_launch(TARGETS["sm_90"], *LESSON_CASE) == (1, 7)
    assert TABLE[2, 16][16].split()[3] == "1x7"
    one_warp = compiled["packed 1x7"]["num_regs"]
    assert (one_warp, compiled["packed 4x3"]["num_regs"]) == (168, 64)
    assert 168 * 32 * 4 == 21_504 < 65_536
    numbers = [(one_warp, "168"), (one_warp * 32 * 4, "21,504"), (2**16, "65,536")]
    assert_numbers("l2_paged_decode", "warps-stages", numbers)


def test_l2_the_two_transposes_are_one(compiled):
    """l2_paged_decode#transpose: the same registers, shared memory and count of every instruction."""
    assert compiled["packed 1x7"] == compiled["swapped 1x7"]
    assert count(compiled["packed 1x7"]["loop"], "ldmatrix") > 0


def test_l2_tensor_core_instruction(compiled):
    """l2_paged_decode#pack: m16n8k16, and no other mma."""
    for name in ("packed 1x7", "packed 4x3"):
        instructions = compiled[name]["instructions"]
        assert count(instructions, "mma.sync.aligned.m16n8k16") == count(instructions, "mma") > 0


def test_l2_naive_has_no_pipeline(compiled):
    """l2_paged_decode#naive: no cp.async, whatever num_stages says."""
    assert count(compiled["naive 1x2"]["instructions"], "cp.async") == 0
    assert compiled["naive 1x2"] == compiled["naive 1x7"]


def test_l2_fp32_dot_is_tf32_unless_told(compiled):
    """l2_paged_decode#pitfall-tf32: m16n8k8 in tf32 by default; with "ieee" no mma, fma in fp32."""
    default = compiled["fp32 dot, ieee False"]["instructions"]
    assert count(default, "mma.sync.aligned.m16n8k8.row.col.f32.tf32") == count(default, "mma") > 0
    ieee = compiled["fp32 dot, ieee True"]["instructions"]
    assert count(ieee, "mma") == 0 and count(ieee, "fma.rn.f32") > 0


def test_softmax_exp_is_a_product_and_ex2(compiled):
    """online_softmax#interview: exp(x) is x times log2(e), then ex2.approx."""
    packed = compiled["packed 1x7"]
    assert count(packed["instructions"], "ex2.approx") == packed["times_log2_e"] > 0


def test_l3_combine_tile(compiled):
    """l3_split_kv_decode#one-warp: 64 x 32 fits the registers, 64 x 128 is 256 a lane and spills."""
    assert 64 * 32 // 32 == 64 and 64 * 128 // 32 == 256 > 255
    assert compiled["combine 64x32"]["spilled_bytes"] == 0
    assert compiled["combine 64x128"]["spilled_bytes"] > 0
