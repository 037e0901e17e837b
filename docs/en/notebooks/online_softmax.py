# ---
# jupyter:
#   description: >-
#     Online softmax step by step: the state (m, l, acc), the change of base, block sizes, rows of -inf,
#     and the kernel that does the same.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Online softmax, step by step
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

from kernels import online_softmax

torch.set_printoptions(precision=3, sci_mode=False)

# %% [markdown]
# ## What is to be computed
#
# Four scores, four values. Softmax turns the scores into weights, and the result is the weighted mean of
# the values. Once by definition, in float64: all that follows is held to it.

# %%
scores = [1.0, 2.0, 3.0, 0.0]
values = [10.0, 20.0, 30.0, 40.0]
weights = torch.softmax(torch.tensor(scores, dtype=torch.float64), 0)
expected = (weights @ torch.tensor(values, dtype=torch.float64)).item()
print("weights", [round(w, 3) for w in weights.tolist()])
print("o", round(expected, 2))

# %% [markdown]
# ## Why the maximum is subtracted
#
# In fp32 `exp(89)` is already inf. With inf above and below the line the quotient is NaN. With the
# maximum subtracted no exponent is above 0.

# %%
large = torch.tensor([100.0, 101.0])
print("plain  ", (large.exp() / large.exp().sum()).tolist())
shifted = (large - large.max()).exp()
print("shifted", [round(w, 3) for w in (shifted / shifted.sum()).tolist()])

# %% [markdown]
# ## One score at a time
#
# The state is three things: the largest score so far, `m`; the sum of the weights, `l`; the weighted sum,
# `acc`. When a new maximum appears, the old `l` and `acc` are multiplied by `alpha = exp(old m - new m)`.
#
# In the third step `m` goes from 2 to 3 and `alpha` is 0.368. The fourth score is 0: `m` stays, and
# `alpha` is 1.


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
# ## The block size does not matter
#
# Two scores a time give the states of the second and the fourth step above. Four a time is plain softmax.

# %%
for block_size in (2, 4):
    print("block_size", block_size)
    m, l_sum, acc = walk(block_size)
    assert abs(acc / l_sum - expected) < 1e-4

# %% [markdown]
# ## The kernel does the same
#
# The kernel of `online_softmax` is this loop. `lse` is `m + log(l)`, the logarithm of the sum of all
# `exp(score)`; L3 needs it to merge two halves.

# %%
o, lse = online_softmax(torch.tensor(scores), torch.tensor(values)[:, None], return_lse=True)
print(f"o {o.item():.2f}  lse {lse.item():.3f}")
assert abs(o.item() - expected) < 1e-4
assert abs(lse.item() - torch.logsumexp(torch.tensor(scores), 0).item()) < 1e-6

# %% [markdown]
# ## A longer row
#
# 1000 scores, 64 columns, and a last block that is not full. Whatever the block size, the error is fp32
# rounding.

# %%
torch.manual_seed(0)
long_scores, long_values = torch.randn(1000) * 4, torch.randn(1000, 64)
truth = torch.softmax(long_scores.double(), 0) @ long_values.double()
for block_size in (16, 64, 256):
    error = (online_softmax(long_scores, long_values, block_size=block_size) - truth).abs().max().item()
    print(f"block_size {block_size:3}  error below 1e-6: {error < 1e-6}")

# %% [markdown]
# ## Rows with nothing in them
#
# After a block of nothing but `-inf`, `m` is `-inf` too, and `-inf - (-inf)` is NaN. The kernel's
# `m_safe` keeps that away. A row without scores gives o = 0 and lse = -inf.

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
# ## Wrong on purpose
#
# `alpha` is applied to `l` and forgotten for `acc`. The result still looks like a mean, and is wrong.

# %%
m, l_sum, acc = -float("inf"), 0.0, 0.0
for s, v in zip(scores, values, strict=True):
    (m_new, l_new, _), alpha = step((m, l_sum, acc), [s], [v])
    p = torch.tensor(s - m_new).exp().item()
    m, l_sum, acc = m_new, l_new, acc + p * v  # should be acc * alpha + p * v
print(f"acc / l = {acc / l_sum:.2f}, expected {expected:.2f}")

# %% [markdown]
# ## Things to try
#
# - Reverse the scores, [0, 3, 2, 1], and the values with them. In which steps is `alpha` not 1? Does the
#   result change?
# - Add 1000 to every score. By how much do `m`, `lse` and o change?
# - For which scores does the wrong version above happen to be right?
