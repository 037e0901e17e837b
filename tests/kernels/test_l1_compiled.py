"""write_kv compiled for GPUs that are not here: no spills, no shared memory, wide accesses, loads first."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.lesson import assert_numbers

TARGETS = ("sm_80", "sm_90", "sm_120", "gfx942")


@pytest.fixture(scope="module")
def compiled():
    """{"<target> <case>": figures}, from a child process: the suite itself may run in the interpreter."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.helpers.l1_compiled"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


def test_every_target_takes_every_case(compiled):
    assert len(compiled) == 28
    for name, found in compiled.items():
        assert found["spilled_bytes"] == 0 and found["shared_bytes"] == 0, name


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_sixteen_bytes_at_a_time(compiled, target):
    """K and V of the lesson's case: one load and one store of 16 bytes a thread each, and the slot."""
    found = compiled[f"{target} lesson"]["accesses"]
    assert found == {"ld.global.b64": 1, "ld.global.v4.b32": 2, "st.global.v4.b32": 2}
    assert compiled[f"{target} latent"]["accesses"]["st.global.v4.b32"] == 1


@pytest.mark.parametrize("target", TARGETS)
def test_all_loads_come_before_the_first_store(compiled, target):
    order = compiled[f"{target} lesson"]["order"]
    assert order == sorted(order) and set(order) == {"load", "store"}


def test_a_stride_that_is_no_multiple_of_16_costs_width(compiled):
    """D = 72: the compiler knows nothing of such a stride, so elements go one by one."""
    found = compiled["sm_90 odd"]["accesses"]
    assert not any(".v4" in op or ".v2" in op for op in found)


def test_what_the_page_says(compiled):
    registers = compiled["sm_90 lesson"]["num_regs"]
    assert_numbers("l1_paged_cache", "compiled", [(registers, "30"), (1024 / 4 / 32, "8"), (8 * 2, "16")])
