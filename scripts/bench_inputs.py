"""What the bench decodes: page sets in one shuffled pool, their float64 truth, and the error allowed."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from kernels.checks import PagedInputs, check_lesson_inputs
from kernels.reference import paged_attention_reference

POOL_BYTES = 2**30  # of keys and values, unless the L2 cache asks for more
L2_TURNS = 8  # L2 caches' worth of KV that pass between two reads of the same page


@dataclass(frozen=True)
class Shape:
    """One decode problem: B sequences of ctx tokens, Hq query heads, Hkv KV heads, head dim D."""

    batch_size: int
    ctx: int
    page_size: int = 16
    num_qo_heads: int = 32
    num_kv_heads: int = 8
    head_dim: int = 128
    dtype: torch.dtype = torch.float16

    @property
    def pages_per_seq(self) -> int:
        return math.ceil(self.ctx / self.page_size)

    @property
    def kv_bytes(self) -> int:
        """Bytes of the keys and values of all sequences."""
        return 2 * self.batch_size * self.ctx * self.num_kv_heads * self.head_dim * self.dtype.itemsize

    @property
    def flop(self) -> int:
        """Useful operations: a multiply and an add for each element of K and of V, a query head."""
        return 4 * self.batch_size * self.num_qo_heads * self.ctx * self.head_dim

    def __str__(self) -> str:
        return f"{self.batch_size}x{self.ctx} page {self.page_size}"


@dataclass(frozen=True)
class PageSet:
    """The arguments of one call; no two sets share a page."""

    q: torch.Tensor  # [B, Hq, D]
    block_table: torch.Tensor  # [B, pages_per_seq] int32


@dataclass(frozen=True)
class Pool:
    """Page sets over one cache; `flat` is that cache's memory, for reading it without any structure."""

    shape: Shape
    k_cache: torch.Tensor  # [num_pages, page_size, Hkv, D]
    v_cache: torch.Tensor
    seq_lens: torch.Tensor  # [B] int32
    sets: list[PageSet]
    inputs: PagedInputs
    flat: torch.Tensor

    def arguments(self, page_set: PageSet) -> tuple[torch.Tensor, ...]:
        """What every public function takes first."""
        return page_set.q, self.k_cache, self.v_cache, page_set.block_table, self.seq_lens


def make_pool(shape: Shape, device: str, l2_bytes: int, pool_bytes: int = POOL_BYTES) -> Pool:
    """Random normal keys, values and queries; the page ids are shuffled over the whole pool."""
    num_sets = max(2, math.ceil(max(pool_bytes, L2_TURNS * l2_bytes) / shape.kv_bytes))
    pages_per_set = shape.batch_size * shape.pages_per_seq
    cache_shape = (2, num_sets * pages_per_set, shape.page_size, shape.num_kv_heads, shape.head_dim)
    torch.manual_seed(0)
    cache = torch.empty(cache_shape, dtype=shape.dtype, device=device).normal_()
    tables = (
        torch.randperm(num_sets * pages_per_set).int().view(num_sets, shape.batch_size, shape.pages_per_seq)
    )
    tables = tables.to(device)
    q_shape = (num_sets, shape.batch_size, shape.num_qo_heads, shape.head_dim)
    q = torch.empty(q_shape, dtype=shape.dtype, device=device).normal_()
    seq_lens = torch.full((shape.batch_size,), shape.ctx, dtype=torch.int32, device=device)
    sets = [PageSet(q[i], tables[i]) for i in range(num_sets)]
    inputs = check_lesson_inputs(q[0], cache[0], cache[1], tables[0], seq_lens, "NHD")
    return Pool(shape, cache[0], cache[1], seq_lens, sets, inputs, cache.view(-1))


@dataclass(frozen=True)
class Truth:
    """The float64 result of one page set, and how far plain PyTorch in the inputs' precision is from it."""

    o: torch.Tensor  # [B, Hq, D] float64
    lse: torch.Tensor  # [B, Hq] float64
    plain_o_error: float
    plain_lse_error: float

    def judge(self, o: torch.Tensor, lse: torch.Tensor) -> dict[str, float]:
        """Errors of a result; raises AssertionError where one is over twice that of plain PyTorch, or NaN."""
        o_error, lse_error = max_error(o, self.o), max_error(lse, self.lse)
        for name, error, plain in (
            ("o", o_error, self.plain_o_error),
            ("lse", lse_error, self.plain_lse_error),
        ):
            if not error <= 2 * plain:
                raise AssertionError(
                    f"{name} is off by {error:.3g}; allowed is {2 * plain:.3g}, twice plain PyTorch"
                )
        relative = ((o.double() - self.o).norm() / self.o.norm()).item()
        return {
            "max_abs_error": o_error, "allowed_abs_error": 2 * self.plain_o_error, "relative_error": relative,
            "lse_max_abs_error": lse_error,
        }  # fmt: skip


def max_error(result: torch.Tensor, truth: torch.Tensor) -> float:
    """Largest absolute difference; NaN if the result holds one."""
    return (result.double() - truth).abs().max().item()


def make_truth(pool: Pool, page_set: PageSet) -> Truth:
    """The reference in float64, and the same attention in plain PyTorch at the inputs' precision."""
    q, *rest = pool.arguments(page_set)
    o, lse = paged_attention_reference(q.double(), *rest, return_lse=True)
    plain_o, plain_lse = plain_attention(pool, page_set)
    return Truth(o, lse, max_error(plain_o, o), max_error(plain_lse, lse))


def plain_attention(pool: Pool, page_set: PageSet) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as one writes it in PyTorch, every tensor in the inputs' dtype."""
    shape = pool.shape
    o, lse = [], []
    for q, pages in zip(page_set.q, page_set.block_table.long(), strict=True):
        k, v = (
            cache[pages]
            .flatten(0, 1)[: shape.ctx]
            .transpose(0, 1)
            .repeat_interleave(pool.inputs.group_size, 0)
            for cache in (pool.k_cache, pool.v_cache)
        )  # [Hq, ctx, D]
        scores = (k @ q.unsqueeze(2)).squeeze(2) / math.sqrt(shape.head_dim)  # [Hq, ctx]
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
