# ---
# jupyter:
#   description: >-
#     Split and merge by hand: which pages each split reads, why lse must be kept, empty splits,
#     merge_states, and how many splits.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L3: split-KV and the merge, step by step
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

from kernels import (
    choose_num_splits,
    merge_states,
    online_softmax,
    paged_attention_reference,
    paged_decode,
    split_kv_decode,
)
from scripts.tracer import trace

PAGE = 16

# %% [markdown]
# ## The pages of each split
#
# `pages_per_split = ceil(num_pages / num_splits)`; split s begins at `s * pages_per_split` and ends at
# `num_pages` at the latest. With ctx = 37 the fourth split is empty.


# %%
def ranges(ctx, num_splits):
    num_pages = -(-ctx // PAGE)
    per_split = -(-num_pages // num_splits)
    return [(s * per_split, min((s + 1) * per_split, num_pages)) for s in range(num_splits)]


for ctx in (1000, 37, 100):
    shown = [f"{begin}-{end - 1}" if begin < end else "empty" for begin, end in ranges(ctx, 4)]
    print(f"ctx {ctx:4}, {-(-ctx // PAGE):2} pages:", ", ".join(shown))

# %% [markdown]
# ## Does the kernel read those pages?
#
# Make one sequence with scattered pages and trace the split kernel. The table entries that each program
# reads must be those worked out by hand.


# %%
def sequence(ctx, num_qo_heads=4, num_kv_heads=1, head_dim=16):
    """q, both caches, table and length of one random sequence; all unused slots are NaN."""
    torch.manual_seed(0)
    num_pages = -(-ctx // PAGE)
    caches = torch.full((2, num_pages + 2, PAGE, num_kv_heads, head_dim), float("nan"))
    table = torch.randperm(num_pages + 2)[:num_pages]
    for t in range(ctx):
        caches[:, table[t // PAGE], t % PAGE] = torch.randn(2, num_kv_heads, head_dim)
    q = torch.randn(1, num_qo_heads, head_dim)
    return q, *caches, table.int()[None], torch.tensor([ctx], dtype=torch.int32)


for ctx in (37, 100):
    with trace() as t:
        split_kv_decode(*sequence(ctx), num_splits=4)
    read = [[] for _ in range(4)]
    for access in t.reads("block_table_ptr"):
        read[access.program[2]] += access.coordinates[1].tolist()
    print("ctx", ctx, "pages read by each split:", read)
    assert read == [list(range(begin, end)) for begin, end in ranges(ctx, 4)]

# %% [markdown]
# ## The merge by hand
#
# [1, 2, 3, 0] in two halves. Each half is normalised by itself and leaves o and lse. To merge is to take
# a softmax again, with lse as the scores.

# %%
scores, values = torch.tensor([1.0, 2.0, 3.0, 0.0]), torch.tensor([10.0, 20.0, 30.0, 40.0])
o_parts, lse_parts = [], []
for half in (slice(0, 2), slice(2, 4)):
    m = scores[half].max()
    p = (scores[half] - m).exp()
    o_parts.append((p @ values[half] / p.sum()).item())
    lse_parts.append((m + p.sum().log()).item())
    print(f"m {m:.0f}  l {p.sum():.3f}  o {o_parts[-1]:.2f}  lse {lse_parts[-1]:.3f}")
factors = (torch.tensor(lse_parts) - max(lse_parts)).exp()
merged = (factors @ torch.tensor(o_parts) / factors.sum()).item()
print("factors", [round(f, 3) for f in factors.tolist()], " merged", round(merged, 2))
print("one pass", round(online_softmax(scores, values[:, None]).item(), 2))

# %% [markdown]
# ## merge_states
#
# The same halves, given to the combine kernel. Shapes: o [S, B, Hq, D], lse [S, B, Hq].

# %%
o, lse = merge_states(torch.tensor(o_parts).view(2, 1, 1, 1), torch.tensor(lse_parts).view(2, 1, 1))
print(f"o {o.item():.2f}  lse {lse.item():.3f}")
assert abs(lse.item() - scores.logsumexp(0).item()) < 1e-6

# %% [markdown]
# ## o alone is not enough
#
# Two splits, lse 0 and 10. With o = [1, 1] in both, any weights give [1, 1], and nobody sees a mistake.
# With [1, 0] and [0, 1] the weights show. A plain mean would give [0.5, 0.5].

# %%
lse = torch.tensor([0.0, 10.0]).view(2, 1, 1)
for rows in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]):
    o, _ = merge_states(torch.tensor(rows).view(2, 1, 1, 2), lse)
    print(rows, "->", [f"{x:.5f}" for x in o.flatten().tolist()])

# %% [markdown]
# ## Order, grouping, identity
#
# Order and grouping change nothing but rounding. (0, -inf) is the identity: three splits and an empty one
# give what three give. The kernel itself pads 3 to 4 in this way, so not a bit differs.

# %%
torch.manual_seed(1)
o, lse = torch.randn(4, 1, 2, 16), torch.randn(4, 1, 2) * 3
whole, _ = merge_states(o, lse)
turned, _ = merge_states(o.flip(0), lse.flip(0))
pairs = [merge_states(o[i : i + 2], lse[i : i + 2]) for i in (0, 2)]
tree, _ = merge_states(*(torch.stack(x) for x in zip(*pairs, strict=True)))
print("order   ", torch.allclose(whole, turned, atol=1e-6))
print("grouping", torch.allclose(whole, tree, atol=1e-6))
three = merge_states(o[:3], lse[:3])
o[3], lse[3] = 0.0, -float("inf")
with_empty = merge_states(o, lse)
print("identity, bit for bit:", all(map(torch.equal, three, with_empty)))

# %% [markdown]
# ## Large scores
#
# Without subtracting the maximum `exp(1e4)` is inf, and the merge gives NaN. The kernel merges by a step
# of online softmax, so the result stays right.

# %%
lse = torch.tensor([1e4, 1e4 - 1]).view(2, 1, 1)
o = torch.tensor([[1.0], [0.0]]).view(2, 1, 1, 1)
weights = lse.exp().flatten()
print("without the maximum:", (weights / weights.sum()).tolist())
print("merge_states:", round(merge_states(o, lse)[0].item(), 3))

# %% [markdown]
# ## The whole of split_kv_decode
#
# ctx = 37 and 1 to 16 splits, the surplus ones empty. All agree with the reference. With one split there
# is nothing to merge: one grid, and the kernel is L2's.

# %%
args = sequence(37)
truth = paged_attention_reference(args[0].double(), *args[1:])
for num_splits in (1, 2, 3, 4, 16):
    with trace() as t:
        o = split_kv_decode(*args, num_splits=num_splits)
    grids = [launch.grid for launch in t.launches]
    print(f"{num_splits:2} splits, grids {grids}, error below 1e-6: {(o - truth).abs().max().item() < 1e-6}")
assert torch.allclose(o, paged_decode(*args), atol=1e-6)

# %% [markdown]
# ## How many splits
#
# An SM runs 4 programs side by side. Where there are too few, `choose_num_splits` cuts until there are
# enough, at least a page a split. Where so many are there that they queue, it takes a split for every 1024
# tokens, 16 at most, to keep them short. This is what it takes for the 132 SMs of an H200 and Hkv = 8; the
# programs of the last two rows queue.

# %%
for batch_size, ctx in ((1, 32768), (8, 4096), (64, 1024), (1, 100), (1, 0), (128, 2048), (128, 32768)):
    num_splits = choose_num_splits(batch_size, 8, ctx, PAGE, 132)
    print(f"{batch_size:3} x {ctx:5}: {num_splits:2} splits, {batch_size * 8 * num_splits:5} programs")

# %% [markdown]
# ## Things to try
#
# - Use `num_pages // num_splits` in `ranges`. Which pages does nobody read?
# - In the merge by hand, drop lse and take the mean of both o. How far off is it?
# - Round the o parts to fp16 before merging, and compare with fp32.
