"""Inputs of a paged decode, with everything that no kernel may read filled with poison."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from tests.helpers.mode import DEVICE, dtype_name


class Shape(NamedTuple):
    """What a kernel is compiled for, dtype apart: query heads a KV head, D, tokens a page."""

    group_size: int
    head_dim: int
    page_size: int


# Each value of each axis once, not their product: on a GPU every shape is a compilation of every kernel.
GROUP_SHAPES = [Shape(g, 64, 16) for g in (1, 3, 4, 5, 7, 8, 16, 32, 64)]
HEAD_DIM_SHAPES = [Shape(4, d, 16) for d in (16, 128, 256)]
PAGE_SIZE_SHAPES = [Shape(4, 64, n) for n in (32, 64, 128)]
SHAPES = GROUP_SHAPES + HEAD_DIM_SHAPES + PAGE_SIZE_SHAPES
# For tests of something else than the shape: small, since the interpreter takes 10 ms a program and page.
PLAIN = Shape(2, 32, 16)

# How K and V lie in memory: see _new_caches.
STORAGES = ("apart", "page_pairs", "head_pairs", "padded_v")


def listed_lengths(page_size: int) -> list[int]:
    """An empty sequence among others, and every length around a page's edge."""
    return [page_size + 1, 0, 1, page_size - 1, 2 * page_size + 5, page_size]


# Calls to make under the tracer: (lens, shape, other arguments of make_case).
TRACED_CALLS = [
    ([37, 0, 16], PLAIN, {}),
    ([17], Shape(3, 16, 16), {"num_kv_heads": 3, "kv_layout": "HND"}),
    ([5], Shape(16, 16, 16), {"num_kv_heads": 1, "dtype": torch.float16}),
    *(([20, 16], PLAIN, {"storage": storage, "strided": True}) for storage in STORAGES),
    ([0, 0], PLAIN, {}),
    ([], PLAIN, {}),
]


def sweep_case(shape: Shape, dtype: torch.dtype) -> "Case":
    """The case of one shape in a sweep over shapes: small where the group is large."""
    if shape.group_size <= 8:
        return make_case([shape.page_size + 5, 0, 1], shape, dtype)
    return make_case([shape.page_size + 5], shape, dtype, num_kv_heads=1)


@dataclass(frozen=True)
class Case:
    """The arguments of one call; used [num_pages, page_size] says which slots of the caches hold tokens."""

    q: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    block_table: torch.Tensor
    seq_lens: torch.Tensor
    used: torch.Tensor
    kwargs: dict

    @property
    def args(self) -> tuple[torch.Tensor, ...]:
        return self.q, self.k_cache, self.v_cache, self.block_table, self.seq_lens

    @property
    def lens(self) -> list[int]:
        return self.seq_lens.tolist()

    @property
    def page_size(self) -> int:
        return self.used.shape[1]

    @property
    def nhd_caches(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Both caches as [num_pages, page_size, Hkv, D], whatever the layout."""
        if self.kwargs["kv_layout"] == "HND":
            return self.k_cache.transpose(1, 2), self.v_cache.transpose(1, 2)
        return self.k_cache, self.v_cache

    def __repr__(self) -> str:
        return (
            f"Case(lens={self.lens}, q={list(self.q.shape)} {dtype_name(self.q.dtype)}, "
            f"k_cache={list(self.k_cache.shape)} with strides {self.k_cache.stride()}, {self.kwargs})"
        )


def _new_caches(shape, storage: str, dtype, fill: float) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V of this shape, every element `fill`, laid out as `storage` says."""
    pages, rows, cols, head_dim = shape

    def full(*size):
        return torch.full(size, fill, dtype=dtype, device=DEVICE)

    if storage == "apart":
        return full(*shape), full(*shape)
    if storage == "page_pairs":  # the K and the V of a page adjoin
        both = full(pages, 2, rows, cols, head_dim)
        return both[:, 0], both[:, 1]
    if storage == "head_pairs":  # the K and the V of a token's head adjoin
        both = full(pages, rows, cols, 2, head_dim)
        return both[..., 0, :], both[..., 1, :]
    if storage == "padded_v":  # V alone has gaps, so no stride of K is right for V
        return full(*shape), full(pages + 1, rows, cols, head_dim + 16)[1:, ..., :head_dim]
    raise ValueError(f"storage is {storage!r}; wanted one of {STORAGES}")


def _as_slice(tensor: torch.Tensor, fill: float) -> torch.Tensor:
    """The same [B, N, ...] as columns 1 to N + 1 of a wider tensor whose other columns hold `fill`."""
    batch_size, num_columns, *rest = tensor.shape
    wide = torch.full((batch_size, num_columns + 3, *rest), fill, dtype=tensor.dtype, device=tensor.device)
    wide[:, 1 : num_columns + 1] = tensor
    return wide[:, 1 : num_columns + 1]


def make_case(
    lens: list[int],
    shape: Shape = PLAIN,
    dtype: torch.dtype = torch.float32,
    *,
    num_kv_heads: int = 2,
    kv_layout: str = "NHD",
    storage: str = "apart",
    ids: str = "scattered",
    strided: bool = False,
    unused: float = float("nan"),
    beyond: int = -1,
    spare_columns: int = 2,
    spare_pages: int = 3,
    sm_scale: float | None = None,
    seed: int = 0,
) -> Case:
    """A case with random q, keys and values, on the device of the run.

    The same lens, shape and seed give the same q, keys and values, wherever those lie and whatever lies
    around them: results of such cases can be compared.

    ids: "scattered" or "ordered" physical pages. strided: q and the table are slices of wider tensors.
    unused: fills every element of the caches that is no token's. beyond: fills the table past each
    sequence's last page. spare_columns, spare_pages: how much of the table and of the caches nobody uses.
    """
    group_size, head_dim, page_size = shape
    rng = torch.Generator().manual_seed(seed)
    q = torch.randn(len(lens), group_size * num_kv_heads, head_dim, generator=rng)
    tokens = torch.randn(2, sum(lens), num_kv_heads, head_dim, generator=rng)

    pages_of = [-(-n // page_size) for n in lens]
    num_pages = sum(pages_of) + spare_pages
    order = torch.randperm(num_pages, generator=rng) if ids == "scattered" else torch.arange(num_pages)
    rows = order[: sum(pages_of)].split(pages_of)
    table = torch.full((len(lens), max(pages_of, default=0) + spare_columns), beyond, dtype=torch.int32)
    for row, pages in zip(table, rows, strict=True):
        row[: len(pages)] = pages

    # Where token t of all tokens lies: its physical page and its slot there.
    nothing = torch.empty(0, dtype=torch.int64)
    pages_of_tokens = [p.repeat_interleave(page_size)[:n] for p, n in zip(rows, lens, strict=True)]
    page_ids = torch.cat([nothing, *pages_of_tokens])
    slots = torch.cat([nothing, *(torch.arange(n) % page_size for n in lens)])
    used = torch.zeros(num_pages, page_size, dtype=torch.bool)
    used[page_ids, slots] = True

    heads_first = kv_layout == "HND"
    inner = (num_kv_heads, page_size) if heads_first else (page_size, num_kv_heads)
    caches = _new_caches((num_pages, *inner, head_dim), storage, dtype, unused)
    for cache, values in zip(caches, tokens, strict=True):
        nhd = cache.transpose(1, 2) if heads_first else cache
        nhd[page_ids.to(DEVICE), slots.to(DEVICE)] = values.to(DEVICE, dtype)

    q, table = q.to(DEVICE, dtype), table.to(DEVICE)
    if strided:
        q, table = _as_slice(q, float("nan")), _as_slice(table, beyond)
    return Case(
        q, *caches, table, torch.tensor(lens, dtype=torch.int32, device=DEVICE), used,
        {"kv_layout": kv_layout, "sm_scale": sm_scale},
    )  # fmt: skip
