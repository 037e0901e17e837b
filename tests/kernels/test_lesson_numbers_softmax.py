"""The numbers worked by hand on the online softmax page, section by section."""

import itertools
import math
import struct

import pytest
import torch

from kernels import merge_states, online_softmax
from tests.helpers.lesson import assert_numbers, nbytes
from tests.helpers.mode import DEVICE

LESSON = "online_softmax"
VALUE_OF = {1: 10.0, 2: 20.0, 3: 30.0, 0: 40.0}  # each score of the row and its value
E = math.exp


def run(scores, values, block_size=2) -> tuple[float, float]:
    """(o, lse) of one row with one column of values."""
    scores, values = (torch.tensor(t, dtype=torch.float32, device=DEVICE) for t in (scores, values))
    o, lse = online_softmax(scores, values[:, None], block_size=block_size, return_lse=True)
    return o.item(), lse.item()


def state(*scores: int) -> tuple[float, float, float]:
    """(m, l, acc) after these scores of the row: l = exp(lse - m), acc = o * l."""
    o, lse = run(scores, [VALUE_OF[s] for s in scores])
    l_i = E(lse - max(scores))
    return max(scores), l_i, o * l_i


def numbers(anchor: str, *pairs) -> None:
    assert_numbers(LESSON, anchor, list(pairs))


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, "88.72"), (torch.float16, "11.09")])
def test_where_exp_overflows(dtype, bound):
    """#why-the-max"""
    numbers("why-the-max", (math.log(torch.finfo(dtype).max), bound))
    below, above = torch.tensor([float(bound), float(bound) + 0.01], dtype=torch.float64).exp().to(dtype)
    assert below.isfinite() and above.isinf()


def test_two_blocks_of_two():
    """#by-hand: the table, and the two lines of arithmetic below it."""
    m1, l1, acc1 = state(1, 2)
    m2, l2, acc2 = state(1, 2, 3, 0)
    assert (m1, m2) == (2, 3)
    numbers("by-hand", (E(1 - 2), "0.368"), (l1, "1.368"), (acc1, "23.679"))
    numbers("by-hand", (E(m1 - m2), "0.368"), (E(0 - 3), "0.050"), (l2, "1.553"), (acc2, "40.702"))
    numbers("by-hand", (E(-1) * l1, "0.503"), (1 + E(-3), "1.050"))
    numbers("by-hand", (E(-1) * acc1, "8.711"), (30 + 40 * E(-3), "31.991"))
    numbers("by-hand", (acc2 / l2, "26.21"), (m2 + math.log(l2), "3.440"))


@pytest.mark.parametrize("block_size", [1, 2, 4])
def test_any_cut_gives_the_last_row(block_size):
    """#by-hand: the four scores as one block."""
    o, lse = run([1, 2, 3, 0], [10, 20, 30, 40], block_size)
    numbers("by-hand", (o, "26.21"), (lse, "3.440"))
    numbers("by-hand", (E(1 - 3), "0.135"), (E(2 - 3), "0.368"), (E(0 - 3), "0.050"))
    numbers("by-hand", (E(lse - 3), "1.553"), (o * E(lse - 3), "40.702"))


def test_a_first_block_of_nothing():
    """#masked-and-empty: scores [-inf, -inf, 1, 2] with the same values."""
    o, lse = run([-math.inf, -math.inf, 1, 2], [10, 20, 30, 40])
    l_i = E(lse - 2)
    numbers("masked-and-empty", (l_i, "1.368"), (o * l_i, "51.036"), (o, "37.31"))
    assert (o, lse) == run([1, 2], [30, 40])


def test_bytes_of_a_state():
    """#one-state-a-row: D = 128, ctx = 32768, fp32."""
    state_bytes, row_bytes = nbytes(2 + 128, element_bytes=4), nbytes(32768, element_bytes=4)
    numbers("one-state-a-row", (state_bytes, "520"), (row_bytes, "131072"))


def test_halves_and_their_merge():
    """#lse"""
    halves = [run([1, 2], [10, 20]), run([3, 0], [30, 40])]
    numbers("lse", (halves[0][1], "2.313"), (halves[1][1], "3.049"))
    o, lse = torch.tensor(halves, device=DEVICE).T.view(2, 2, 1, 1)
    merged, merged_lse = merge_states(o[..., None], lse)
    numbers("lse", (merged_lse.item(), "3.440"), (merged.item(), "26.21"))


def test_scores_of_ten_thousand():
    """#large-scores: the result, and what either dtype can tell apart there."""
    scores = [10001.0, 10002.0, 10003.0, 10000.0]
    o, lse = run(scores, [10, 20, 30, 40])
    numbers("large-scores", (o, "26.21"))
    assert lse == pytest.approx(10003.440, abs=1e-3)
    next_fp32 = torch.nextafter(torch.tensor(1e4), torch.tensor(math.inf)).item()
    numbers("large-scores", (next_fp32 - 1e4, "0.001"))
    next_fp16 = torch.nextafter(torch.tensor(1e4).half(), torch.tensor(math.inf).half()).item()
    assert next_fp16 - 1e4 == 8
    assert len(torch.tensor(scores).half().unique()) == 1


def test_acc_not_rescaled():
    """#pitfalls: l times alpha, acc as it was."""
    _, l_i, _ = state(1, 2, 3, 0)
    acc = state(1, 2)[2] + 30 + 40 * E(-3)
    numbers("pitfalls", (acc, "55.670"), (acc / l_i, "35.85"))


def test_masked_scores_of_zero():
    """#pitfalls: four scores in a block of eight."""
    l_i = state(1, 2, 3, 0)[1] + 4 * E(0 - 3)
    numbers("pitfalls", (E(0 - 3), "0.050"), (l_i, "1.752"), (state(1, 2, 3, 0)[2] / l_i, "23.23"))
    padded, lse = run([1, 2, 3, 0] + [0] * 4, [10, 20, 30, 40] + [0] * 4, block_size=8)
    numbers("pitfalls", (E(lse - 3), "1.752"), (padded, "23.23"))


def test_one_score_a_block():
    """#check-yourself"""
    maxima = [-math.inf] + [state(*[1, 2, 3, 0][: n + 1])[0] for n in range(4)]
    alphas = [E(old - new) for old, new in itertools.pairwise(maxima)]
    assert [f"{alpha:.3f}" for alpha in alphas] == ["0.000", "0.368", "0.368", "1.000"]
    _, l_i, acc = state(1, 2, 3, 0)
    numbers("check-yourself", (l_i, "1.553"), (acc, "40.702"))


def test_the_halves_the_other_way_round():
    """#check-yourself"""
    assert state(3, 0)[0] == state(3, 0, 1, 2)[0] == 3
    numbers("check-yourself", (state(3, 0)[1], "1.050"), (state(3, 0)[2], "31.991"))
    numbers("check-yourself", (E(1 - 3), "0.135"), (E(2 - 3), "0.368"))
    numbers("check-yourself", (state(3, 0, 1, 2)[1], "1.553"), (state(3, 0, 1, 2)[2], "40.702"))


def test_a_thousand_equal_scores():
    """#check-yourself"""
    o, lse = run([5.0] * 1000, [float(n) for n in range(1000)], block_size=256)
    assert o == pytest.approx(499.5, rel=1e-6)
    numbers("check-yourself", (lse - 5, "6.908"))


def test_interview():
    """#interview: new maxima among 2048 blocks, the rounding of fp32, log2(e) as PTX writes it."""
    harmonic = sum(1 / n for n in range(1, 2049))
    numbers("interview", (harmonic, "8.2"))
    assert torch.finfo(torch.float32).eps / 2 == pytest.approx(6e-8, rel=0.01)
    assert struct.pack(">f", math.log2(math.e)).hex().upper() == "3FB8AA3B"
