# ---
# jupyter:
#   description: >-
#     从一个 token 到 Q、K、V，一条公式一条公式地走：投影、head、RoPE、每个 token 的字节、MLA 的两种读法、
#     作为特例的 GQA，以及用缓存解码的小模型。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 从一个 token 到 Q、K、V
#
# 在克隆下来的仓库里运行，不需要 GPU：
#
# ```
# python -m venv .venv
# .venv/bin/pip install torch triton jupyterlab
# .venv/bin/jupyter lab docs/zh/notebooks
# ```
#
# 全是 float64 的 PyTorch，所以“相等”就是只差舍入。
#
# 下一格从当前目录向上找到仓库根目录，所以 notebook 要放在仓库里面。

# %%
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
sys.path.insert(
    0, str(next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "kernels/reference.py").is_file()))
)

import torch

from kernels.l0_mla import latent_attention, latent_spec, latent_weights_of_grouped, selection
from kernels.l0_shapes import (
    attend,
    grouped_attention,
    grouped_spec,
    kv_head_of,
    project,
    project_by_loop,
    rotate,
    split_heads,
)
from kernels.l0_small_model import decode_step, prefill, random_model
from kernels.l1_paged_cache import PagedKVCache

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def same(a, b):
    """Equal up to rounding."""
    return bool((a - b).abs().max() < 1e-12)


# %% [markdown]
# ## 一个 token；batch 就是循环
#
# 最小的单位是一个向量 x [Dm] 乘一个矩阵。batch 形式对每个 b 和 t 用同一个矩阵。

# %%
x, w_q = torch.randn(2, 3, 8), torch.randn(8, 12)
print("x", list(x.shape), "W_Q", list(w_q.shape), "-> q", list(project(x, w_q).shape))
print("loop = matmul:", same(project_by_loop(x, w_q), project(x, w_q)))

# %% [markdown]
# ## head 只是换个看法
#
# 扁平向量换一个形状，元素不动。

# %%
flat = torch.arange(12)
print(split_heads(flat, 4).tolist())
print("query head -> KV head:", [kv_head_of(h, 2) for h in range(4)])

# %% [markdown]
# ## 课文里的例子
#
# Dm 3，4 个 query head，2 个 KV head，d 2，一个位于位置 0 的 token。

# %%
token = torch.tensor([1.0, 2.0, -1.0])
w_q = torch.tensor([[1, 0, 2, 1, 0, 1, 2, 0], [0, 1, 0, 1, 1, 0, 0, 2], [1, 0, 1, 0, 0, 1, 0, 1]]).double()
w_k = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]).double()
q, k = split_heads(project(token, w_q), 4), split_heads(project(token, w_k), 2)
print("q heads", q.int().tolist())
print("k heads", k.int().tolist())
print("scores ", [int(q[h] @ k[kv_head_of(h, 2)]) for h in range(4)])

# %% [markdown]
# ## RoPE：分数只看距离
#
# 同样的 q 和 k，相距 3，一次在开头，一次在 1000 个 token 之后。

# %%
q, k = torch.randn(1, 1, 8), torch.randn(1, 1, 8)
for i, j in ((5, 2), (1005, 1002), (5, 1)):
    score = (rotate(q, torch.tensor([i])) * rotate(k, torch.tensor([j]))).sum().item()
    print(f"q at {i:4}, k at {j:4}: {score:.6f}")

# %% [markdown]
# ## 一个 token 留下什么
#
# 一层的元素数和字节数，fp16。第二行是 Llama 3 8B 的大小，最后一行是 DeepSeek-V3 的。

# %%
for spec in (
    grouped_spec(32, 32, 128),
    grouped_spec(32, 8, 128),
    grouped_spec(32, 1, 128),
    latent_spec(128, 512, 64, 128, 128),  # Hq, d_c, d_rope, d_nope, d_v
):
    print(f"{spec.name}  {spec.elements_per_token:5} elements  {spec.bytes_per_token:6} bytes")

# %% [markdown]
# ## MLA 的两种读法
#
# `expand` 还原所有 head 的 K 和 V。`fold` 把 W_UK 用在 query 上，`view` 原样交出 latent，`unfold` 把 W_UV
# 用在结果上。


# %%
def random_weights(attention):
    return {name: torch.randn(*shape) / max(shape[0], 1) ** 0.5 for name, shape in attention.shapes.items()}


mla = latent_attention(24, 4, 7, 6, 5, 3, torch.float64)  # Dm, Hq, d_c, d_rope, d_nope, d_v
weights, x, positions = random_weights(mla), torch.randn(9, 24), torch.arange(9)
spec = mla.spec
q, stored = mla.project(x, positions, weights)
print("stored", {name: list(t.shape) for name, t in stored.items()})

k, v = spec.expand(stored, weights)
rebuilt = attend(q, k, v, spec.sm_scale)
print("rebuilt: K", list(k.shape), "V", list(v.shape))

k, v = spec.view(stored, weights)
absorbed = spec.unfold(attend(spec.fold(q, weights), k, v, spec.sm_scale), weights)
print("viewed:  K", list(k.shape), "V", list(v.shape))
print("same result:", same(rebuilt, absorbed))

# %% [markdown]
# ## GQA 是 MLA 的特例
#
# latent 是 [K; V]，W_UK 和 W_UV 只有 0 和 1。下面是 4 个 query head、2 个 KV head、每个 2 维时的 W_UK。

# %%
print(selection(4, 2, 2, first=0).int())

# %% [markdown]
# 没有 RoPE 时（位置全是 0）两层结果相同。有 RoPE 时不同：按位置旋转，不是 x W_DKV 之后的固定矩阵。

# %%
gqa = grouped_attention(24, 6, 2, 4, torch.float64)
as_mla = latent_attention(24, 6, 2 * 2 * 4, 0, 4, 4, torch.float64)
weights = random_weights(gqa)
mla_weights = latent_weights_of_grouped(weights, 6, 2, 4)


def run(attention, w, positions):
    q, stored = attention.project(x, positions, w)
    return attend(q, *attention.spec.expand(stored, w), attention.spec.sm_scale)


for name, where in (("no RoPE", torch.zeros(9)), ("RoPE   ", torch.arange(9))):
    print(name, "same result:", same(run(gqa, weights, where), run(as_mla, mla_weights, where)))

# %% [markdown]
# ## 用缓存解码的模型
#
# 先 prefill 5 个 token，再一个一个解码 8 个。每一步的 logits 都等于完整 forward 的。四种结构用的是同一份
# 模型代码。

# %%
for attention in (
    grouped_attention(24, 4, 4, 6, torch.float64),
    grouped_attention(24, 6, 2, 4, torch.float64),
    grouped_attention(24, 5, 1, 8, torch.float64),
    mla,
):
    model = random_model(attention)
    cache = PagedKVCache(attention.spec, num_pages=8, page_size=4, num_layers=2)
    seq, text = cache.allocate(), torch.tensor([3, 1, 4, 1, 5])
    logits, equal = prefill(model, cache, seq, text)[-1], []
    for _ in range(8):
        text = torch.cat([text, logits.argmax()[None]])
        logits = decode_step(model, cache, [seq], text[-1:])[0]
        equal.append(same(logits, model.forward(text)[-1]))
    print(attention.spec.name, text[5:].tolist(), "equal at every step:", all(equal))

# %% [markdown]
# ## 故意写错
#
# 把扁平向量看成 [d, H] 再转置：形状对，head 不对。

# %%
flat = torch.tensor([0, 2, 1, 3, 2, 0, 2, 3])
print("right", split_heads(flat, 4).tolist())
print("wrong", flat.view(2, 4).transpose(0, 1).tolist())

# %% [markdown]
# ## 试着改
#
# - 给 `latent_spec` 换别的大小。d_c 取多少时，MLA 存的和 8 个 128 维 head 的 GQA 一样多？
# - 把旋转过的 K 和 V 当作 `as_mla` 的 latent 存下，再用旋转过的 q 去读。又变回 GQA 了吗？
# - 在 `decode_step` 里先 append 再读长度。logits 差多少？选出的 token 有几次不一样？
