"""The launch table: it is the sweep's best, and what it accepts really fits each target."""

import itertools
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from kernels.checks import check_lesson_inputs
from kernels.launch import (
    TABLE,
    TABLE_99KB,
    TARGETS,
    Launch,
    Target,
    choose_launch,
    packed_launch,
    shared_bytes,
)
from tests.helpers.cases import Shape, make_case
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import ON_GPU

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ROOT / "snippets/results/nvidia-h200/launch_sweep.json"
GRID = ROOT / "snippets/generated/compile_grid.json"
HEAD_DIMS = (16, 32, 64, 128, 256)


def sweep_by_case(with_spills: bool) -> dict:
    """{(element_bytes, block_g, head_dim, page_size): {Launch: p50 us}}."""
    cases = defaultdict(dict)
    for row in json.loads(SWEEP.read_text())["rows"]:
        # 512 programs: the regime that a split number is chosen for.
        if row["kernel"] == "packed" and row["batch_size"] == 64 and "error" not in row:
            if row["num_spills"] and not with_spills:
                continue
            size = {"fp16": 2, "fp32": 4}[row["dtype"]]
            case = size, max(16, row["group_size"]), row["head_dim"], row["page_size"]
            cases[case][Launch(row["num_warps"], row["num_stages"])] = row["latency_us"]["p50"]
    return cases


SWEPT = sweep_by_case(with_spills=True)
WITHOUT_SPILLS = sweep_by_case(with_spills=False)


@pytest.mark.parametrize("case", WITHOUT_SPILLS, ids=str)
def test_the_table_is_the_best_of_the_sweep(case):
    """Or near it: some of the fastest there spill on another target or in another Triton."""
    launch = packed_launch(TARGETS["sm_90"], *case)
    assert SWEPT[case][launch] <= 1.2 * min(WITHOUT_SPILLS[case].values())


def test_the_lesson_case_has_the_best_launch():
    case = 2, 16, 128, 16
    assert SWEPT[case][packed_launch(TARGETS["sm_90"], *case)] <= 1.02 * min(SWEPT[case].values())


def test_every_swept_case_is_taken_and_every_refused_one_spills():
    refused = {
        (size, rows, head_dim, page_size)
        for (size, rows), pages in TABLE.items()
        for page_size, entries in pages.items()
        for head_dim, entry in zip(HEAD_DIMS, entries.split(), strict=True)
        if entry == "-"
    }
    assert not refused & set(WITHOUT_SPILLS)


@pytest.mark.parametrize("name", TARGETS)
def test_what_every_target_takes(name):
    """fp16 and bf16 with head_dim <= 128, page_size <= 64 and groups to 16, on every target."""
    for head_dim, page_size in itertools.product(HEAD_DIMS[:4], (16, 32, 64)):
        launch = packed_launch(TARGETS[name], 2, 16, head_dim, page_size)
        needed = shared_bytes(TARGETS[name].backend, launch.num_stages, 2, 16, head_dim, page_size)
        assert needed <= TARGETS[name].shared_bytes


def test_a_refusal_names_the_sizes_and_the_reason():
    needs = r"head_dim 256, page_size 64 need \d+ bytes of shared memory.*101376"
    with pytest.raises(ValueError, match=needs):
        packed_launch(TARGETS["sm_120"], 4, 16, 256, 64)
    with pytest.raises(ValueError, match="head_dim 256, page_size 128: its registers spill"):
        packed_launch(TARGETS["sm_90"], 2, 64, 256, 128)


def test_less_shared_memory_takes_stages_away():
    assert packed_launch(TARGETS["sm_90"], 2, 32, 256, 32) == (4, 5)
    assert packed_launch(TARGETS["sm_120"], 2, 32, 256, 32) == (4, 5)
    assert packed_launch(Target("cuda", 64 * 1024), 2, 32, 256, 32) == (4, 4)


def test_amd_has_at_most_four_waves_and_one_buffer():
    assert packed_launch(TARGETS["gfx942"], 2, 64, 256, 64) == (4, 1)
    assert packed_launch(TARGETS["gfx942"], 2, 16, 128, 16) == (1, 2)
    with pytest.raises(ValueError, match="its registers spill"):
        packed_launch(TARGETS["gfx942"], 4, 32, 128, 128)


def test_every_entry_for_99_kb_replaces_another():
    """An entry that says what the main table says is one too many."""
    for (size, rows, page_size, head_dim), entry in TABLE_99KB.items():
        assert TABLE[size, rows][page_size].split()[HEAD_DIMS.index(head_dim)] != entry


@interpreter_only
def test_the_interpreter_takes_every_size():
    case = make_case([5], Shape(4, 256, 128), torch.float32)
    inputs = check_lesson_inputs(*case.args, "NHD")
    assert choose_launch(inputs, case.q) == (1, 1)


@gpu_only
def test_a_call_is_launched_by_the_table():
    case = make_case([5], Shape(4, 128, 16), torch.float16)
    inputs = check_lesson_inputs(*case.args, "NHD")
    if torch.cuda.get_device_capability() == (9, 0):
        assert choose_launch(inputs, case.q) == (1, 7)
    assert choose_launch(inputs, case.q, packed=False) == (1, 2)


@pytest.fixture(scope="module")
def compiled_rows() -> list[dict]:
    """The whole grid, compiled now, in a process without the interpreter; it must equal the record."""
    command = [sys.executable, "scripts/compile_grid.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return json.loads(GRID.read_text())["rows"]


@pytest.mark.skipif(ON_GPU, reason="compiles with the pinned Triton, on a CPU")
@pytest.mark.slow
class TestCompileGrid:
    """One run of the compiler, and what must hold of all that it made."""

    def test_shared_memory_fits(self, compiled_rows):
        for row in compiled_rows:
            if "refused" not in row:
                assert row["shared_bytes"] <= TARGETS[row["target"]].shared_bytes, row

    def test_nothing_spills_in_a_loop(self, compiled_rows):
        assert [row for row in compiled_rows if row.get("spills_in_loops")] == []

    def test_one_kernel_parks_a_predicate(self, compiled_rows):
        """Nothing else spills: ptxas keeps 8 bytes of the split kernel aside while its loop runs."""
        spilling = [row for row in compiled_rows if row.get("spilled_bytes")]
        known = {"kernel": "split", "target": "sm_90", "dtype": "fp16", "head_dim": 128, "page_size": 16}
        assert all(known.items() <= row.items() and row["spilled_bytes"] == 8 for row in spilling), spilling

    def test_fp32_is_never_tf32(self, compiled_rows):
        assert [row for row in compiled_rows if row.get("tf32_instructions")] == []

    def test_the_whole_grid_is_there(self, compiled_rows):
        packed = {
            (row["target"], row["dtype"], row["group_size"], row["head_dim"], row["page_size"])
            for row in compiled_rows
            if row["kernel"] == "packed"
        }
        dtypes, groups = ("fp16", "bf16", "fp32"), (4, 32, 64)
        assert packed == set(itertools.product(TARGETS, dtypes, groups, HEAD_DIMS, (16, 32, 64, 128)))

    def test_fast_decode_takes_all_sizes(self, compiled_rows):
        """But for e4m3 where nothing converts it, and for the largest fp32 tiles in little shared memory."""
        rows = [row for row in compiled_rows if row["kernel"].startswith("fast")]
        refused = {
            (row["target"], row["dtype"], row["group_size"], row["head_dim"])
            for row in rows
            if "refused" in row and row["dtype"] != "fp8"
        }
        assert refused == {
            ("sm_120", "fp32", 64, 256),
            ("gfx942", "fp32", 32, 256),
            ("gfx942", "fp32", 64, 256),
        }
        fp8 = {row["target"]: "refused" in row for row in rows if row["dtype"] == "fp8"}
        assert fp8 == {"sm_80": True, "sm_90": False, "sm_120": False, "gfx942": True}
        assert {row["head_dim"] for row in rows} >= {72, 80, 96, 192, *HEAD_DIMS}
        assert {row["page_size"] for row in rows} >= {1, 8, 24, 64, 544}

    def test_the_bound_on_shared_memory_is_near(self, compiled_rows):
        """A bound far above the real need would refuse what fits."""
        for row in compiled_rows:
            if row["kernel"] == "packed" and "refused" not in row:
                size = 4 if row["dtype"] == "fp32" else 2
                bound = shared_bytes(
                    TARGETS[row["target"]].backend, row["num_stages"], size,
                    max(16, row["group_size"]), row["head_dim"], row["page_size"],
                )  # fmt: skip
                assert bound <= 4 * row["shared_bytes"] + 4096, row
