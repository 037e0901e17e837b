"""One call of write_kv, for tests and drill cases of lesson L1, between pages of somebody else."""

import torch

from kernels.l1_write_kv import write_kv, write_kv_reference
from tests.helpers.mode import DEVICE

POISON = {2: 0x7FED, 4: 0x7FED_BEEF}  # a NaN's bits, by element size: `untouched` compares bits
INT_OF = {2: torch.int16, 4: torch.int32}
GUARD = 2  # pages before and after the cache that belong to somebody else


class Write:
    """One call: caches full of poison between guard pages, and inputs that are slices of wider tensors."""

    def __init__(
        self, slots, *, heads=2, k_dim=32, v_dim=None, page_size=16, num_pages=6, dtype=torch.float32,
        kv_layout="NHD", interleaved=False, slot_dtype=torch.int64, one=False,
    ) -> None:  # fmt: skip
        v_dim = v_dim or k_dim
        rng = torch.Generator().manual_seed(0)
        # A fused projection: K and V of a token are parts of one row, between other things.
        fused = torch.full((len(slots), heads * (k_dim + v_dim) + 16), float("nan"))
        fused[:, 8:-8] = torch.randn(len(slots), heads * (k_dim + v_dim), generator=rng)
        fused = fused.to(DEVICE, dtype)
        self.k = fused[:, 8 : 8 + heads * k_dim].unflatten(1, (heads, k_dim))
        self.v = fused[:, 8 + heads * k_dim : -8].unflatten(1, (heads, v_dim))
        self.layout = kv_layout

        def pages(*inner):
            shape = (num_pages + 2 * GUARD, *inner)
            bits = torch.full(shape, POISON[dtype.itemsize], dtype=INT_OF[dtype.itemsize], device=DEVICE)
            return bits.view(dtype)

        def inner(dim):
            return (page_size, heads, dim) if kv_layout == "NHD" else (heads, page_size, dim)

        if interleaved:  # K and V of a page adjoin, as FlashInfer's one cache has them
            both = pages(2, *inner(k_dim))
            self.whole = [both[:, 0], both[:, 1]]
        else:
            self.whole = [pages(*inner(k_dim)), pages(*inner(v_dim))]
        self.k_cache, self.v_cache = (cache[GUARD : GUARD + num_pages] for cache in self.whole)
        if one:
            self.v = self.v_cache = None
            self.whole.pop()
        self.slots = torch.tensor(slots, dtype=slot_dtype, device=DEVICE)

    @property
    def args(self):
        return self.k, self.v, self.k_cache, self.v_cache, self.slots

    def run(self, write) -> list[torch.Tensor]:
        """The caches with their guards, as bits, after the call; they are poison again afterwards."""
        write(*self.args, kv_layout=self.layout)
        int_dtype = INT_OF[self.k.dtype.itemsize]
        found = [cache.clone().view(int_dtype) for cache in self.whole]
        for cache in self.whole:
            cache.view(int_dtype).fill_(POISON[cache.dtype.itemsize])
        return found

    def assert_right(self) -> None:
        """The kernel leaves the same bits as the reference does: in the slots, elsewhere, in the guards."""
        for found, expected in zip(self.run(write_kv), self.run(write_kv_reference), strict=True):
            assert torch.equal(found, expected)
