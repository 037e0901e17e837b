"""Random weights and tokens for the attention layers of lesson L0, and attention one element at a time."""

import math

import torch

from kernels.l0_mla import latent_attention
from kernels.l0_shapes import Attention, attend, grouped_attention, kv_head_of

MODEL_DIM = 24
# One of each kind; sizes are all different, so that a transposed view cannot pass.
ATTENTIONS = {
    "MHA": lambda dtype: grouped_attention(MODEL_DIM, 4, 4, 6, dtype),
    "GQA": lambda dtype: grouped_attention(MODEL_DIM, 6, 2, 4, dtype),
    "MQA": lambda dtype: grouped_attention(MODEL_DIM, 5, 1, 8, dtype),
    "MLA": lambda dtype: latent_attention(MODEL_DIM, 4, 7, 6, 5, 3, dtype),
}


def random_weights(attention: Attention, seed: int = 0, dtype=torch.float64) -> dict[str, torch.Tensor]:
    """Weights of one layer, each matrix scaled so that it keeps the size of what it maps."""
    rng = torch.Generator().manual_seed(seed)
    return {
        name: (torch.randn(*shape, generator=rng, dtype=torch.float64) / max(shape[0], 1) ** 0.5).to(dtype)
        for name, shape in attention.shapes.items()
    }


def random_tokens(num_tokens: int, seed: int = 1, dtype=torch.float64) -> torch.Tensor:
    """x [T, Dm]."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(num_tokens, MODEL_DIM, generator=rng, dtype=torch.float64).to(dtype)


def attend_by_loop(q, k, v, sm_scale: float) -> torch.Tensor:
    """What `attend` computes, by its definition: one query head of one token at a time."""
    o = torch.zeros(*q.shape[:2], v.shape[2], dtype=q.dtype)
    group_size = q.shape[1] // k.shape[1]
    first = len(k) - len(q)  # the position of the first query
    for i, h in ((i, h) for i in range(q.shape[0]) for h in range(q.shape[1])):
        kv_head = kv_head_of(h, group_size)
        scores = [sm_scale * float(q[i, h] @ k[t, kv_head]) for t in range(first + i + 1)]
        total = sum(math.exp(score) for score in scores)
        for t, score in enumerate(scores):
            o[i, h] += math.exp(score) / total * v[t, kv_head]
    return o


def read_both_ways(attention: Attention, weights, x, positions) -> tuple[torch.Tensor, torch.Tensor]:
    """o [T, Hq, d_v] with K and V rebuilt, and o from what a decode kernel reads."""
    spec = attention.spec
    q, stored = attention.project(x, positions, weights)
    rebuilt = attend(q, *spec.expand(stored, weights), spec.sm_scale)
    viewed = attend(spec.fold(q, weights), *spec.view(stored, weights), spec.sm_scale)
    return rebuilt, spec.unfold(viewed, weights)
