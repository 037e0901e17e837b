# ---
# jupyter:
#   description: >-
#     均匀的切法、任意的页大小、exp2、长短不一的 batch 的计划，以及 e4m3 逐字节。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L7：切分、计划与 e4m3，一步一步
#
# 在克隆下来的仓库里运行，不需要 GPU：
#
# ```
# python -m venv .venv
# .venv/bin/pip install torch triton jupyterlab
# .venv/bin/jupyter lab docs/zh/notebooks
# ```
#
# kernel 由 Triton 的解释器在 CPU 上执行。
#
# 下一格从当前目录向上找到仓库根目录，所以 notebook 要放在仓库里面。从上到下逐格运行，再改数字重跑。

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
# ## 均匀的切法
#
# 第 s 份是单位 `[n * s // S, n * (s + 1) // S)`。和 L3 的 ⌈n / S⌉ 比：最长的一份一样长，但没有空的。


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
# ## kernel 真的这样切吗
#
# 每个 program 读了哪些 token 的 K，由 trace 数出来。


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
# ## 任意的页大小
#
# 页 1、24、64，都和参考实现一致。

# %%
for page_size in (1, 16, 24, 64):
    args = batch([100, 37], page_size)
    truth = paged_attention_reference(args[0].double(), *args[1:])
    errors = [(fast_decode(*args, plan=DecodePlan(n)) - truth).abs().max().item() for n in (1, 3)]
    print(f"page {page_size:2}: errors below 1e-6: {[e < 1e-6 for e in errors]}")

# %% [markdown]
# ## exp2
#
# log2(e) 并进 scale，2 的幂就是 e 的幂。

# %%
scale = 128**-0.5
folded = scale * math.log2(math.e)
print(f"scale {scale:.5f}, folded {folded:.5f}")
print(f"e^ {math.exp((8 - 24) * scale):.4f}  2^ {2 ** ((8 - 24) * folded):.4f}")

# %% [markdown]
# ## 三个序列的计划
#
# 页面上的例子：想要 12 个 program，Hkv = 2。每行是（序列，第几份，一共几份，0）。

# %%
lens = torch.tensor([40, 1000, 300], dtype=torch.int32)
plan = make_plan(lens, 2, programs_per_sm=12 / num_sms(lens.device))
print("first row and splits of each sequence:", plan.slots.tolist())
for row in plan.work.tolist():
    print(row)

# %% [markdown]
# ## 计划不影响结果
#
# 按旧长度做的计划，配新长度：只是不均匀。

# %%
args = batch([40, 300, 100], num_kv_heads=2)
truth = paged_attention_reference(args[0].double(), *args[1:])
for lens in ([40, 300, 100], [1, 1, 1], [300, 0, 0]):
    plan = make_plan(torch.tensor(lens, dtype=torch.int32), 2)
    print(lens, (fast_decode(*args, plan=plan) - truth).abs().max().item() < 1e-6)

# %% [markdown]
# ## e4m3，逐字节
#
# 两个相邻的 e4m3 看作一个 int16。低字节是偶数维。

# %%
codes = torch.tensor([0x38, 0x45, 0x40, 0xB8], dtype=torch.uint8)
values = codes.view(torch.float8_e4m3fn).half()
pairs = codes.view(torch.int16)
print("values", values.tolist(), " pairs", [f"0x{p & 0xFFFF:04X}" for p in pairs.tolist()])
print("fp16  ", [f"0x{h & 0xFFFF:04X}" for h in values.view(torch.int16).tolist()])
print("even dims", values[0::2].tolist(), " odd dims", values[1::2].tolist())

# %% [markdown]
# ## 量化的误差，和 kernel 的误差
#
# 前者来自 3 位尾数。后者是和反量化之后的 cache 相比。

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
# ## 试着改
#
# - 把 `even` 换成按 token 均分，看哪些份从单位的中间开始。
# - 给 `make_plan` 不同的 `programs_per_sm`，看份数怎样变。
# - k_scale 取得太小，K 超过 448，会怎样？
