"""The L3 page merges [1, 2] and [3, 0] by hand, rightly and in three wrong ways: its numbers, by section."""

import math

import pytest
import torch

from kernels import merge_states
from tests.helpers.lesson import assert_numbers
from tests.helpers.mode import DEVICE

E = math.exp
# l, acc, then o and lse of each half.
L_0, L_1 = 1 + E(-1), 1 + E(-3)
ACC_0, ACC_1 = 10 * E(-1) + 20, 30 + 40 * E(-3)
O_0, O_1 = ACC_0 / L_0, ACC_1 / L_1
LSE_0, LSE_1 = 2 + math.log(L_0), 3 + math.log(L_1)
WEIGHT = E(LSE_0 - LSE_1)


def merged(o: list[float], lse: list[float]) -> tuple[float, float]:
    """merge_states of one number a split."""
    o, lse = (torch.tensor(t, dtype=torch.float32, device=DEVICE).view(-1, 1, 1) for t in (o, lse))
    o, lse = merge_states(o[..., None], lse)
    return o.item(), lse.item()


def numbers(anchor: str, *pairs) -> None:
    assert_numbers("l3_split_kv_decode", anchor, list(pairs))


def test_weights():
    """#o-is-not-enough, #lse-is-the-weight"""
    numbers("o-is-not-enough", (E(10), "22026"), (1 / (1 + E(10)), "0.00005"), (1 / (1 + E(-10)), "0.99995"))
    numbers("lse-is-the-weight", ((4.9 * 3 + 4.1 * 8000) / 8003, "4.1003"), ((4.9 + 4.1) / 2, "4.5"))
    o, _ = merged([4.9, 4.1], [math.log(3), math.log(8000)])
    numbers("lse-is-the-weight", (o, "4.1003"))


def test_by_hand():
    """#merge-by-hand: the table, the four lines below it, the result in one pass, the plain mean."""
    numbers("merge-by-hand", (E(-1), "0.368"), (E(-3), "0.050"), (L_0, "1.368"), (L_1, "1.050"))
    numbers("merge-by-hand", (ACC_0, "23.679"), (ACC_1, "31.991"), (O_0, "17.31"), (O_1, "30.47"))
    numbers("merge-by-hand", (LSE_0 - 2, "0.313"), (LSE_1 - 3, "0.049"), (LSE_0, "2.313"), (LSE_1, "3.049"))
    numbers("merge-by-hand", (LSE_1 - LSE_0, "0.735"), (WEIGHT, "0.479"), (WEIGHT + 1, "1.479"))
    numbers("merge-by-hand", (WEIGHT * O_0, "8.298"), (O_1, "30.474"), (WEIGHT * O_0 + O_1, "38.772"))
    o, lse = merged([O_0, O_1], [LSE_0, LSE_1])
    numbers("merge-by-hand", (o, "26.21"), (lse, "3.440"))
    one_pass_l, one_pass_acc = E(-1) * L_0 + L_1, E(-1) * ACC_0 + ACC_1
    numbers("merge-by-hand", (one_pass_acc, "40.702"), (one_pass_l, "1.553"))
    numbers("merge-by-hand", (one_pass_acc / one_pass_l, "26.21"), ((O_0 + O_1) / 2, "23.89"))


def test_an_empty_split():
    """#empty: (0, -inf) changes nothing; with lse = 0 it votes for 0."""
    o, lse = merged([O_0, O_1, 0.0], [LSE_0, LSE_1, -math.inf])
    numbers("empty", (o, "26.21"), (lse, "3.440"))
    o, _ = merged([O_0, O_1, 0.0], [LSE_0, LSE_1, 0.0])
    numbers("empty", (o, "25.39"), (E(0 - LSE_1), "0.047"))


def test_the_other_form():
    """#unnormalized"""
    numbers("unnormalized", (E(2 - 3), "0.368"), (E(-1) * ACC_0, "8.711"), (E(-1) * L_0, "0.503"))
    acc, l_i = E(-1) * ACC_0 + ACC_1, E(-1) * L_0 + L_1
    numbers("unnormalized", (acc, "40.702"), (l_i, "1.553"), (acc / l_i, "26.21"))


def test_equal_weights():
    """#pitfall-no-lse"""
    numbers("pitfall-no-lse", (merged([O_0, O_1], [0.0, 0.0])[0], "23.89"))
    numbers("pitfall-no-lse", (merged([O_0, O_1], [LSE_0, LSE_1])[0], "26.21"))


@pytest.mark.parametrize(
    ("lse", "right", "wrong"),
    [((100, 101), "26.50", math.nan), ((88, 88.5), "25.09", math.nan), ((-110, -111), "20.50", 0.0)],
)
def test_no_maximum(lse, right, wrong):
    """#pitfall-no-max: o = 17 and 30, the weights e^lse in fp32."""
    numbers("pitfall-no-max", (merged([17, 30], lse)[0], right))
    weights, o = torch.tensor(lse, dtype=torch.float32).exp(), torch.tensor([17.0, 30.0])
    total = weights.sum()
    without = (weights * o).sum() / torch.where(total > 0, total, 1)  # the kernel's guard
    assert without.item() == pytest.approx(wrong, nan_ok=True)
    assert (lse != (88, 88.5)) or (weights.isfinite().all() and total.isinf())


def test_two_bases():
    """#pitfall-base: lse in base 2, merged as if it were natural."""
    base_2 = [LSE_0 / math.log(2), LSE_1 / math.log(2)]
    numbers("pitfall-base", (base_2[0], "3.337"), (base_2[1], "4.398"))
    numbers("pitfall-base", (base_2[1] - base_2[0], "1.061"), (E(base_2[0] - base_2[1]), "0.346"))
    numbers("pitfall-base", (merged([O_0, O_1], base_2)[0], "27.09"), (1 / math.log(2), "1.44"))


def test_equal_lse():
    """#check-yourself: o = 2 and 4, lse 5 and 5."""
    o, lse = merged([2, 4], [5, 5])
    assert o == 3
    numbers("check-yourself", (lse, "5.693"), (5 + math.log(2), "5.693"))
