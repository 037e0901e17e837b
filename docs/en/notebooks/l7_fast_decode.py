# ---
# jupyter:
#   description: >-
#     The even cut, pages of any size, exp2, a plan for a ragged batch, and e4m3 byte by byte.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L7: cuts, plans and e4m3, step by step
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
import math
import os
import sys
from itertools import pairwise
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
sys.path.insert(
    0, str(next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "kernels/reference.py").is_file()))
)

import torch

from kernels import DecodePlan, fast_decode, make_plan, paged_attention_reference
from kernels.launch import num_sms
from scripts.tracer import trace

# %% [markdown]
# ## The even cut
#
# Split s is the units `[n * s // S, n * (s + 1) // S)`. Against the ⌈n / S⌉ of L3 the longest split is as
# long, and none is empty.


# %%
def even(units, num_splits):
    bounds = [units * s // num_splits for s in range(num_splits + 1)]
    return [end - begin for begin, end in pairwise(bounds)]


def l3(units, num_splits):
    per_split = -(-units // num_splits)
    return [max(0, min((s + 1) * per_split, units) - s * per_split) for s in range(num_splits)]


for units, num_splits in ((63, 4), (17, 16)):
    print(f"{units} units in {num_splits}: even {even(units, num_splits)}")
    print(f"{'':>{len(f'{units} units in {num_splits}')}}    L3 {l3(units, num_splits)}")

# %% [markdown]
# ## Does the kernel cut like this?
#
# The trace tells the K of which tokens each program has read.


# %%
def batch(lens, page_size=16, num_kv_heads=1, head_dim=16, group_size=4):
    """q, both caches, table and lengths of random sequences; all unused slots are NaN."""
    torch.manual_seed(0)
    columns = max(1, -(-max(lens) // page_size))
    caches = torch.full((2, len(lens) * columns, page_size, num_kv_heads, head_dim), float("nan"))
    table = torch.randperm(len(lens) * columns).view(len(lens), columns).int()
    for b, length in enumerate(lens):
        for t in range(length):
            place = table[b, t // page_size], t % page_size
            caches[:, place[0], place[1]] = torch.randn(2, num_kv_heads, head_dim)
    q = torch.randn(len(lens), num_kv_heads * group_size, head_dim)
    return q, *caches, table, torch.tensor(lens, dtype=torch.int32)


args = batch([1000])
with trace() as t:
    fast_decode(*args, plan=DecodePlan(4))
tokens = [0] * 4
for access in t.reads("k_ptr"):
    tokens[access.program[1]] += len(set(zip(*(c.tolist() for c in access.coordinates[:2]), strict=True)))
print("tokens read by each split:", tokens)
assert tokens == [240, 256, 256, 248]

# %% [markdown]
# ## Pages of any size
#
# Pages of 1, 24 and 64 tokens: all as the reference has it.

# %%
for page_size in (1, 16, 24, 64):
    args = batch([100, 37], page_size)
    truth = paged_attention_reference(args[0].double(), *args[1:])
    errors = [(fast_decode(*args, plan=DecodePlan(n)) - truth).abs().max().item() for n in (1, 3)]
    print(f"page {page_size:2}: errors below 1e-6: {[e < 1e-6 for e in errors]}")

# %% [markdown]
# ## exp2
#
# With log2(e) in the scale, a power of 2 is a power of e.

# %%
scale = 128**-0.5
folded = scale * math.log2(math.e)
print(f"scale {scale:.5f}, folded {folded:.5f}")
print(f"e^ {math.exp((8 - 24) * scale):.4f}  2^ {2 ** ((8 - 24) * folded):.4f}")

# %% [markdown]
# ## A plan for three sequences
#
# The example of the page: 12 programs wanted, Hkv = 2. A row is (sequence, split, of how many, 0).

# %%
lens = torch.tensor([40, 1000, 300], dtype=torch.int32)
plan = make_plan(lens, 2, programs_per_sm=12 / num_sms(lens.device))
print("first row and splits of each sequence:", plan.slots.tolist())
for row in plan.work.tolist():
    print(row)

# %% [markdown]
# ## A plan changes no result
#
# A plan for old lengths with new ones is uneven, and nothing worse.

# %%
args = batch([40, 300, 100], num_kv_heads=2)
truth = paged_attention_reference(args[0].double(), *args[1:])
for lens in ([40, 300, 100], [1, 1, 1], [300, 0, 0]):
    plan = make_plan(torch.tensor(lens, dtype=torch.int32), 2)
    print(lens, (fast_decode(*args, plan=plan) - truth).abs().max().item() < 1e-6)

# %% [markdown]
# ## e4m3 byte by byte
#
# Two neighbouring e4m3 are seen as one int16. The low byte is the even dim.

# %%
codes = torch.tensor([0x38, 0x45, 0x40, 0xB8], dtype=torch.uint8)
values = codes.view(torch.float8_e4m3fn).half()
pairs = codes.view(torch.int16)
print("values", values.tolist(), " pairs", [f"0x{p & 0xFFFF:04X}" for p in pairs.tolist()])
print("fp16  ", [f"0x{h & 0xFFFF:04X}" for h in values.view(torch.int16).tolist()])
print("even dims", values[0::2].tolist(), " odd dims", values[1::2].tolist())

# %% [markdown]
# ## The error of e4m3, and that of the kernel
#
# The first comes from 3 bits of mantissa. The second is against the cache as it is after dequantising.

# %%
q, k, v, table, lens = batch([100, 37], head_dim=64)
q, k, v = q.half(), k.nan_to_num(), v.nan_to_num()
k_scale, v_scale = 0.5, 0.25
k8, v8 = (k / k_scale).to(torch.float8_e4m3fn), (v / v_scale).to(torch.float8_e4m3fn)
o = fast_decode(q, k8, v8, table, lens, k_scale=k_scale, v_scale=v_scale, plan=DecodePlan(2))
exact = paged_attention_reference(q.double(), k.double(), v.double(), table, lens)
dequantised = paged_attention_reference(q.double(), k8.double() * k_scale, v8.double() * v_scale, table, lens)
for name, truth in (("fp32 cache", exact), ("dequantised", dequantised)):
    print(f"error against the {name}: {(o - truth).abs().max().item():.0e}")

# %% [markdown]
# ## Things to change
#
# - Deal out tokens in `even`, and see which splits begin inside a unit.
# - Give `make_plan` another `programs_per_sm`, and see the splits change.
# - Take so small a k_scale that K passes 448. What happens?
