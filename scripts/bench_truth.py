"""The float64 result that the bench holds everything to, and the error allowed."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from kernels.reference import paged_attention_reference
from scripts.bench_inputs import PageSet, Pool

TRUTH_BYTES = 2**28  # of one float64 cache of as many KV heads as the reference takes at once


@dataclass(frozen=True)
class Truth:
    """The float64 result of one page set, and how far plain PyTorch in the inputs' precision is from it."""

    o: torch.Tensor  # [B, Hq, D] float64
    lse: torch.Tensor  # [B, Hq] float64
    plain_o_error: float
    plain_lse_error: float

    def judge(self, o: torch.Tensor, lse: torch.Tensor) -> dict[str, float]:
        """Errors of a result; raises AssertionError where one is over twice that of plain PyTorch, or NaN."""
        errors = self.errors(o) | {"lse_max_abs_error": max_error(lse, self.lse)}
        for name, error, plain in (
            ("o", errors["max_abs_error"], self.plain_o_error),
            ("lse", errors["lse_max_abs_error"], self.plain_lse_error),
        ):
            if not error <= 2 * plain:
                raise AssertionError(
                    f"{name} is off by {error:.3g}; allowed is {2 * plain:.3g}, twice plain PyTorch"
                )
        return errors

    def errors(self, o: torch.Tensor) -> dict[str, float]:
        """How far o is from the truth."""
        relative = ((o.double() - self.o).norm() / self.o.norm()).item()
        return {
            "max_abs_error": max_error(o, self.o), "allowed_abs_error": 2 * self.plain_o_error,
            "relative_error": relative,
        }  # fmt: skip


def max_error(result: torch.Tensor, truth: torch.Tensor) -> float:
    """Largest absolute difference; NaN if the result holds one."""
    return (result.double() - truth).abs().max().item()


def make_truth(pool: Pool, page_set: PageSet) -> Truth:
    """The reference in float64, and the same attention in plain PyTorch at the inputs' precision."""
    o, lse = reference_by_parts(pool, page_set)
    plain_o, plain_lse = plain_attention(pool, page_set)
    return Truth(o, lse, max_error(plain_o, o), max_error(plain_lse, lse))


def reference_by_parts(pool: Pool, page_set: PageSet) -> tuple[torch.Tensor, torch.Tensor]:
    """The reference on float64 copies of the cache with its scales applied, a few KV heads at a time."""
    shape, device = pool.shape, page_set.q.device
    group = pool.inputs.group_size
    o = torch.empty(page_set.q.shape, dtype=torch.float64, device=device)
    lse = torch.empty(page_set.q.shape[:2], dtype=torch.float64, device=device)
    for b, n in enumerate(shape.lens):
        kv = pool.sequence(page_set, b)
        table = torch.zeros(1, 1, dtype=torch.int32, device=device)
        length = pool.seq_lens[b : b + 1]
        step = max(1, TRUTH_BYTES // (n * shape.head_dim * group * 8))
        for head in range(0, shape.num_kv_heads, step):
            k, v = (
                x[None, :, head : head + step].double() * scale
                for x, scale in zip(kv, shape.scales, strict=True)
            )  # one page as long as the sequence
            rows = slice(head * group, (head + step) * group)
            part = page_set.q[b : b + 1, rows].double()
            o[b, rows], lse[b, rows] = (
                x[0] for x in paged_attention_reference(part, k, v, table, length, return_lse=True)
            )
    return o, lse


def plain_attention(pool: Pool, page_set: PageSet) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as one writes it in PyTorch, every tensor in q's dtype."""
    shape = pool.shape
    o, lse = [], []
    for b, q in enumerate(page_set.q):
        k, v = (
            (x.to(q.dtype) * scale).transpose(0, 1).repeat_interleave(pool.inputs.group_size, 0)
            for x, scale in zip(pool.sequence(page_set, b), shape.scales, strict=True)
        )  # [Hq, tokens, D]
        scores = (k @ q.unsqueeze(2)).squeeze(2) / math.sqrt(shape.head_dim)  # [Hq, tokens]
        lse.append(scores.logsumexp(-1))
        o.append((scores.softmax(-1).unsqueeze(1) @ v).squeeze(1))
    return torch.stack(o), torch.stack(lse)


@contextmanager
def poisoned_allocations() -> Iterator[None]:
    """Inside, torch.empty gives NaN, so that what a function allocates and does not write shows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)  # fill_uninitialized_memory is on by default
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
