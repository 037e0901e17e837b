"""The small case of L3: the two sequences of L2, whole and in splits, against the reference."""

import torch

from kernels.l3_split_kv_decode import split_kv_decode
from kernels.reference import paged_attention_reference


def numbers(*shape, step):
    """Multiples of 1/16 from -1.5 to 1.5 in a scattered order: the same on every machine."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * step % 49 - 24) / 16).reshape(shape)


lens = [100, 63]  # 7 pages and 4
table = [[9, 3, 7, 0, 11, 4, 2], [5, 10, 1, 8, -1, -1, -1]]  # logical page -> physical page
q = numbers(2, 8, 64, step=11)  # B = 2, Hq = 8, D = 64
keys, values = numbers(2, 112, 2, 64, step=37), numbers(2, 112, 2, 64, step=53)  # Hkv = 2

# Slots without a token, and page 6, are never written: nobody may read them.
k_cache, v_cache = torch.empty(12, 16, 2, 64), torch.empty(12, 16, 2, 64)
for b, row in enumerate(table):
    for first in range(0, lens[b], 16):
        page, tokens = row[first // 16], min(16, lens[b] - first)
        k_cache[page, :tokens] = keys[b, first : first + tokens]
        v_cache[page, :tokens] = values[b, first : first + tokens]

block_table, seq_lens = torch.tensor(table, dtype=torch.int32), torch.tensor(lens, dtype=torch.int32)
args = q, k_cache, v_cache, block_table, seq_lens
o_ref, lse_ref = paged_attention_reference(*args, return_lse=True)

whole, _ = split_kv_decode(*args, num_splits=1, return_lse=True)
o, lse = split_kv_decode(*args, num_splits=4, return_lse=True)  # 7 pages as 2 + 2 + 2 + 1

print(f"o {list(o.shape)}, lse {list(lse.shape)}")
print(f"largest error of o: {(o - o_ref).abs().max().item():.1e}")
print(f"largest error of lse: {(lse - lse_ref).abs().max().item():.1e}")
print(f"largest difference to one split: {(o - whole).abs().max().item():.1e}")
for b in range(2):
    print(f"sequence {b}, {lens[b]} tokens, lse by head:", *(f"{x:.4f}" for x in lse[b].tolist()))
