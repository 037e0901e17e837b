# ---
# jupyter:
#   description: >-
#     Build a paged KV cache by hand: block table, reference, kernel, experiments with the mask, and what
#     the kernel really read.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L2: paged decode, step by step
#
# Run it in a clone of the repository; no GPU is needed:
#
# ```
# python -m venv .venv
# .venv/bin/pip install torch triton jupyterlab
# .venv/bin/jupyter lab docs/en/notebooks
# ```
#
# Triton's interpreter runs the kernels on the CPU. The next cell looks for the root of the repository
# above the current directory, so the notebook must lie inside it. Run the cells in order, then change
# numbers and run again.

# %%
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
sys.path.insert(
    0, str(next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "kernels/reference.py").is_file()))
)

import torch

from kernels import naive_paged_decode, paged_attention_reference, paged_decode
from scripts.tracer import trace

# %% [markdown]
# ## A small cache
#
# One sequence, ctx = 37, PAGE = 16, 8 query heads, 2 KV heads, D = 16. The cache has 12 pages. The
# sequence lies in the physical pages 9, 3 and 7; the last two entries of its table are -1.
#
# The whole cache starts as NaN. Whoever reads what is not his gets a NaN into his result.

# %%
ctx, PAGE, Hq, Hkv, D = 37, 16, 8, 2, 16
torch.manual_seed(0)
q = torch.randn(1, Hq, D)
keys, values = torch.randn(2, ctx, Hkv, D)
k_cache = torch.full((12, PAGE, Hkv, D), float("nan"))
v_cache = k_cache.clone()
block_table = torch.tensor([[9, 3, 7, -1, -1]], dtype=torch.int32)
seq_lens = torch.tensor([ctx], dtype=torch.int32)

# %% [markdown]
# ## Written through the table
#
# Token t is in slot `t % PAGE` of logical page `t // PAGE`. The table turns that into a physical page.

# %%
for t in range(ctx):
    page_id = block_table[0, t // PAGE].item()
    k_cache[page_id, t % PAGE] = keys[t]
    v_cache[page_id, t % PAGE] = values[t]
    if t in (0, 15, 16, 36):
        print(f"token {t:2}: logical page {t // PAGE}, physical page {page_id}, slot {t % PAGE}")

# %% [markdown]
# ## One head, by definition
#
# Query head 5 belongs to KV head `5 // G = 1`. Gather the three pages, cut them to 37 tokens, and take
# the softmax.

# %%
G = Hq // Hkv
head = 5
pages = block_table[0, :3].long()
k = k_cache[pages].flatten(0, 1)[:ctx, head // G].double()
v = v_cache[pages].flatten(0, 1)[:ctx, head // G].double()
scores = k @ q[0, head].double() / D**0.5
by_hand = torch.softmax(scores, 0) @ v
reference = paged_attention_reference(q.double(), k_cache, v_cache, block_table, seq_lens)
print("KV head", head // G, "equal to the reference:", torch.allclose(by_hand, reference[0, head]))

# %% [markdown]
# ## The kernels
#
# Both give the same result. No NaN of the cache got into it.

# %%
args = (q, k_cache, v_cache, block_table, seq_lens)
for decode in (naive_paged_decode, paged_decode):
    error = (decode(*args) - reference).abs().max().item()
    print(f"{decode.__name__:18} error below 1e-6: {error < 1e-6}")

# %% [markdown]
# ## What the kernel read
#
# `trace()` records every load and store of the interpreter. Three entries of the table were read, the -1
# never. Of the last page only 5 slots were read.

# %%
with trace() as t:
    paged_decode(*args)
table_entries = sorted({int(c) for a in t.reads("block_table_ptr") for c in a.coordinates[1]})
print("table entries read:", table_entries)
for access in t.reads("k_ptr"):
    if access.program == (0, 0, 0):
        page_ids, slots = (sorted(set(c.tolist())) for c in access.coordinates[:2])
        print(f"physical page {page_ids[0]}: slots {slots[0]} to {slots[-1]}")

# %% [markdown]
# ## How many times
#
# A naive program owns one query head, so a KV head is read G = 4 times. Packed, it is read once.

# %%
for decode in (naive_paged_decode, paged_decode):
    with trace() as t:
        decode(*args)
    counts = t.read_counts("k_ptr")
    print(f"{decode.__name__:18} grid {t.launches[0].grid[:2]}, reads of a used K element: {counts.max()}")

# %% [markdown]
# ## Which rows are written
#
# The program of KV head 1 has a tile of 16 rows, 4 of them real: query heads 4 to 7. Only those are
# written.

# %%
with trace() as t:
    paged_decode(*args)
mine = [a for a in t.writes("o_ptr") if a.program == (0, 1, 0)]
print("heads written by program (0, 1, 0):", sorted({int(h) for a in mine for h in a.coordinates[1]}))
t.assert_written_once("o_ptr")
t.assert_in_bounds()

# %% [markdown]
# ## Unused slots may hold anything
#
# With 60000 in place of NaN not one bit of the result changes. That is what the mask is for.

# %%
loud_k, loud_v = k_cache.nan_to_num(60000.0), v_cache.nan_to_num(60000.0)
same = torch.equal(paged_decode(*args), paged_decode(q, loud_k, loud_v, block_table, seq_lens))
print("bit for bit the same:", same)

# %% [markdown]
# ## One mask missing
#
# Two mistakes, shown in PyTorch. Only the scores masked: the weight is 0, but 0 × NaN is NaN. Nothing
# masked: scores from 60000 drown those of the real tokens.


# %%
def attend(k_cache, v_cache, mask_scores, mask_v):
    """One head over the whole three pages, 48 slots, of which 37 hold tokens."""
    valid = torch.arange(48) < ctx
    k, v = (c[pages].flatten(0, 1)[:, head // G] for c in (k_cache, v_cache))
    s = k @ q[0, head] / D**0.5
    s = torch.where(valid, s, -float("inf")) if mask_scores else s
    v = torch.where(valid[:, None], v, 0.0) if mask_v else v
    return torch.softmax(s, 0) @ v


right = reference[0, head].float()
print("both masked: close", torch.allclose(attend(k_cache, v_cache, True, True), right, atol=1e-5))
print("scores only: NaN  ", attend(k_cache, v_cache, True, False).isnan().all().item())
print("none, 60000: close", torch.allclose(attend(loud_k, loud_v, False, False), right, atol=1e-5))

# %% [markdown]
# ## Which head reads which
#
# Let V hold the number of its KV head. The output then says whom each query head read: contiguous groups,
# 0 for the first four, 1 for the rest.

# %%
v_ids = torch.arange(Hkv).float().view(1, 1, Hkv, 1).repeat(12, PAGE, 1, D)
o = paged_decode(q, k_cache, v_ids, block_table, seq_lens)
print([round(x) for x in o[0, :, 0].tolist()])

# %% [markdown]
# ## Refusals
#
# In the interpreter ids and lengths are checked before any launch. The message names the argument, what
# it is and what was wanted.

# %%
for ctx_given in (49, 81):
    try:
        paged_decode(q, k_cache, v_cache, block_table, torch.tensor([ctx_given], dtype=torch.int32))
    except ValueError as error:
        print(error)

# %% [markdown]
# ## Things to try
#
# - Make `Hq` 16, so G = 8. What do the naive counts become? Has the tile still 16 rows?
# - Make ctx 32, then 33. When is the third entry read?
# - Make `seq_lens` 0. What are o and lse?
