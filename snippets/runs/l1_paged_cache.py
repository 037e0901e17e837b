"""Two sequences in a paged cache; a fork writes into its own copy of the page that both had begun."""

import torch

from kernels.l0_shapes import grouped_spec
from kernels.l1_paged_cache import PagedKVCache

spec = grouped_spec(4, 2, 8, dtype=torch.float32)  # Hkv = 2, D = 8
cache = PagedKVCache(spec, num_pages=6, page_size=4)


def tokens(*marks):
    """K and V of one token a mark, full of it, so that it tells them apart."""
    k = torch.tensor(marks, dtype=torch.float32)[:, None, None].expand(-1, 2, 8)
    return {"k": k, "v": -k}


a = cache.allocate(6)
cache.write(0, tokens(*range(10, 16)), cache.slot_mapping(a))
b = cache.fork(a)  # shares both pages of a
cache.write(0, tokens(16), cache.append(a))
cache.write(0, tokens(26), cache.append(b))
print("block table", cache.block_table([a, b]).tolist(), "lengths", cache.seq_lens([a, b]).tolist())
for name, seq in (("a", a), ("b", b)):
    k = cache.read(0, seq)["k"]
    print(f"{name} holds {list(k.shape)}:", *(f"{x:g}" for x in k[:, 0, 0].tolist()))
print("free pages:", cache.table.num_free)
