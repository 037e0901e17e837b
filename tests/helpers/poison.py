"""Poisoned outputs: what a launcher allocates starts as NaN, between guards that nobody may write to."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from scripts.patching import patched

# By element size: a NaN of float16, bfloat16 and float32 alike that no arithmetic makes, so that an element
# that still has these bits was never written, and a guard that lost them was.
_INT_OF = {2: torch.int16, 4: torch.int32}
_POISON = {2: 0x7FED, 4: 0x7FED_BEEF}
_GUARD_ROWS = 64  # as many rows as the tallest tile of a kernel


class PoisonError(AssertionError):
    """Memory that a launcher allocated was written outside its tensors, or not written at all."""


class _Allocation:
    """A tensor in the middle of a larger poisoned buffer."""

    def __init__(self, wanted: torch.Tensor):
        size = wanted.element_size()
        self.shape, self.poison = tuple(wanted.shape), _POISON[size]
        self.guard = _GUARD_ROWS * max(16, wanted.shape[-1] if wanted.dim() else 1)
        elements = wanted.numel() + 2 * self.guard
        self.bits = torch.full((elements,), self.poison, dtype=_INT_OF[size], device=wanted.device)
        body = self.bits.view(wanted.dtype)[self.guard : self.guard + wanted.numel()]
        self.tensor = body.as_strided(wanted.shape, wanted.stride(), self.guard)

    def check(self, written: bool) -> None:
        """Both guards whole, and, if `written`, every element of the tensor written."""
        clean = self.bits == self.poison
        for where, part in (("before", clean[: self.guard]), ("after", clean[len(clean) - self.guard :])):
            if not part.all():
                at = (~part).nonzero().flatten().tolist()
                raise PoisonError(f"{len(at)} elements written {where} a tensor {list(self.shape)}: {at[:8]}")
        left = clean[self.guard : len(clean) - self.guard].nonzero().flatten().tolist()
        if left and written:
            raise PoisonError(
                f"{len(left)} elements of a tensor {list(self.shape)} never written: {left[:8]}"
            )


@contextmanager
def poisoned(written: bool = True) -> Iterator[list[torch.Tensor]]:
    """Inside, torch.empty and torch.empty_like give poisoned tensors; on a clean exit all are checked.

    written: whether every element must have been written; the guards must be whole in any case.
    Yields the list of those tensors, in the order of their allocation.
    """
    allocations: list[_Allocation] = []
    tensors: list[torch.Tensor] = []

    def poisoning(allocate):
        def wrapper(*args, **kwargs):
            allocations.append(_Allocation(allocate(*args, **kwargs)))
            tensors.append(allocations[-1].tensor)
            return tensors[-1]

        return wrapper

    with (
        patched(torch, "empty", poisoning(torch.empty)),
        patched(torch, "empty_like", poisoning(torch.empty_like)),
    ):
        yield tensors
    for allocation in allocations:
        allocation.check(written)
