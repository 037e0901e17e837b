# ---
# jupyter:
#   description: >-
#     亲手切分和合并：每个 split 读哪些页，lse 为什么不能丢，空 split，merge_states，以及选几个 split。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L3：split-KV 与合并，一步一步
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
# ## 每个 split 的页
#
# `pages_per_split = ceil(num_pages / num_splits)`。
#
# split s 从 `s * pages_per_split` 开始，最多到 `num_pages` 为止。ctx = 37 时第四个 split 是空的。


# %%
def ranges(ctx, num_splits):
    num_pages = -(-ctx // PAGE)
    per_split = -(-num_pages // num_splits)
    return [(s * per_split, min((s + 1) * per_split, num_pages)) for s in range(num_splits)]


for ctx in (1000, 37, 100):
    shown = [f"{begin}-{end - 1}" if begin < end else "empty" for begin, end in ranges(ctx, 4)]
    print(f"ctx {ctx:4}, {-(-ctx // PAGE):2} pages:", ", ".join(shown))

# %% [markdown]
# ## kernel 真的读了这些页吗
#
# 准备一条序列，物理页打乱，然后 trace split kernel。每个 program 读的表项要和手算的一样。


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
# ## 手算合并
#
# [1, 2, 3, 0] 切成两半。每一半各自归一化，留下 o 和 lse。合并就是以 lse 为分数再做一次 softmax。

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
# 同样的两半交给 combine kernel。形状是 o [S, B, Hq, D]，lse [S, B, Hq]。

# %%
o, lse = merge_states(torch.tensor(o_parts).view(2, 1, 1, 1), torch.tensor(lse_parts).view(2, 1, 1))
print(f"o {o.item():.2f}  lse {lse.item():.3f}")
assert abs(lse.item() - scores.logsumexp(0).item()) < 1e-6

# %% [markdown]
# ## 只有 o 不够
#
# 两个 split，lse 是 0 和 10。o 都是 [1, 1] 时，怎么加权都是 [1, 1]，看不出对错。
#
# o 换成 [1, 0] 和 [0, 1]，权重就露出来了。平均会得到 [0.5, 0.5]。

# %%
lse = torch.tensor([0.0, 10.0]).view(2, 1, 1)
for rows in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]):
    o, _ = merge_states(torch.tensor(rows).view(2, 1, 1, 2), lse)
    print(rows, "->", [f"{x:.5f}" for x in o.flatten().tolist()])

# %% [markdown]
# ## 顺序、分组、单位元
#
# 合并的顺序和分组只影响舍入。(0, -inf) 是单位元：三个 split 加一个空的，和三个 split 结果一样。
#
# kernel 自己也这样把 3 补成 4，所以一位都不差。

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
# ## 分数很大时
#
# 不减最大值，`exp(1e4)` 是 inf，合并得到 NaN。kernel 里合并也是一步 online softmax，结果仍然对。

# %%
lse = torch.tensor([1e4, 1e4 - 1]).view(2, 1, 1)
o = torch.tensor([[1.0], [0.0]]).view(2, 1, 1, 1)
weights = lse.exp().flatten()
print("without the maximum:", (weights / weights.sum()).tolist())
print("merge_states:", round(merge_states(o, lse)[0].item(), 3))

# %% [markdown]
# ## 整个 split_kv_decode
#
# ctx = 37，1 到 16 个 split，多出来的都是空的。结果都和参考实现一致。
#
# 只有 1 个 split 时没有东西可合并：只有一个 grid，是 L2 的 kernel。

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
# ## 选几个 split
#
# 每个 SM 能并排跑 4 个 program。program 不够时，`choose_num_splits` 切到够为止，但每个 split 至少一页。
#
# program 已经多得要排队时，它按 1024 个 token 一份来切，至多 16 份，让每个 program 变短。
#
# 下面是 H200 的 132 个 SM、Hkv = 8 时的选择。最后两行的 program 要排队。

# %%
for batch_size, ctx in ((1, 32768), (8, 4096), (64, 1024), (1, 100), (1, 0), (128, 2048), (128, 32768)):
    num_splits = choose_num_splits(batch_size, 8, ctx, PAGE, 132)
    print(f"{batch_size:3} x {ctx:5}: {num_splits:2} splits, {batch_size * 8 * num_splits:5} programs")

# %% [markdown]
# ## 试着改
#
# - 把 `ranges` 改成 `num_pages // num_splits`，看哪些页没人读。
# - 在手算合并那一格里去掉一半的 lse，直接取 o 的平均。差多少？
# - 用 fp16 存 o_parts 再合并，和 fp32 比。
