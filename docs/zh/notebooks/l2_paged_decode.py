# ---
# jupyter:
#   description: >-
#     亲手搭一个分页 KV cache：block table、参考实现、kernel、mask 的实验，以及 kernel 到底读了什么。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L2：分页 decode，一步一步
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

from kernels import naive_paged_decode, paged_attention_reference, paged_decode
from scripts.tracer import trace

# %% [markdown]
# ## 一个小 cache
#
# 一条序列，ctx = 37，PAGE = 16，8 个 query head，2 个 KV head，D = 16。
#
# cache 有 12 页。序列的三页放在物理页 9、3、7，block table 后面两项是 -1。
#
# 整个 cache 先填 NaN。谁读了不该读的地方，结果里就会有 NaN。

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
# ## 按 block table 写入
#
# token t 在逻辑页 `t // PAGE` 的第 `t % PAGE` 个 slot。逻辑页经过表变成物理页。

# %%
for t in range(ctx):
    page_id = block_table[0, t // PAGE].item()
    k_cache[page_id, t % PAGE] = keys[t]
    v_cache[page_id, t % PAGE] = values[t]
    if t in (0, 15, 16, 36):
        print(f"token {t:2}: logical page {t // PAGE}, physical page {page_id}, slot {t % PAGE}")

# %% [markdown]
# ## 一个 head，按定义算
#
# query head 5 属于 KV head `5 // G = 1`。把三页取回来、截到 37 个 token，再做 softmax。

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
# ## kernel
#
# 两个 kernel 都给出同样的结果。cache 里的 NaN 没有漏进来。

# %%
args = (q, k_cache, v_cache, block_table, seq_lens)
for decode in (naive_paged_decode, paged_decode):
    error = (decode(*args) - reference).abs().max().item()
    print(f"{decode.__name__:18} error below 1e-6: {error < 1e-6}")

# %% [markdown]
# ## kernel 读了什么
#
# `trace()` 记下解释器里的每一次读写。表只读了前三项，-1 从没被碰过。最后一页只读 5 个 slot。

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
# ## 读了几遍
#
# naive 的每个 program 管一个 query head，同一个 KV head 被读 G = 4 遍。打包之后只读一遍。

# %%
for decode in (naive_paged_decode, paged_decode):
    with trace() as t:
        decode(*args)
    counts = t.read_counts("k_ptr")
    print(f"{decode.__name__:18} grid {t.launches[0].grid[:2]}, reads of a used K element: {counts.max()}")

# %% [markdown]
# ## 写了哪些行
#
# KV head 1 的 program 用 16 行的 tile，真正的只有 4 行：query head 4 到 7。只有这 4 行写回。

# %%
with trace() as t:
    paged_decode(*args)
mine = [a for a in t.writes("o_ptr") if a.program == (0, 1, 0)]
print("heads written by program (0, 1, 0):", sorted({int(h) for a in mine for h in a.coordinates[1]}))
t.assert_written_once("o_ptr")
t.assert_in_bounds()

# %% [markdown]
# ## 没用到的 slot 里放什么都一样
#
# 把 NaN 换成 60000，结果每一位都不变。这就是 mask 要保证的事。

# %%
loud_k, loud_v = k_cache.nan_to_num(60000.0), v_cache.nan_to_num(60000.0)
same = torch.equal(paged_decode(*args), paged_decode(q, loud_k, loud_v, block_table, seq_lens))
print("bit for bit the same:", same)

# %% [markdown]
# ## 少一个 mask
#
# 用 PyTorch 演示两种错。只 mask 分数：权重是 0，但 0 × NaN 还是 NaN。
#
# 哪个都不 mask：60000 那样的分数把真正的 token 全盖住了。


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
# ## head 的对应关系
#
# 让 V 等于自己的 KV head 编号。输出就直接说出每个 query head 读了谁：连续分组，前 4 个是 0，后 4 个是 1。

# %%
v_ids = torch.arange(Hkv).float().view(1, 1, Hkv, 1).repeat(12, PAGE, 1, D)
o = paged_decode(q, k_cache, v_ids, block_table, seq_lens)
print([round(x) for x in o[0, :, 0].tolist()])

# %% [markdown]
# ## 拒绝
#
# 解释器里，块号和长度在启动之前就检查。错误信息说出参数、现在的值和想要的值。

# %%
for ctx_given in (49, 81):
    try:
        paged_decode(q, k_cache, v_cache, block_table, torch.tensor([ctx_given], dtype=torch.int32))
    except ValueError as error:
        print(error)

# %% [markdown]
# ## 试着改
#
# - 把 `Hq` 改成 16（G = 8）。naive 的计数变成多少？tile 还是 16 行吗？
# - 把 ctx 改成 32 和 33。第三项什么时候开始被读？
# - 把 `seq_lens` 改成 0。o 和 lse 是什么？
