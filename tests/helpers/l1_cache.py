"""A small paged cache for tests and drill cases of lesson L1, and tokens that tell where they belong."""

import torch

from kernels.l0_shapes import grouped_spec
from kernels.l1_paged_cache import PagedKVCache

NUM_LAYERS, HEADS, WIDTH = 2, 2, 8


def new_cache(num_pages: int, page_size: int, kv_layout: str = "NHD", device="cpu", **kwargs) -> PagedKVCache:
    """A small cache whose slots all start as NaN."""
    spec = grouped_spec(HEADS, HEADS, WIDTH, dtype=torch.float32)
    cache = PagedKVCache(
        spec, num_pages=num_pages, page_size=page_size, num_layers=NUM_LAYERS, kv_layout=kv_layout,
        device=device, **kwargs,
    )  # fmt: skip
    for layer in range(NUM_LAYERS):
        for pages in cache.tensors(layer).values():
            pages.fill_(float("nan"))
    return cache


def stored(values: list[int], layer: int, device="cpu") -> dict[str, torch.Tensor]:
    """K and V of tokens: every element tells its token, its layer, and whether it is K or V."""
    number = torch.tensor(values, dtype=torch.float32, device=device).view(-1, 1, 1)
    k = (number * 10 + layer) * 2 + torch.zeros(1, HEADS, WIDTH, device=device)
    return {"k": k, "v": k + 1}


def write_all(cache: PagedKVCache, values: list[int], slots: torch.Tensor) -> None:
    """These tokens, into these slots of every layer."""
    for layer in range(cache.num_layers):
        cache.write(layer, stored(values, layer, cache.device), slots)
