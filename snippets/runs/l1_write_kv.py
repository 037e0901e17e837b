"""K and V of three tokens, slices of one fused projection, into slots of a paged cache; one is skipped."""

import torch

from kernels.l1_write_kv import write_kv

fused = torch.arange(3 * 48.0).reshape(3, 48)  # a row a token: q [16], k [16], v [16]
k, v = fused[:, 16:32].unflatten(1, (2, 8)), fused[:, 32:].unflatten(1, (2, 8))  # Hkv = 2, D = 8
k_cache, v_cache = torch.zeros(4, 4, 2, 8), torch.zeros(4, 4, 2, 8)  # [num_pages, page_size, Hkv, D]
slots = torch.tensor([9, -1, 3])  # page 2, slot 1; nowhere; page 0, slot 3

write_kv(k, v, k_cache, v_cache, slots)
for token, slot in enumerate(slots.tolist()):
    if slot < 0:
        print(f"token {token}: not stored")
        continue
    page, place = divmod(slot, 4)
    same = torch.equal(k_cache[page, place], k[token]) and torch.equal(v_cache[page, place], v[token])
    print(f"token {token}: page {page}, slot {place}: {same}")
written = (k_cache != 0).any(-1).any(-1)
print("slots written:", written.nonzero().tolist())
