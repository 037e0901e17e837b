# ---
# jupyter:
#   description: >-
#     From a token to Q, K, V, equation by equation: projections, heads, RoPE, bytes a token, MLA read both
#     ways, GQA as a case of it, and a small model that decodes with a cache.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a token to Q, K, V
#
# Run it in a clone of the repository; no GPU is needed:
#
# ```
# python -m venv .venv
# .venv/bin/pip install torch triton jupyterlab
# .venv/bin/jupyter lab docs/en/notebooks
# ```
#
# All of it is PyTorch in float64, so that what is equal differs by rounding alone. The next cell looks for
# the root of the repository above the current directory, so the notebook must lie inside it.

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
# ## One token, and the batch as a loop
#
# The unit is one vector x [Dm] times one matrix. The batch form applies the same matrix to every b and t.

# %%
x, w_q = torch.randn(2, 3, 8), torch.randn(8, 12)
print("x", list(x.shape), "W_Q", list(w_q.shape), "-> q", list(project(x, w_q).shape))
print("loop = matmul:", same(project_by_loop(x, w_q), project(x, w_q)))

# %% [markdown]
# ## Heads are a view
#
# The flat vector is given another shape. No element moves.

# %%
flat = torch.arange(12)
print(split_heads(flat, 4).tolist())
print("query head -> KV head:", [kv_head_of(h, 2) for h in range(4)])

# %% [markdown]
# ## The example of the page
#
# Dm 3, four query heads, two KV heads, d 2, one token at position 0.

# %%
token = torch.tensor([1.0, 2.0, -1.0])
w_q = torch.tensor([[1, 0, 2, 1, 0, 1, 2, 0], [0, 1, 0, 1, 1, 0, 0, 2], [1, 0, 1, 0, 0, 1, 0, 1]]).double()
w_k = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]).double()
q, k = split_heads(project(token, w_q), 4), split_heads(project(token, w_k), 2)
print("q heads", q.int().tolist())
print("k heads", k.int().tolist())
print("scores ", [int(q[h] @ k[kv_head_of(h, 2)]) for h in range(4)])

# %% [markdown]
# ## RoPE: scores know the distance alone
#
# The same q and k, 3 apart, at the start and 1000 tokens later.

# %%
q, k = torch.randn(1, 1, 8), torch.randn(1, 1, 8)
for i, j in ((5, 2), (1005, 1002), (5, 1)):
    score = (rotate(q, torch.tensor([i])) * rotate(k, torch.tensor([j]))).sum().item()
    print(f"q at {i:4}, k at {j:4}: {score:.6f}")

# %% [markdown]
# ## What a token leaves behind
#
# Elements and bytes of one layer, fp16. Llama 3 8B has the sizes of the second line, DeepSeek-V3 those of
# the last.

# %%
for spec in (
    grouped_spec(32, 32, 128),
    grouped_spec(32, 8, 128),
    grouped_spec(32, 1, 128),
    latent_spec(128, 512, 64, 128, 128),  # Hq, d_c, d_rope, d_nope, d_v
):
    print(f"{spec.name}  {spec.elements_per_token:5} elements  {spec.bytes_per_token:6} bytes")

# %% [markdown]
# ## MLA, read both ways
#
# `expand` rebuilds K and V of all heads. `fold` puts W_UK on the query, `view` hands out the latent as it
# is, `unfold` puts W_UV on the result.


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
# ## GQA as a case of MLA
#
# The latent is [K; V], W_UK and W_UV are zeros and ones. Here W_UK for four query heads and two KV heads
# of 2 elements.

# %%
print(selection(4, 2, 2, first=0).int())

# %% [markdown]
# Without RoPE (all positions 0) the two layers give the same. With RoPE they do not: a rotation by position
# is no fixed matrix after x W_DKV.

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
# ## A model that decodes with a cache
#
# Prefill of five tokens, then eight more, one at a time. At every step the logits are those of a full
# forward. The code of the model is the same for all four.

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
# ## Wrong on purpose
#
# The flat vector viewed as [d, H] and transposed: the shape is right, the heads are not.

# %%
flat = torch.tensor([0, 2, 1, 3, 2, 0, 2, 3])
print("right", split_heads(flat, 4).tolist())
print("wrong", flat.view(2, 4).transpose(0, 1).tolist())

# %% [markdown]
# ## Things to try
#
# - Give `latent_spec` other sizes. For which d_c does MLA store as much as GQA with eight heads of 128?
# - Store the rotated K and V as the latent of `as_mla`, and read it back with q rotated. Is it GQA again?
# - Append first and read the length afterwards in `decode_step`. How far are the logits off, and how often is
#   the chosen token another?
