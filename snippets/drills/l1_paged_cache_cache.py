"""The paged KV cache: pages in one tensor per entry of a `CacheSpec`, and a table of who has which.

Lesson: l1_paged_cache. Reference: the model in tests/kernels/test_l1_paged_cache.py.
Source: own; the idea is PagedAttention (arXiv:2309.06180).
"""

from collections.abc import Mapping, Sequence

import torch

from kernels.checks import require
from kernels.l0_shapes import CacheSpec
from kernels.l1_page_table import OutOfPagesError, PageTable
from kernels.l1_write_kv import write_kv, write_kv_reference

__all__ = ["OutOfPagesError", "PagedKVCache", "write_kv"]


class PagedKVCache:
    """The keys and values of many sequences, all layers, in num_pages pages of page_size tokens.

    Args:
        spec: what one layer stores for one token; every layer stores the same. One or two entries.
        num_pages, page_size: how many pages, and tokens a page. A page holds its tokens in all
            layers, so one table serves them all.
        kv_layout: "NHD" [num_pages, page_size, heads, width] or "HND" [num_pages, heads,
            page_size, width], for each layer and entry.
        device: of the tensors. Nothing is initialised: a slot that holds no token holds anything.
    """

    def __init__(
        self, spec: CacheSpec, *, num_pages: int, page_size: int = 16, num_layers: int = 1,
        kv_layout: str = "NHD", device: str | torch.device = "cpu",
    ) -> None:
        require(kv_layout in ("NHD", "HND"), "kv_layout", repr(kv_layout), "'NHD' or 'HND'")
        require(num_layers >= 1, "num_layers", num_layers, "at least 1")
        ok = 1 <= len(spec.entries) <= 2
        require(ok, "spec.entries", list(spec.entries), "one or two entries: what write_kv stores")
        self.spec, self.kv_layout, self.device = spec, kv_layout, torch.device(device)
        self.num_layers, self.page_size = num_layers, page_size
        self.table = PageTable(num_pages, page_size)
        self._pages: dict[str, torch.Tensor] = {}  # [num_layers, num_pages, *, *, width]
        for name, entry in spec.entries.items():
            inner = (page_size, entry.num_heads) if kv_layout == "NHD" else (entry.num_heads, page_size)
            shape = (num_layers, num_pages, *inner, entry.width)
            self._pages[name] = torch.empty(shape, dtype=entry.dtype, device=device)

    def allocate(self, num_tokens: int = 0) -> int:
        """A new sequence with room for a prompt of num_tokens; raises OutOfPagesError."""
        return self.table.allocate(num_tokens)

    def fork(self, seq: int, num_tokens: int | None = None) -> int:
        """A new sequence that shares the first num_tokens tokens of another (None: all); no copy."""
        return self.table.fork(seq, num_tokens)

    def free(self, seq: int) -> None:
        """Forget a sequence; pages that no other sequence has become free."""
        self.table.free(seq)

    def append(self, seqs: int | Sequence[int], num_tokens: int = 1) -> torch.Tensor:
        """Room for num_tokens more tokens of each sequence; all of it or, OutOfPagesError, nothing.

        Returns:
            slots [len(seqs) * num_tokens] int64 on the cache's device, sequence after sequence:
            where to `write` the new tokens, in every layer.
        """
        # TODO: Let the table make room, then make the copies that it asks for:
        #   in every tensor, all layers at once.
        #   Return the slots of the new tokens, int64, on the cache's device.

    def block_table(self, seqs: Sequence[int]) -> torch.Tensor:
        """[B, pages of the longest] int32 on the cache's device: logical page -> physical page.

        Past a sequence's last page stands -1, which no kernel reads.
        """
        # TODO: -1 past a sequence's last page. There may be no sequences, and no pages.

    def seq_lens(self, seqs: Sequence[int]) -> torch.Tensor:
        """[B] int32 on the cache's device: tokens of each sequence."""
        lens = [self.table.num_tokens(seq) for seq in seqs]
        return torch.tensor(lens, dtype=torch.int32, device=self.device)

    def slot_mapping(self, seq: int, start: int = 0) -> torch.Tensor:
        """[tokens - start] int64 on the cache's device: the slots of a sequence's tokens from start."""
        slots = [self.table.slot(seq, t) for t in range(start, self.table.num_tokens(seq))]
        return torch.tensor(slots, dtype=torch.int64, device=self.device)

    def write(self, layer: int, stored: Mapping[str, torch.Tensor], slots: torch.Tensor) -> None:
        """Store new tokens of one layer: {entry: [N, heads, width]}, at the slots of `append`.

        On a GPU that is one launch of `write_kv`; on a CPU, indexing in torch.
        """
        require(stored.keys() == self._pages.keys(), "stored", list(stored), f"{list(self._pages)}")
        new = [stored[name] for name in self._pages]
        pages = [self._pages[name][layer] for name in self._pages]
        (k, v), (k_cache, v_cache) = (*new, None)[:2], (*pages, None)[:2]
        store = write_kv if self.device.type == "cuda" else write_kv_reference
        store(k, v, k_cache, v_cache, slots, kv_layout=self.kv_layout)

    def read(self, layer: int, seq: int) -> dict[str, torch.Tensor]:
        """{entry: [tokens, heads, width]} of a sequence: a copy, gathered through its pages."""
        # TODO: Gather the sequence's pages, in the order of its tokens.
        #   Slots past its length are not its own.

    def tensors(self, layer: int) -> dict[str, torch.Tensor]:
        """{entry: [num_pages, page_size, heads, width]}: views, whatever the layout in memory."""
        return {name: self._nhd(name)[layer] for name in self._pages}

    def _nhd(self, name: str) -> torch.Tensor:
        """[num_layers, num_pages, page_size, heads, width], a view."""
        pages = self._pages[name]
        return pages if self.kv_layout == "NHD" else pages.transpose(2, 3)
