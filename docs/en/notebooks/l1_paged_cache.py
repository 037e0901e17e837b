# ---
# jupyter:
#   description: >-
#     Build the page table by hand: slots, forks, copy-on-write, running out; then the write kernel,
#     traced, in both layouts.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L1: the paged KV cache, step by step
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

from kernels import OutOfPagesError, PagedKVCache, paged_attention_reference, paged_decode, write_kv
from kernels.l0_shapes import grouped_spec
from kernels.l1_page_table import PageTable
from scripts.memory_policies import all_policies, make_requests, simulate
from scripts.tracer import trace

# %% [markdown]
# ## The page table alone
#
# The run of the lesson's first figure: pages of 32 tokens, A grows to 68 tokens beside B, and a third
# sequence was there before. Who needs a page when decides which one he gets.

# %%
table = PageTable(num_pages=10, page_size=32)
z = table.allocate(50)
a, b = table.allocate(30), table.allocate(60)
while table.num_tokens(a) < 68:
    table.append([a, b])
table.free(z)
print("A:", table.pages(a), "B:", table.pages(b), "free pages:", table.num_free)

# %% [markdown]
# ## From a token to its slot
#
# `t // 32` finds the logical page, the row turns it into a physical one, `t % 32` is the place in it.

# %%
for t in (0, 31, 32, 40, 67):
    page = table.pages(a)[t // 32]
    slot = table.slot(a, t)
    print(f"token {t:2}: logical page {t // 32}, place {t % 32:2}, physical page {page}, slot {slot}")
print("empty places of A:", len(table.pages(a)) * 32 - table.num_tokens(a))

# %% [markdown]
# ## Fork, then write
#
# A fork takes no page. The first token after it copies the page that is begun, four slots of it, and
# nothing else.

# %%
c = table.fork(a)
print("after the fork:   A", table.pages(a), "C", table.pages(c))
print("references:", {page: table.references(page) for page in table.pages(a)})
growth = table.append([c])
print("after C's token:  A", table.pages(a), "C", table.pages(c))
for copy in growth.copies:
    print(f"copy {copy.num_slots} slots of page {copy.source} to page {copy.target}; C's slot:", growth.slots)

# %% [markdown]
# ## Out of pages
#
# Three sequences, 40 more tokens each. There are not enough pages, the error says how many, and nothing
# has changed.

# %%
before = [(seq, table.num_tokens(seq), table.pages(seq)) for seq in table.sequences]
try:
    table.append([a, b, c], 40)
except OutOfPagesError as error:
    print(error)
after = [(seq, table.num_tokens(seq), table.pages(seq)) for seq in table.sequences]
print("changed:", before != after)
table.free(c)
print("free pages now:", table.num_free)

# %% [markdown]
# ## The write kernel
#
# K and V are slices of one fused projection, so their rows do not adjoin. The second token has no slot.
# The cache starts as NaN: what was written shows.

# %%
torch.manual_seed(0)
qkv = torch.randn(3, (4 + 2 + 2) * 16)  # 3 tokens: 4 query heads, 2 KV heads, D = 16
k = qkv[:, 64:96].view(3, 2, 16)
v = qkv[:, 96:].view(3, 2, 16)
print("K contiguous:", k.is_contiguous(), "strides", k.stride())
k_cache = torch.full((10, 32, 2, 16), float("nan"))
v_cache = k_cache.clone()
slots = torch.tensor([table.slot(a, 40), -1, table.slot(a, 67)])
with trace() as t:
    write_kv(k, v, k_cache, v_cache, slots)
for access in t.writes("k_cache_ptr"):
    pages, places = (sorted(set(c.tolist())) for c in access.coordinates[:2])
    print(f"program {access.program[:2]} wrote page {pages[0]}, place {places[0]}")
print(
    "slots written:", int((~k_cache.isnan()).all(3).all(2).sum()), "right:", torch.equal(k_cache[5, 8], k[0])
)

# %% [markdown]
# ## In which order
#
# Both rows are loaded before the first store, and neither load waits for the slot.

# %%
for access in t.accesses:
    if access.program == (0, 0, 0):
        print(f"{access.op:5} {access.name}")

# %% [markdown]
# ## The other layout
#
# The kernel knows strides alone. In HND the same slots lie elsewhere.

# %%
hnd = torch.full((10, 2, 32, 16), float("nan"))
write_kv(k, None, hnd, None, slots, kv_layout="HND")
print("NHD strides (page, place, head):", k_cache.stride()[:3])
print("HND strides (page, head, place):", hnd.stride()[:3])
print("the same tokens:", torch.equal(hnd.transpose(1, 2).nan_to_num(9), k_cache.nan_to_num(9)))

# %% [markdown]
# ## The cache, and L2 on top
#
# Prompt by decode steps, a fork, one token for the child. Then L2's kernel reads both through the table.

# %%
cache = PagedKVCache(grouped_spec(4, 2, 16, dtype=torch.float32), num_pages=12, page_size=16)
a = cache.allocate()
tokens = torch.randn(21, 2, 2, 16)  # token, K or V, head, D
for kv in tokens[:20]:
    cache.write(0, {"k": kv[None, 0], "v": kv[None, 1]}, cache.append(a))
c = cache.fork(a)
cache.write(0, {"k": tokens[20:, 0], "v": tokens[20:, 1]}, cache.append(c))
q = torch.randn(2, 4, 16)
kv = cache.tensors(0)
args = (q, kv["k"], kv["v"], cache.block_table([a, c]), cache.seq_lens([a, c]))
print("block table:", args[3].tolist(), "lengths:", args[4].tolist())
error = (paged_decode(*args) - paged_attention_reference(*args)).abs().max().item()
print("error below 1e-6:", error < 1e-6)
print("A has its 20 tokens:", torch.equal(cache.read(0, a)["k"], tokens[:20, 0]))

# %% [markdown]
# ## Three policies, one trace
#
# What the lesson's charts are drawn from.

# %%
requests = make_requests()
print(f"{len(requests)} requests, {min(map(sum, requests))} to {max(map(sum, requests))} tokens")
policies = all_policies()
for name in ("reserve", "grow 1.25", "grow 2", "page 16"):
    s = simulate(policies[name], requests).summary()
    in_use, over = s["used"] / s["reserved"], s["extent"] / s["peak_used"]
    copied = s["copied"] / s["generated"]
    print(f"{name:10} in use {in_use:4.0%}, memory / peak use {over:.2f}, tokens copied / made {copied:.2f}")

# %% [markdown]
# ## Things to try
#
# - Make the pages of the first cell 16, then 1. How many places of A are empty?
# - Fork when A has 64 tokens. What is copied?
# - Fork three times, then append to all four at once. How many copies?
# - Give two tokens the same slot. What does `write_kv` say?
# - Change the longest answer in `scripts/memory_policies.py` to 256. Which policy gains most?
