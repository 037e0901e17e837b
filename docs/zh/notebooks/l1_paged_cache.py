# ---
# jupyter:
#   description: >-
#     亲手操作页表：slot、fork、写时拷贝、页不够；再看写的 kernel 到底写了哪里，两种布局各一遍。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # L1：分页 KV cache，一步一步
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

from kernels import OutOfPagesError, PagedKVCache, paged_attention_reference, paged_decode, write_kv
from kernels.l0_shapes import grouped_spec
from kernels.l1_page_table import PageTable
from scripts.memory_policies import all_policies, make_requests, simulate
from scripts.tracer import trace

# %% [markdown]
# ## 只有页表
#
# 重演本课第一张图：每页 32 个 token，A 长到 68 个，B 在旁边一起长，之前还有过第三个序列。
#
# 谁在什么时候要页，决定它拿到哪一页。

# %%
table = PageTable(num_pages=10, page_size=32)
z = table.allocate(50)
a, b = table.allocate(30), table.allocate(60)
while table.num_tokens(a) < 68:
    table.append([a, b])
table.free(z)
print("A:", table.pages(a), "B:", table.pages(b), "free pages:", table.num_free)

# %% [markdown]
# ## 从 token 到 slot
#
# `t // 32` 是逻辑页，那一行把它换成物理页，`t % 32` 是页内位置。

# %%
for t in (0, 31, 32, 40, 67):
    page = table.pages(a)[t // 32]
    slot = table.slot(a, t)
    print(f"token {t:2}: logical page {t // 32}, place {t % 32:2}, physical page {page}, slot {slot}")
print("empty places of A:", len(table.pages(a)) * 32 - table.num_tokens(a))

# %% [markdown]
# ## 先 fork，再写
#
# fork 不拿页。之后的第一个 token 要拷写到一半的那一页，只拷里面的四个 slot，别的都不动。

# %%
c = table.fork(a)
print("after the fork:   A", table.pages(a), "C", table.pages(c))
print("references:", {page: table.references(page) for page in table.pages(a)})
growth = table.append([c])
print("after C's token:  A", table.pages(a), "C", table.pages(c))
for copy in growth.copies:
    print(f"copy {copy.num_slots} slots of page {copy.source} to page {copy.target}; C's slot:", growth.slots)

# %% [markdown]
# ## 页不够了
#
# 三个序列，各要再来 40 个 token。页不够，错误里写明要几页、有几页，什么都没有变。

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
# ## 写的 kernel
#
# K 和 V 是同一个 fused 投影的切片，所以行与行并不相连。第二个 token 没有 slot。
#
# cache 先填 NaN：写了哪里，一看便知。

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
# ## 按什么次序
#
# 两行都读完才开始写，而且两次读都不等 slot。

# %%
for access in t.accesses:
    if access.program == (0, 0, 0):
        print(f"{access.op:5} {access.name}")

# %% [markdown]
# ## 换一种布局
#
# kernel 只认步长。在 HND 里，同样的 slot 在别的地方。

# %%
hnd = torch.full((10, 2, 32, 16), float("nan"))
write_kv(k, None, hnd, None, slots, kv_layout="HND")
print("NHD strides (page, place, head):", k_cache.stride()[:3])
print("HND strides (page, head, place):", hnd.stride()[:3])
print("the same tokens:", torch.equal(hnd.transpose(1, 2).nan_to_num(9), k_cache.nan_to_num(9)))

# %% [markdown]
# ## cache，以及上面的 L2
#
# 一步一步写进 20 个 token，fork，给子序列一个 token。然后 L2 的 kernel 沿着表把两个都读出来。

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
# ## 三种策略，一条轨迹
#
# 本课的图就是用这些画的。

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
# ## 可以试试
#
# - 把第一格的页改成 16，再改成 1。A 空几个位置？
# - 等 A 有 64 个 token 时再 fork。要拷什么？
# - fork 三次，四个一起 append。拷几次？
# - 给两个 token 同一个 slot。`write_kv` 怎么说？
# - 把 `scripts/memory_policies.py` 里最长的回答改成 256。哪种策略得益最多？
