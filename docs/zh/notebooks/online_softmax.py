# ---
# jupyter:
#   description: >-
#     一步一步做 online softmax：状态 (m, l, acc)、换基准、块的大小、全是 -inf 的行，以及同样的 kernel。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Online softmax：一步一步
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

from kernels import online_softmax

torch.set_printoptions(precision=3, sci_mode=False)

# %% [markdown]
# ## 要算什么
#
# 四个分数，四个 value。softmax 给每个分数一个权重，结果是 value 的加权平均。
#
# 用 float64 按定义算一遍，后面都和它比。

# %%
scores = [1.0, 2.0, 3.0, 0.0]
values = [10.0, 20.0, 30.0, 40.0]
weights = torch.softmax(torch.tensor(scores, dtype=torch.float64), 0)
expected = (weights @ torch.tensor(values, dtype=torch.float64)).item()
print("weights", [round(w, 3) for w in weights.tolist()])
print("o", round(expected, 2))

# %% [markdown]
# ## 为什么要减最大值
#
# fp32 里 `exp(89)` 已经是 inf。分子分母都是 inf，相除得 NaN。减去最大值，指数就不大于 0。

# %%
large = torch.tensor([100.0, 101.0])
print("plain  ", (large.exp() / large.exp().sum()).tolist())
shifted = (large - large.max()).exp()
print("shifted", [round(w, 3) for w in (shifted / shifted.sum()).tolist()])

# %% [markdown]
# ## 一次读一个分数
#
# 状态有三样：到目前为止的最大值 `m`，权重之和 `l`，加权和 `acc`。
#
# 新的最大值出现时，旧的 `l` 和 `acc` 都乘 `alpha = exp(旧 m - 新 m)`。
#
# 第三步 `m` 从 2 变成 3，`alpha` 是 0.368。第四步的分数是 0，`m` 不变，`alpha` 是 1。


# %%
def step(state, block_scores, block_values):
    """Take one block into (m, l, acc); also returns alpha."""
    m, l_sum, acc = state
    s, v = torch.tensor(block_scores), torch.tensor(block_values)
    m_new = max(m, s.max().item())
    alpha = torch.tensor(m - m_new).exp().item()
    p = (s - m_new).exp()
    return (m_new, l_sum * alpha + p.sum().item(), acc * alpha + (p @ v).item()), alpha


def walk(block_size):
    """The state after the whole row, printed after each block."""
    state = (-float("inf"), 0.0, 0.0)
    for i in range(0, len(scores), block_size):
        state, alpha = step(state, scores[i : i + block_size], values[i : i + block_size])
        m, l_sum, acc = state
        print(f"m {m:.0f}  alpha {alpha:.3f}  l {l_sum:.3f}  acc {acc:.3f}  acc / l {acc / l_sum:.2f}")
    return state


m, l_sum, acc = walk(1)
assert abs(acc / l_sum - expected) < 1e-4

# %% [markdown]
# ## 块的大小不影响结果
#
# 一次读两个，状态恰好是上面第二步和第四步的状态。一次读四个，就是普通的 softmax。

# %%
for block_size in (2, 4):
    print("block_size", block_size)
    m, l_sum, acc = walk(block_size)
    assert abs(acc / l_sum - expected) < 1e-4

# %% [markdown]
# ## 同样的事，kernel 来做
#
# `online_softmax` 的 kernel 就是这个循环。
#
# `lse` 是 `m + log(l)`，也就是 `log` 下的权重总和，L3 合并两半时要用它。

# %%
o, lse = online_softmax(torch.tensor(scores), torch.tensor(values)[:, None], return_lse=True)
print(f"o {o.item():.2f}  lse {lse.item():.3f}")
assert abs(o.item() - expected) < 1e-4
assert abs(lse.item() - torch.logsumexp(torch.tensor(scores), 0).item()) < 1e-6

# %% [markdown]
# ## 一行长一点的
#
# 1000 个分数，64 列 value，最后一块不满。换 block_size，误差都在 fp32 的舍入之内。

# %%
torch.manual_seed(0)
long_scores, long_values = torch.randn(1000) * 4, torch.randn(1000, 64)
truth = torch.softmax(long_scores.double(), 0) @ long_values.double()
for block_size in (16, 64, 256):
    error = (online_softmax(long_scores, long_values, block_size=block_size) - truth).abs().max().item()
    print(f"block_size {block_size:3}  error below 1e-6: {error < 1e-6}")

# %% [markdown]
# ## 什么都没有的行
#
# 全是 `-inf` 的块会让 `m` 也是 `-inf`，而 `-inf - (-inf)` 是 NaN。
#
# kernel 用 `m_safe` 挡住它。没有分数的行给出 o = 0、lse = -inf。

# %%
minus_inf = torch.tensor(-float("inf"))
print("without m_safe:", (minus_inf - minus_inf).exp().item())
for row in (torch.full((4,), -float("inf")), torch.empty(0)):
    o, lse = online_softmax(row, torch.ones(len(row), 2), return_lse=True)
    print(len(row), "scores:", o.tolist(), lse.item())
late = torch.tensor([-float("inf"), -float("inf"), 1.0, 2.0])
o = online_softmax(late, torch.tensor([[9.0], [9.0], [10.0], [20.0]]), block_size=2)
print("-inf first, then 1 and 2:", round(o.item(), 2))

# %% [markdown]
# ## 故意写错
#
# 只给 `l` 乘 `alpha`，忘了 `acc`。结果看上去还像个平均数，但是错的。

# %%
m, l_sum, acc = -float("inf"), 0.0, 0.0
for s, v in zip(scores, values, strict=True):
    (m_new, l_new, _), alpha = step((m, l_sum, acc), [s], [v])
    p = torch.tensor(s - m_new).exp().item()
    m, l_sum, acc = m_new, l_new, acc + p * v  # should be acc * alpha + p * v
print(f"acc / l = {acc / l_sum:.2f}, expected {expected:.2f}")

# %% [markdown]
# ## 试着改
#
# - 把分数倒过来：[0, 3, 2, 1]，value 也倒过来。哪一步的 `alpha` 不是 1？结果变吗？
# - 给每个分数加 1000。`m`、`lse`、o 各变多少？
# - 上面写错的版本，在什么样的分数下碰巧是对的？
