"""The state (m, l, acc) of a row, block by block, and the small kernel that walks a row."""

import math

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

from kernels import online_softmax
from kernels.online_softmax import online_softmax_step
from scripts.tracer import trace
from tests.helpers.marks import interpreter_only
from tests.helpers.mode import DEVICE, DTYPES, dtype_name
from tests.helpers.oracle import assert_lse_close, assert_twice_as_good, orders
from tests.helpers.poison import poisoned

SCORES, VALUES = [1.0, 2.0, 3.0, 0.0], [10.0, 20.0, 30.0, 40.0]


@triton.jit
def _states_kernel(
    m_ptr, l_ptr, acc_ptr, scores_ptr, values_ptr, BLOCK_N: tl.constexpr, NUM_BLOCKS: tl.constexpr
):
    """Stores the state of the row after each block; one column of values."""
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([1], tl.float32)
    for block in tl.static_range(NUM_BLOCKS):
        offs_n = block * BLOCK_N + tl.arange(0, BLOCK_N)
        scores, values = tl.load(scores_ptr + offs_n), tl.load(values_ptr + offs_n)
        m_i, l_i, acc = online_softmax_step(m_i, l_i, acc, scores, values[:, None])
        tl.store(m_ptr + block, m_i)
        tl.store(l_ptr + block, l_i)
        tl.store(acc_ptr + block + tl.arange(0, 1), acc)


def _tensor(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def _states(scores, values, block_size):
    """(m, l, acc) after each block."""
    num_blocks = len(scores) // block_size
    states = [torch.full((num_blocks,), math.nan, device=DEVICE) for _ in range(3)]
    _states_kernel[(1,)](*states, _tensor(scores), _tensor(values), BLOCK_N=block_size, NUM_BLOCKS=num_blocks)
    return list(zip(*(state.tolist() for state in states), strict=True))


def _assert_right(scores, values, block_size=16):
    with poisoned():
        o, lse = online_softmax(scores, values, block_size=block_size, return_lse=True)
    exact = torch.softmax(scores.double(), 0) @ values.double()
    plain = [
        (torch.softmax(scores[i].float(), 0)[:, None] * values[i].float()).sum(0).to(values.dtype)[None]
        for i in orders(len(scores))
    ]
    assert_twice_as_good(o[None], plain, exact[None])
    assert_lse_close(
        lse.view(1, 1), torch.logsumexp(scores.double(), 0).view(1, 1), scores.double().abs().amax()[None]
    )
    return o, lse


def test_the_state_after_each_half_of_the_row():
    e = math.e
    (m1, l1, acc1), (m2, l2, acc2) = _states(SCORES, VALUES, 2)
    assert (m1, m2) == (2.0, 3.0)
    assert l1 == pytest.approx(1 / e + 1, rel=1e-6) == pytest.approx(1.368, abs=5e-4)
    assert acc1 == pytest.approx(10 / e + 20, rel=1e-6) == pytest.approx(23.68, abs=5e-3)
    # The second half raises the maximum by 1: what was there is rescaled by exp(-1) = 0.368.
    assert l2 == pytest.approx(l1 / e + 1 + e**-3, rel=1e-6) == pytest.approx(1.553, abs=5e-4)
    assert acc2 == pytest.approx(acc1 / e + 30 + 40 * e**-3, rel=1e-6) == pytest.approx(40.70, abs=5e-3)
    assert acc2 / l2 == pytest.approx(26.21, abs=5e-3)
    assert m2 + math.log(l2) == pytest.approx(3.440, abs=5e-4)


def test_each_half_alone():
    """What two splits would hold: (m, l), o and lse of [1, 2] and of [3, 0]."""
    first, second = slice(0, 2), slice(2, 4)
    for half, m_i, l_i, o, lse in ((first, 2, 1.368, 17.31, 2.313), (second, 3, 1.050, 30.47, 3.049)):
        ((got_m, got_l, acc),) = _states(SCORES[half], VALUES[half], 2)
        assert got_m == m_i and got_l == pytest.approx(l_i, abs=5e-4)
        assert acc / got_l == pytest.approx(o, abs=5e-3)
        got_o, got_lse = _assert_right(_tensor(SCORES[half]), _tensor(VALUES[half])[:, None])
        assert got_o.item() == pytest.approx(o, abs=5e-3) and got_lse.item() == pytest.approx(lse, abs=5e-4)


@pytest.mark.parametrize("block_size", [1, 2, 4, 16])
def test_any_block_size_gives_the_row_of_the_page(block_size):
    o, lse = _assert_right(_tensor(SCORES), _tensor(VALUES)[:, None], block_size)
    assert o.item() == pytest.approx(26.21, abs=5e-3) and lse.item() == pytest.approx(3.440, abs=5e-4)


def test_a_block_of_nothing_leaves_the_state():
    inf = math.inf
    states = _states([-inf, -inf, 1.0, 2.0, -inf, -inf], [5.0] * 2 + [10.0, 20.0] + [7.0] * 2, 2)
    assert states[0] == (-inf, 0.0, 0.0)
    assert states[1] == states[2] and states[2][0] == 2.0


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
@pytest.mark.parametrize("num_scores", [1, 15, 16, 17, 100])
def test_lengths(num_scores, dtype):
    rng = torch.Generator().manual_seed(0)
    scores = (3 * torch.randn(num_scores, generator=rng)).to(DEVICE, dtype)
    _assert_right(scores, torch.randn(num_scores, 7, generator=rng).to(DEVICE, dtype))


@pytest.mark.parametrize("num_scores", [0, 5])
def test_nothing_to_attend_to(num_scores):
    """No scores, or none above -inf: o = 0 and lse = -inf, not NaN."""
    o, lse = online_softmax(
        torch.full((num_scores,), -math.inf, device=DEVICE),
        torch.ones(num_scores, 3, device=DEVICE),
        return_lse=True,
    )
    assert o.tolist() == [0.0] * 3 and lse.item() == -math.inf


@pytest.mark.parametrize("level", [1e4, -1e4])
def test_scores_of_ten_thousand(level):
    o, lse = _assert_right(_tensor(SCORES) + level, _tensor(VALUES)[:, None], 2)
    assert o.item() == pytest.approx(26.21, abs=5e-3) and lse.item() == pytest.approx(level + 3.440, abs=2e-3)


def test_rows_past_the_end_and_strides():
    """The row lies inside a longer poisoned one, and the values are columns of a wider tensor."""
    scores, values = torch.full((40,), math.nan, device=DEVICE), torch.full((40, 9), math.nan, device=DEVICE)
    scores[:21], values[:21, 1:6] = torch.arange(21.0) / 7, torch.arange(105.0).view(21, 5)
    _assert_right(scores[:21], values[:21, 1:6])


@interpreter_only
def test_memory_accesses():
    scores, values = torch.zeros(40), torch.zeros(40, 9)
    with poisoned(), trace() as t:
        online_softmax(scores[:21], values[:21, 1:6])
    t.assert_in_bounds()
    assert (t.read_counts("scores_ptr") == 1).all() and (t.read_counts("values_ptr") == 1).all()
    t.assert_written_once("o_ptr")
    t.assert_written_once("lse_ptr")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scores": torch.zeros(2, 2)}, ValueError, r"scores is float32 \[2, 2\].*wanted \[N\]"),
        ({"values": torch.zeros(3, 1)}, ValueError, r"values is float32 \[3, 1\].*wanted 4 rows"),
        ({"values": torch.zeros(4, 0)}, ValueError, "values is .*wanted at least one column"),
        ({"values": torch.zeros(4, 1, dtype=torch.float16)}, TypeError, "values is float16.*wanted float32"),
        ({"scores": [1.0]}, TypeError, r"scores is \[1.0\]; wanted a tensor"),
        ({"block_size": 3}, ValueError, "block_size is 3; wanted a power of two"),
        ({"block_size": 0}, ValueError, "block_size is 0; wanted a power of two"),
    ],
)
def test_refusals(change, error, message):
    arguments = {"scores": torch.zeros(4), "values": torch.zeros(4, 1), "block_size": 2} | change
    arguments = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
    with pytest.raises(error, match=message):
        online_softmax(arguments.pop("scores"), arguments.pop("values"), **arguments)


@given(
    num_scores=st.integers(1, 60), head_dim=st.sampled_from([1, 5, 16]), block_size=st.sampled_from([4, 16]),
    scale=st.sampled_from([0.1, 3.0, 100.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_row(num_scores, head_dim, block_size, scale, seed):
    rng = torch.Generator().manual_seed(seed)
    scores = (scale * torch.randn(num_scores, generator=rng)).to(DEVICE)
    _assert_right(scores, torch.randn(num_scores, head_dim, generator=rng).to(DEVICE), block_size)
