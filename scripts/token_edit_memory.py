"""What the judge of scripts/token_edits.py gives to kernels, and how it looks at what they give back.

Every tensor that a kernel gets or makes lies in the middle of a larger one full of NaN: what it must not read
is NaN, and what it must not write is looked at afterwards.
"""

import math
import mmap
from collections.abc import Callable
from functools import cache
from unittest import mock

import torch

GUARD = 2**13  # elements of NaN around each tensor
NAN, INF = math.nan, math.inf
FAR = 2**30  # elements between two rows that are far apart: offsets that int32 cannot hold


class DifferenceError(Exception):
    """What a kernel gave and what is right."""


class Memory:
    """Tensors between guards of NaN, and whether the guards are still whole."""

    def __init__(self):
        self.buffers: list[tuple[torch.Tensor, int]] = []

    def empty(self, *shape, dtype=None, device=None) -> torch.Tensor:
        """In the place of torch.empty while a kernel runs: NaN inside, too."""
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        size = math.prod(shape)
        buffer = torch.full((size + 2 * GUARD,), NAN, dtype=dtype)
        self.buffers.append((buffer, size))
        return buffer[GUARD : GUARD + size].view(shape)

    def check(self) -> None:
        """DifferenceError if anything around a tensor was written."""
        for buffer, size in self.buffers:
            around = torch.cat([buffer[:GUARD], buffer[GUARD + size :]])
            if not around.isnan().all():
                raise DifferenceError("a write outside its tensor")


def inside(tensor: torch.Tensor, fill=NAN) -> torch.Tensor:
    """A copy with `fill` before and behind it; the last dim contiguous, rows apart by one element more."""
    *rows, last = tensor.shape
    wide = torch.full((*rows, last + 1), fill, dtype=tensor.dtype)
    wide[..., :last] = tensor
    around = torch.full((GUARD,), fill, dtype=tensor.dtype)
    flat = torch.cat([around, wide.flatten(), around])
    return flat[GUARD : GUARD + wide.numel()].view(wide.shape)[..., :last]


@cache
def _far_memory() -> torch.Tensor:
    """fp16 of 4 GiB and a bit that takes memory only where it is touched."""
    size = (2 * FAR + 2**20) * 2
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=torch.float16)


def far(tensor: torch.Tensor, begin: int) -> torch.Tensor:
    """A copy of [up to 3, ...] in fp16 whose first dim is FAR elements apart, from an offset on."""
    strides = torch.empty(tensor.shape, device="meta").stride()[1:]
    view = _far_memory().as_strided(tensor.shape, (FAR, *strides), begin)
    return view.copy_(tensor)


def run(call: Callable[[], tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) of a call whose outputs and scratch start as NaN between guards."""
    memory = Memory()
    with (
        mock.patch.object(torch, "empty", memory.empty),
        mock.patch.object(torch, "empty_like", lambda t: memory.empty(t.shape, dtype=t.dtype)),
    ):
        result = call()
    memory.check()
    return result


def compare(name: str, actual: torch.Tensor, right: torch.Tensor, allowed: float) -> None:
    """DifferenceError unless every element is within `allowed` of what is right; infinities must be equal."""
    got = actual.double()
    if got.shape != right.shape:
        raise DifferenceError(f"{name} is {list(got.shape)}, right is {list(right.shape)}")
    bad = ~((got == right) | ((got - right).abs() <= allowed))
    if bad.any():
        at = bad.nonzero()[0].tolist()
        raise DifferenceError(f"{name}{at} is {got[tuple(at)]:.6g}, right is {right[tuple(at)]:.6g}")


def softmax_sum(scores: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(softmax(scores) @ values, log-sum-exp), float64; scores [..., N], values [..., N, D]."""
    top = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.new_zeros(*scores.shape[:-1], 1)
    top = torch.where(top == -INF, 0.0, top)
    weights = torch.exp(scores - top)
    total = weights.sum(-1)
    o = (weights[..., None] * values).sum(-2) / torch.where(total > 0, total, 1.0)[..., None]
    return o, top[..., 0] + torch.log(total)


def check(result, right, dtype: torch.dtype, largest_score: float, largest_value: float) -> None:
    """Both outputs within what the dtype's rounding and the size of the scores explain."""
    (o, lse), (right_o, right_lse) = result, right
    if o.dtype != dtype or lse.dtype != torch.float32:
        raise DifferenceError(f"the outputs are {o.dtype} and {lse.dtype}")
    score_error = 2.0**-21 * max(1.0, largest_score)  # of an exponent: a few roundings
    rounding = 2.0**-8 if dtype == torch.float16 else 2.0**-18
    compare("o", o, right_o, (rounding + 2 * score_error) * max(1.0, largest_value))
    compare("lse", lse, right_lse, 2 * score_error)


def largest_of(values: torch.Tensor) -> float:
    """The largest finite magnitude, 0 of nothing."""
    finite = values[values.isfinite()].double().abs()
    return finite.max().item() if finite.numel() else 0.0
