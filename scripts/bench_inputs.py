"""What the bench decodes: page sets in one shuffled pool."""

import math
import random
from dataclasses import dataclass
from functools import cached_property

import torch

from kernels.checks import PagedInputs

POOL_BYTES = 2**30  # of keys and values, unless the L2 cache asks for more
L2_TURNS = 8  # L2 caches' worth of KV that pass between two reads of the same page
K_SCALE, V_SCALE = 0.5, 0.25  # of fp8 caches: value = scale * element; powers of two, so exact in fp16
SHORTEST = 16  # tokens of the shortest sequence of a ragged batch


@dataclass(frozen=True)
class Shape:
    """One decode problem: B sequences of ctx tokens, Hq query heads, Hkv KV heads, head dim D.

    A ragged batch holds lengths from SHORTEST to ctx, evenly spaced by their logarithm, shuffled.
    """

    batch_size: int
    ctx: int
    page_size: int = 16
    num_qo_heads: int = 32
    num_kv_heads: int = 8
    head_dim: int = 128
    dtype: torch.dtype = torch.float16
    kv_dtype: torch.dtype | None = None  # of the caches; None: dtype
    ragged: bool = False

    @cached_property
    def lens(self) -> tuple[int, ...]:
        """Tokens of each sequence."""
        return ragged_lens(self.batch_size, self.ctx) if self.ragged else (self.ctx,) * self.batch_size

    @property
    def cache_dtype(self) -> torch.dtype:
        return self.kv_dtype or self.dtype

    @property
    def is_fp8(self) -> bool:
        """Whether keys and values are 8-bit floats with scales."""
        return self.cache_dtype.itemsize == 1

    @property
    def scales(self) -> tuple[float, float]:
        """k_scale, v_scale."""
        return (K_SCALE, V_SCALE) if self.is_fp8 else (1.0, 1.0)

    @property
    def pages(self) -> list[int]:
        """Pages of each sequence."""
        return [math.ceil(n / self.page_size) for n in self.lens]

    @property
    def pages_per_seq(self) -> int:
        """Pages of the longest sequence: the width of the block table."""
        return math.ceil(self.ctx / self.page_size)

    @property
    def kv_bytes(self) -> int:
        """Bytes of the keys and values of all sequences."""
        return 2 * sum(self.lens) * self.num_kv_heads * self.head_dim * self.cache_dtype.itemsize

    @property
    def flop(self) -> int:
        """Useful operations: a multiply and an add for each element of K and of V, a query head."""
        return 4 * sum(self.lens) * self.num_qo_heads * self.head_dim

    def __str__(self) -> str:
        text = f"{self.batch_size}x{self.ctx} page {self.page_size}"
        if self.ragged:
            text += " ragged"
        if (self.num_qo_heads, self.num_kv_heads) != (32, 8):
            text += f" {self.num_qo_heads}/{self.num_kv_heads} heads"
        if self.dtype != torch.float16:
            text += f" {name_of(self.dtype)}"
        return f"{text} KV {name_of(self.cache_dtype)}" if self.is_fp8 else text


def name_of(dtype: torch.dtype) -> str:
    """torch.float16 -> "float16"."""
    return str(dtype).removeprefix("torch.")


def ragged_lens(batch_size: int, longest: int) -> tuple[int, ...]:
    """SHORTEST to `longest` tokens, evenly spaced by their logarithm, in an order shuffled with seed 0."""
    ratio = longest / SHORTEST
    lens = [round(SHORTEST * ratio ** (i / max(1, batch_size - 1))) for i in range(batch_size)]
    random.Random(0).shuffle(lens)
    return tuple(lens)


@dataclass(frozen=True)
class PageSet:
    """The arguments of one call; no two sets share a page."""

    q: torch.Tensor  # [B, Hq, D]
    block_table: torch.Tensor  # [B, pages_per_seq] int32; 0 past a sequence's last page
    pages: torch.Tensor  # [sum of pages] int32: the table's entries in use, row after row


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

    @cached_property
    def hnd_caches(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Copies of both caches as [num_pages, Hkv, page_size, D], for peers that are faster so."""
        return tuple(cache.transpose(1, 2).contiguous() for cache in (self.k_cache, self.v_cache))

    def sequence(self, page_set: PageSet, b: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of sequence b, each [tokens, Hkv, D] in the cache's dtype, scales not applied."""
        pages = page_set.block_table[b, : self.shape.pages[b]].long()
        return tuple(
            gather(cache, pages).flatten(0, 1)[: self.shape.lens[b]] for cache in (self.k_cache, self.v_cache)
        )


def gather(cache: torch.Tensor, pages: torch.Tensor) -> torch.Tensor:
    """cache[pages], for 8-bit floats too, which torch does not index."""
    if cache.dtype.itemsize == 1:
        return cache.view(torch.uint8)[pages].view(cache.dtype)
    return cache[pages]


def make_pool(
    shape: Shape, device: str, l2_bytes: int, pool_bytes: int = POOL_BYTES, num_sets: int | None = None
) -> Pool:
    """Random normal keys, values and queries; the page ids are shuffled over the whole pool.

    As many page sets as fill pool_bytes and L2_TURNS L2 caches, unless num_sets says how many.
    """
    num_sets = num_sets or max(2, math.ceil(max(pool_bytes, L2_TURNS * l2_bytes) / shape.kv_bytes))
    pages_per_set = sum(shape.pages)
    cache_shape = (2, num_sets * pages_per_set, shape.page_size, shape.num_kv_heads, shape.head_dim)
    torch.manual_seed(0)
    cache = torch.empty(cache_shape, dtype=shape.cache_dtype, device=device)
    fill_normal(cache, shape)
    pages = torch.randperm(num_sets * pages_per_set).int().view(num_sets, pages_per_set)
    tables = make_tables(pages, shape).to(device)
    pages = pages.to(device)
    q_shape = (num_sets, shape.batch_size, shape.num_qo_heads, shape.head_dim)
    q = torch.empty(q_shape, dtype=shape.dtype, device=device).normal_()
    seq_lens = torch.tensor(shape.lens, dtype=torch.int32, device=device)
    sets = [PageSet(q[i], tables[i], pages[i]) for i in range(num_sets)]
    inputs = PagedInputs(
        shape.batch_size, shape.num_qo_heads, shape.num_kv_heads, shape.head_dim, shape.page_size,
        shape.pages_per_seq, cache[0], cache[1],
    )  # fmt: skip
    return Pool(shape, cache[0], cache[1], seq_lens, sets, inputs, cache.view(-1))


def fill_normal(cache: torch.Tensor, shape: Shape) -> None:
    """Random normal values, in the cache's dtype; torch draws no 8-bit floats, so those are rounded."""
    if not shape.is_fp8:
        cache.normal_()
        return
    for part in cache.view(-1).split(2**28):
        part.copy_(torch.empty(part.shape, dtype=torch.float16, device=cache.device).normal_())


def make_tables(pages: torch.Tensor, shape: Shape) -> torch.Tensor:
    """Block tables [sets, B, pages_per_seq] of the page ids [sets, sum of pages]."""
    tables = torch.zeros(len(pages), shape.batch_size, shape.pages_per_seq, dtype=torch.int32)
    for b, row in enumerate(pages.split(shape.pages, dim=1)):
        tables[:, b, : row.shape[1]] = row
    return tables
