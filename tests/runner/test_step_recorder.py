"""The recorder of steps on small kernels: loops, calls, limits, errors, and every kind of value."""

import json
import math
import sys

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter

from scripts.runner.step_values import encode
from scripts.runner.steps import Recorder
from tests.helpers.marks import interpreter_only

pytestmark = [interpreter_only, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@triton.jit
def _twice(x):
    x += x
    return x


@triton.jit
def _nested_kernel(out_ptr, rows, COLUMNS: tl.constexpr):
    total = 0
    for row in range(rows):
        # A comment above the body is not of the header.
        if row == 1:
            total += 100
        else:
            total += 1
        for column in tl.static_range(COLUMNS):
            total = _twice(
                total
                + column
            )  # fmt: skip
    left = rows
    while left > 0:
        left -= 2
    tl.store(out_ptr + tl.program_id(0), total)


@triton.jit
def _many_kernel(out_ptr, n, SIZE: tl.constexpr):
    x = tl.zeros([SIZE, SIZE], tl.float32)
    for i in range(n):
        x = x + i
    tl.store(out_ptr, tl.sum(tl.sum(x, 0), 0))


@triton.jit
def _failing_kernel(out_ptr, n):
    for i in range(n):
        tl.static_assert(i < 1)
        tl.store(out_ptr + i, i)


# ruff: noqa: F841
@triton.jit
def _kinds_kernel(out_ptr, half_ptr, table_ptr, SIZE: tl.constexpr, NAME: tl.constexpr):
    offs = tl.arange(0, SIZE)
    mask = offs < 3
    cube = tl.reshape(offs, [2, 2, SIZE // 4])
    wide = offs.to(tl.int64) * 4611686018427387904
    half = tl.load(half_ptr + offs)
    bad = tl.where(mask, half / tl.abs(half * 0), float("nan"))
    pointers = table_ptr + offs * 2
    table_ptr += 3
    pair = (offs, 1)
    nothing = None
    tl.store(out_ptr + offs, half.to(tl.float32))


def record(run, kernel, program=(0, 0, 0), **options) -> dict:
    with Recorder(kernel, program, **options) as recorder:
        run()
    return recorder.data()


def nested(rows: int, columns: int, programs: int = 2) -> torch.Tensor:
    out = torch.zeros(programs, dtype=torch.int32)
    _nested_kernel[(programs,)](out, rows, COLUMNS=columns)
    return out


def texts(data: dict, at: int | None) -> list[str]:
    return [data["places"][s["place"]]["text"].splitlines()[0] for s in data["steps"] if s["at"] == at]


def test_iterations_of_loops_in_loops():
    data = record(lambda: nested(2, 2), "_nested_kernel", (1, 0, 0))
    loops = [(loop["variable"], loop["count"], loop["parent"]) for loop in data["loops"]]
    assert loops == [("row", 2, None), ("column", 2, 0), ("column", 2, 3), ("", 1, None)]
    values = [i["value"] is not None and data["values"][i["value"]]["data"] for i in data["iterations"]]
    assert values == [0, 0, 1, 1, 0, 1, False]
    assert texts(data, 0)[:3] == ["for row in range(rows):", "if row == 1:", "total += 1"]
    assert texts(data, 3)[:3] == ["for row in range(rows):", "if row == 1:", "total += 100"]
    assert texts(data, 1) == [
        "for column in tl.static_range(COLUMNS):", "x += x", "return x", "total = _twice(",
    ]  # fmt: skip
    outer = data["iterations"][0]
    assert outer["first"] < data["iterations"][1]["first"] <= data["iterations"][2]["last"] <= outer["last"]


def test_a_loops_last_look_at_its_header_is_no_iteration():
    data = record(lambda: nested(0, 2), "_nested_kernel")
    assert data["iterations"] == [] and texts(data, None)[1] == "for row in range(rows):"
    assert [loop["count"] for loop in data["loops"]] == [0, 0]


def test_a_statement_of_many_lines_is_one_step_after_those_of_the_function_it_calls():
    data = record(lambda: nested(1, 1), "_nested_kernel")
    places = [data["places"][s["place"]] for s in data["steps"]]
    whole = next(p for p in places if p["text"].startswith("total = _twice("))
    assert whole["end"] - whole["line"] == 3 and places.count(whole) == 1
    before = places[places.index(whole) - 1]
    assert before["text"] == "return x"
    call = data["calls"][1]
    assert call["parent"] == 0 and call["line"] == whole["line"]
    assert data["values"][call["arguments"]["x"]]["data"] == 1


def test_the_run_is_the_same_with_and_without_a_recorder():
    plain, found = nested(3, 2), []
    data = record(lambda: found.append(nested(3, 2)), "_nested_kernel", (1, 0, 0))
    assert torch.equal(plain, found[0])
    total = [s["changed"]["total"] for s in data["steps"] if s["call"] == 0 and "total" in s["changed"]][-1]
    assert data["values"][total]["data"] == plain[1]


def test_what_was_hooked_is_as_before():
    kept = sys.gettrace(), interpreter.GridExecutor.__call__, interpreter.interpreter_builder.set_grid_idx
    record(lambda: nested(1, 1), "_nested_kernel")
    with pytest.raises(interpreter.InterpreterError):
        record(lambda: _failing_kernel[(1,)](torch.zeros(4, dtype=torch.int32), 2), "_failing_kernel")
    now = sys.gettrace(), interpreter.GridExecutor.__call__, interpreter.interpreter_builder.set_grid_idx
    assert now == kept


def test_another_trace_function_is_put_back():
    def mine(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        record(lambda: nested(1, 1), "_nested_kernel")
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)


def test_the_first_launch_that_has_the_program_or_the_one_asked_for():
    def launches():
        nested(1, 1, programs=1)
        nested(2, 1, programs=2)
        nested(3, 1, programs=2)

    data = record(launches, "_nested_kernel", (1, 0, 0))
    assert data["launch"] == 1 and data["grid"] == [2, 1, 1] and data["loops"][0]["count"] == 2
    assert data["launches"] == [{"launch": n, "grid": [p, 1, 1]} for n, p in enumerate((1, 2, 2))]
    data = record(launches, "_nested_kernel", (1, 0, 0), launch=2)
    assert data["launch"] == 2 and data["loops"][0]["count"] == 3


def test_a_program_or_a_kernel_that_is_not_there():
    data = record(lambda: nested(1, 1), "_nested_kernel", (5, 0, 0))
    assert data["launch"] is None and data["steps"] == []
    assert data["launches"] == [{"launch": 0, "grid": [2, 1, 1]}]
    data = record(lambda: nested(1, 1), "_missing_kernel")
    assert data["launch"] is None and data["launches"] == []


def test_a_long_run_is_cut_and_says_so():
    out = torch.zeros(1)
    data = record(lambda: _many_kernel[(1,)](out, 500, SIZE=4), "_many_kernel", max_steps=100)
    assert len(data["steps"]) == 100 and data["cut"] == {"limit": "steps", "most": 100}
    data = record(lambda: _many_kernel[(1,)](out, 500, SIZE=16), "_many_kernel", max_numbers=2560)
    assert data["cut"] == {"limit": "values", "most": 2560} and 15 < len(data["steps"]) < 25
    assert out.item() == 256 * 499 * 250  # the program itself went on to its end
    data = record(lambda: _many_kernel[(1,)](out, 5, SIZE=64), "_many_kernel")
    assert data["cut"] is None and max(v["shape"] for v in data["values"]) == [64, 64]
    assert all(v["shown"] == [16, 16] for v in data["values"] if v["shape"] == [64, 64])


def test_a_program_that_fails_keeps_its_steps_and_marks_the_line():
    recorder = Recorder("_failing_kernel", (0, 0, 0))
    with pytest.raises(interpreter.InterpreterError), recorder:
        _failing_kernel[(1,)](torch.zeros(4, dtype=torch.int32), 2)
    data = recorder.data()
    failed = data["steps"][data["failed"]]
    assert data["places"][failed["place"]]["text"].startswith("tl.static_assert")
    assert data["failed"] == len(data["steps"]) - 1 and data["iterations"][failed["at"]]["number"] == 1


def test_values_of_every_kind():
    half = torch.tensor([0.1, -2.0, 65504.0, 0.0], dtype=torch.float16)
    table = torch.zeros(16, dtype=torch.int32)
    data = record(lambda: _kinds_kernel[(1,)](torch.zeros(4), half, table, SIZE=4, NAME="x"), "_kinds_kernel")
    json.dumps(data, allow_nan=False)
    held = {}
    for step in data["steps"]:
        held |= {name: data["values"][index] for name, index in step["changed"].items()}
    assert held["offs"] == {
        "dtype": "int32", "shape": [4], "shown": [4], "data": [0, 1, 2, 3], "min": 0, "max": 3, "nan": 0,
    }  # fmt: skip
    assert held["mask"]["data"] == [True, True, True, False] and held["mask"]["true"] == 3
    assert held["cube"]["data"] == [[[0], [1]], [[2], [3]]]
    assert held["wide"]["data"] == [0, "4611686018427387904", str(-(2**63)), "-4611686018427387904"]
    assert held["half"]["dtype"] == "fp16" and held["half"]["data"] == half.tolist()
    assert held["bad"]["data"] == ["inf", "-inf", "inf", "nan"] and held["bad"]["nan"] == 1
    assert held["bad"]["min"] == "-inf" and held["bad"]["max"] == "inf"
    assert held["pointers"]["data"] == [0, 2, 4, 6] and held["pointers"]["base"] == "table_ptr"
    assert held["table_ptr"]["data"] == 3 and held["table_ptr"]["dtype"] == "pointer<int32>"
    assert [item["data"] for item in held["pair"]["items"]] == [[0, 1, 2, 3], 1]
    assert held["nothing"] == {"text": "None"}
    arguments = {name: data["values"][i] for name, i in data["calls"][0]["arguments"].items()}
    assert arguments["NAME"] == {"text": "x"} and arguments["SIZE"]["data"] == 4


@pytest.mark.parametrize(
    ("dtype", "bits", "like"),
    [
        (tl.float8e4nv, 8, torch.float8_e4m3fn),
        (tl.float8e5, 8, torch.float8_e5m2),
        (tl.bfloat16, 16, torch.bfloat16),
    ],
)
def test_floats_that_the_interpreter_keeps_as_bits(dtype, bits, like):
    """All of them, against torch."""
    raw = np.arange(2**bits, dtype=f"uint{bits}")
    wanted = torch.from_numpy(raw.view(f"int{bits}").copy()).view(like).double().tolist()
    for start in range(0, 2**bits, 64):
        part = interpreter.TensorHandle(raw[start : start + 64], dtype)
        value = encode(tl.tensor(part, tl.block_type(dtype, [64])), {})
        for found, expected in zip(value["data"], wanted[start : start + 64], strict=True):
            same = math.isnan(expected) if found == "nan" else float(found) == expected
            assert same, (dtype, found, expected)


def test_functions_and_modules_are_no_values():
    assert encode(print, {}) is None and encode(np, {}) is None
