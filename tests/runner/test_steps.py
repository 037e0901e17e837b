"""The recorder of steps: what the lessons' kernels hold after each line, number by number."""

import json

import numpy as np
import pytest

from scripts.generated import ROOT
from tests.helpers.marks import interpreter_only
from tests.runner.stepped import (
    GROUP_SIZE,
    HEAD_DIM,
    LENS,
    NUM_KV_HEADS,
    PAGE_SIZE,
    PROGRAMS,
    TABLE,
    all_in_page,
    here,
    numbers,
)

pytestmark = interpreter_only

CASES = list(PROGRAMS)
BLOCK_G = 16
BOTH = pytest.mark.parametrize("where", ["real interpreter", "stand-ins"])


def steps_of(where: str, kernel: str, program: tuple[int, int, int]) -> dict:
    return (here(kernel, program) if where == "real interpreter" else all_in_page()[kernel, program])[0]


def number(value: object) -> float:
    return float(value) if isinstance(value, str) else value


def array(value: dict) -> np.ndarray:
    """A recorded value's numbers, "nan" and the infinities included."""
    data = np.vectorize(number, otypes=[np.float64])(np.array(value["data"], dtype=object))
    return data.reshape(value["shown"])


def state(data: dict, step: int, call: int) -> dict[str, dict]:
    """The variables of one call after a step."""
    held = dict(data["calls"][call]["arguments"])
    for taken in data["steps"][: step + 1]:
        if taken["call"] == call:
            held |= taken["changed"]
    return {name: data["values"][index] for name, index in held.items()}


def call_of(data: dict, function: str) -> int:
    return next(
        i for i, c in enumerate(data["calls"]) if data["functions"][c["function"]]["name"] == function
    )


def pages_of(seq: int, begin: int = 0, end: int | None = None) -> list[int]:
    return TABLE[seq][: -(-LENS[seq] // PAGE_SIZE)][begin:end]


class Walk:
    """The loop over pages, by hand in numpy: float32 in the kernel's order of operations, or float64."""

    def __init__(self, seq: int, kv_head: int, dtype: type) -> None:
        caches = [numbers((10, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM), step) for step in (37, 53)]
        self.k, self.v = (cache[:, :, kv_head].astype(dtype) for cache in caches)
        heads = numbers((len(LENS), NUM_KV_HEADS * GROUP_SIZE, HEAD_DIM), 11)[seq].astype(dtype)
        self.q = np.zeros((BLOCK_G, HEAD_DIM), dtype)
        self.q[:GROUP_SIZE] = heads[kv_head * GROUP_SIZE : (kv_head + 1) * GROUP_SIZE]
        self.scale = dtype(1 / np.sqrt(HEAD_DIM))
        self.m, self.l = np.full(BLOCK_G, -np.inf, dtype), np.zeros(BLOCK_G, dtype)
        self.acc = np.zeros((BLOCK_G, HEAD_DIM), dtype)

    def step(self, page: int, tokens: int) -> None:
        mask = np.arange(PAGE_SIZE) < tokens
        k, v = (np.where(mask[:, None], cache[page], 0) for cache in (self.k, self.v))
        s = np.where(mask[None], np.matmul(self.q, k.T) * self.scale, -np.inf)
        m_new = np.maximum(self.m, s.max(1))
        alpha, self.p = np.exp(self.m - m_new), np.exp(s - m_new[:, None])
        self.l = self.l * alpha + self.p.sum(1)
        self.acc = np.matmul(self.p, v) + self.acc * alpha[:, None]
        self.m = m_new


@BOTH
@pytest.mark.parametrize(
    ("kernel", "program", "pages"),
    [
        ("_paged_decode_kernel", (0, 1, 0), (0, None)),
        ("_paged_decode_kernel", (1, 0, 0), (0, None)),
        ("_split_kernel", (0, 1, 1), (2, None)),
    ],
)
def test_m_l_acc_and_p_of_every_iteration_are_exact(where, kernel, program, pages):
    """Bit for bit those of the same float32 operations, and close to float64's: in L2, and in L3's split."""
    data = steps_of(where, kernel, program)
    call, (begin, end) = call_of(data, "attend_pages"), pages
    wanted = pages_of(program[0], begin, end)
    assert [i["number"] for i in data["iterations"]] == list(range(len(wanted)))
    single, double = (Walk(program[0], program[1], dtype) for dtype in (np.float32, np.float64))
    for n, (iteration, page) in enumerate(zip(data["iterations"], wanted, strict=True)):
        tokens = LENS[program[0]] - (begin + n) * PAGE_SIZE
        single.step(page, tokens)
        double.step(page, tokens)
        found = state(data, iteration["last"], call)
        assert found["page"]["data"] == n and found["page_id"]["data"] == page
        for name, own in (("m_i", "m"), ("l_i", "l"), ("acc", "acc"), ("p", "p")):
            shown, exact = array(found[name]), getattr(single, own)
            exact = exact[tuple(slice(size) for size in found[name]["shown"])]
            assert exact.dtype == np.float32 and found[name]["dtype"] == "fp32"
            assert np.array_equal(shown, exact.astype(np.float64)), f"{name} in iteration {n}"
            np.testing.assert_allclose(shown, getattr(double, own)[:, : shown.shape[-1]] if shown.ndim == 2
                                       else getattr(double, own), rtol=2e-5, atol=2e-6)  # fmt: skip
            whole = getattr(single, own)
            assert number(found[name]["min"]) == whole.min() and number(found[name]["max"]) == whole.max()
            assert found[name]["shape"] == list(whole.shape)


@BOTH
def test_the_combine_of_l3_is_exact(where):
    """The merge of two splits, through the step that the two lessons share: o and lse are what was stored."""
    kernel, program = "_combine_kernel", (0, 5, 0)
    data = steps_of(where, kernel, program)
    _, o, lse = here(kernel, program) if where == "real interpreter" else all_in_page()[kernel, program]
    inner = call_of(data, "online_softmax_step")
    parent = data["calls"][inner]["parent"]
    assert data["functions"][data["calls"][parent]["function"]]["name"] == kernel
    last = data["iterations"][-1]["last"]
    step, kernels = state(data, last, inner), state(data, last, parent)
    scores, values = array(step["scores"]).astype(np.float32), array(step["values"]).astype(np.float32)
    m = scores.max()
    p = np.exp(scores - m)
    assert np.array_equal(array(step["p"]), p) and step["m_new"]["data"] == m
    assert kernels["l_i"]["data"] == np.float32(p.sum())
    acc = (p[:, None] * values).sum(0)
    assert len(acc) == 16 and np.array_equal(array(kernels["acc"])[:16], acc)  # of 32 columns values shows 16
    final = state(data, len(data["steps"]) - 1, parent)
    assert final["lse"]["data"] == lse[0][5]
    divided = array(kernels["acc"]).astype(np.float32) / np.float32(kernels["l_i"]["data"])
    assert np.array_equal(divided, np.float32(o[0][5][: len(divided)]))


@pytest.mark.parametrize(("kernel", "program"), CASES)
def test_the_page_records_what_the_real_interpreter_records(kernel, program):
    """Every step, every number, every name; and the result of the run."""
    page, real = all_in_page()[kernel, program], here(kernel, program)
    assert page == real


@pytest.mark.parametrize(("kernel", "program"), CASES)
def test_a_record_is_whole(kernel, program):
    """Indices lead somewhere, iterations hold their steps, and the JSON has no NaN of its own."""
    data = here(kernel, program)[0]
    json.loads(json.dumps(data, allow_nan=False))
    assert data["launch"] is not None and data["cut"] is None and data["failed"] is None
    assert data["program"] == list(program) and data["kernel"] == kernel
    for i, step in enumerate(data["steps"]):
        assert step["place"] < len(data["places"]) and step["call"] < len(data["calls"])
        assert all(0 <= index < len(data["values"]) for index in step["changed"].values())
        place, call = data["places"][step["place"]], data["calls"][step["call"]]
        assert place["function"] == call["function"] and place["line"] <= place["end"]
        if step["at"] is not None:
            iteration = data["iterations"][step["at"]]
            assert iteration["first"] <= i <= iteration["last"]
    for loop, counted in enumerate(data["loops"]):
        own = [i for i in data["iterations"] if i["loop"] == loop]
        assert [i["number"] for i in own] == list(range(counted["count"]))


def test_an_empty_sequence_never_enters_the_loop():
    data = here("_paged_decode_kernel", (2, 1, 0))[0]
    assert data["iterations"] == [] and [loop["count"] for loop in data["loops"]] == [0]
    assert data["steps"]


def test_steps_name_the_lines_of_the_source():
    data = here("_paged_decode_kernel", (0, 1, 0))[0]
    assert data["files"] == [{"name": "kernels/l2_paged_decode.py", "own": False}]
    source = (ROOT / "kernels/l2_paged_decode.py").read_text(encoding="utf-8").splitlines()
    for place in data["places"]:
        first = place["text"].splitlines()[0]
        assert source[place["line"] - 1].strip().startswith(first)
    assert any(
        place["text"].startswith("k_t = _load_k_transposed(\n    k_ptr + page_id") for place in data["places"]
    )
