"""What each known mistake of online softmax would compute, in float64: wrong references.

A library for scripts/diagnose.py; the conventions are those of scripts/mistakes.py.
"""

import math
from collections.abc import Iterator

import torch

from scripts.mistakes import Result


def walk(
    problem, rescale_l: bool = True, rescale_acc: bool = True, masked: float = -math.inf, guard: bool = True
) -> Result:
    """The recurrence, block by block, right but for what is asked for."""
    block, scores, values = problem.block_size, problem.scores.double(), problem.values.double()
    padding = -len(scores) % block
    scores = torch.cat([scores, torch.full((padding,), masked, dtype=torch.float64)])
    values = torch.cat([values, torch.zeros(padding, values.shape[1], dtype=torch.float64)])
    top, total = torch.tensor(-math.inf, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    acc = torch.zeros(values.shape[1], dtype=torch.float64)
    for s, v in zip(scores.split(block), values.split(block), strict=True) if len(scores) else ():
        new = torch.maximum(top, s.max())
        safe = torch.where(torch.isneginf(new), 0.0, new) if guard else new
        alpha, p = torch.exp(top - safe), torch.exp(s - safe)
        # A state of nothing is 0 before it is rescaled, and stays so.
        total = total * (alpha if rescale_l else 1.0) + p.sum()
        acc = acc * (alpha if rescale_acc else 1.0) + p @ v
        top = new
    if total == 0:
        return torch.zeros_like(acc), torch.tensor(-math.inf, dtype=torch.float64)
    return acc / total, top + total.log()


def l_not_rescaled(problem) -> Iterator[Result]:
    """The sum keeps the weights of the old maximum."""
    yield walk(problem, rescale_l=False)


def acc_not_rescaled(problem) -> Iterator[Result]:
    """The accumulator keeps the weights of the old maximum."""
    yield walk(problem, rescale_acc=False)


def masked_score_zero(problem) -> Iterator[Result]:
    """What fills up the last block has a score of 0."""
    yield walk(problem, masked=0.0)


def max_unguarded(problem) -> Iterator[Result]:
    """-inf - (-inf) as long as there is no score above -inf."""
    yield walk(problem, guard=False)


def no_running_max(problem) -> Iterator[Result]:
    """exp(score) in fp32, as it is."""
    p = torch.exp(problem.scores.float())
    total = p.sum()
    yield p @ problem.values.float() / (total if total > 0 else 1.0), None


SOFTMAX_MISTAKES = {
    "no_running_max": (no_running_max, None),
    "acc_not_rescaled": (acc_not_rescaled, None),
    "l_not_rescaled": (l_not_rescaled, None),
    "masked_score_zero": (masked_score_zero, None),
    "max_unguarded": (max_unguarded, None),
}
