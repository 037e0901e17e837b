"""The table of parity is what is found again, and says what it should."""

import json

import pytest

from scripts import runner_parity
from scripts.runner import features
from tests.helpers.mode import ON_GPU
from tests.runner.helpers import ROOT

TABLE = json.loads(runner_parity.TABLE.read_text(encoding="utf-8"))


def tensor(*values: float, dtype: str = "float32") -> dict:
    import numpy as np

    return {
        "name": "0",
        "dtype": dtype,
        "shape": [len(values)],
        "hex": np.array(values, dtype).tobytes().hex(),
    }


def result(*tensors: dict, stdout: str = "") -> dict:
    return {"tensors": list(tensors), "stdout": stdout}


needs_interpreter = pytest.mark.skipif(
    ON_GPU, reason="the kernels of this process run on the GPU, not in the interpreter"
)


@needs_interpreter
@pytest.mark.skipif(not runner_parity.NUMPY.is_dir(), reason="needs node_modules: npm ci --omit=dev")
def test_the_table_is_found_again_in_webassembly():
    table = runner_parity.rows()
    there = runner_parity._with_old(table)
    assert [runner_parity._as_on_another_cpu(row, old) for row, old in there] == TABLE, (
        "run: python scripts/runner_parity.py"
    )


@needs_interpreter
def test_with_the_same_numpy_features_are_bit_identical_and_all_else_is_so_but_for_sums():
    table = runner_parity.rows(runner_parity.run_on_cpython)
    assert {row["status"] for row in table if row["group"] == "feature"} == {"identical", "unsupported"}
    assert {row["status"] for row in table if row["group"] != "feature"} <= {"identical", "close"}
    close = [row for row in table if row["status"] == "close"]
    assert all(row["max_diff"] <= 1e-12 for row in close), close
    kernels = ("online_softmax", "l2_paged_decode", "l3_split_kv_decode", "l1_write_kv")
    assert not [row for row in close if row["file"] in kernels]


def test_nothing_differs_and_what_is_not_supported_is_named():
    status = {(row["group"], row["file"], row["feature"]): row for row in TABLE}
    assert {row["status"] for row in TABLE} == {"identical", "close", "unsupported"}
    assert {row["file"] for row in TABLE if row["status"] == "unsupported"} == {"unsupported"}
    assert all(row["status"] == "unsupported" for row in TABLE if row["file"] == "unsupported")
    assert all(row["message"] for row in TABLE if row["status"] != "identical")
    assert all(row["texts"]["zh"] != row["texts"]["en"] for row in TABLE if row["status"] == "unsupported")
    assert len(status) == len(TABLE) > 150


def test_every_lesson_and_every_case_has_a_row():
    files = {(row["group"], row["file"]) for row in TABLE}
    assert {("case", lesson) for lesson in (*features.PARTS, *features.CASES)} <= files
    assert {("program", path.stem) for path in (ROOT / "snippets/runs").glob("[a-z]*.py")} <= files
    drills = {path.stem for path in (ROOT / "snippets/drills").glob("*.toml")}
    assert {lesson for group, lesson in files if group == "case"} == drills


@pytest.mark.parametrize(
    "real, page, status",
    [
        (result(tensor(1, 2)), result(tensor(1, 2)), "identical"),
        (result(tensor(1, 2)), result(tensor(1, 2.0000002)), "close"),
        (result(tensor(1, 2)), result(tensor(1, 2.00001)), "differs"),
        (result(tensor(1, 2)), result(tensor(1, 2), stdout="x"), "differs"),
        (result(tensor(1, 2)), result(tensor(1, 2, dtype="float64")), "differs"),
        (result(tensor(float("nan"))), result(tensor(float("nan"))), "identical"),
        (result(tensor(float("nan"))), result(tensor(0.0)), "differs"),
        (result(tensor(float("inf"))), result(tensor(1.0)), "differs"),
        (result(tensor(0.0)), result(tensor(-0.0)), "close"),
        (result(tensor(1.0)), result({"name": "0", "unwritten": True}), "identical"),
        (result({"name": "0", "plain": "1"}), result({"name": "0", "plain": "2"}), "differs"),
        (result(tensor(1.0)), {"error": "Unsupported: tl.x", "texts": {}}, "unsupported"),
        (result(tensor(1.0)), {"error": "ValueError: x"}, "differs"),
        ({"error": "ValueError: x"}, {"error": "ValueError: x"}, "identical"),
        ({"error": "ValueError: x"}, {"error": "ValueError: y"}, "differs"),
    ],
)
def test_a_row_says_how_far_two_results_are_apart(real, page, status):
    assert runner_parity.compare(real, page)["status"] == status


def test_another_cpu_may_have_other_last_bits_and_nothing_else():
    identical = {"group": "case", "file": "f", "feature": "x", "status": "identical"}
    close = identical | {"status": "close"}
    assert runner_parity._as_on_another_cpu(close, identical) == identical
    assert (
        runner_parity._as_on_another_cpu(identical | {"status": "differs"}, identical)["status"] == "differs"
    )
    assert runner_parity._as_on_another_cpu(close, None) == close
