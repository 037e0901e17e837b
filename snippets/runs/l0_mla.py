"""MLA read both ways: K and V rebuilt from the latent, and the latent read as it is."""

import torch

from kernels.l0_mla import latent_attention
from kernels.l0_shapes import attend


def numbers(*shape, step):
    """Multiples of 1/16 from -1.5 to 1.5 in a scattered order: the same on every machine."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * step % 49 - 24).double() / 16).reshape(shape)


attention = latent_attention(12, 4, 7, 6, 5, 3, torch.float64)  # Dm, Hq, d_c, d_rope, d_nope, d_v
weights = {name: numbers(*shape, step=37) / shape[0] for name, shape in attention.shapes.items()}
spec = attention.spec
q, stored = attention.project(numbers(9, 12, step=11), torch.arange(9), weights)
print("q", list(q.shape), "stored", {name: list(t.shape) for name, t in stored.items()})
print("bytes a token and layer:", spec.bytes_per_token)

k, v = spec.expand(stored, weights)
rebuilt = attend(q, k, v, spec.sm_scale)
print("rebuilt: K", list(k.shape), "V", list(v.shape), "o", list(rebuilt.shape))

k, v = spec.view(stored, weights)
absorbed = spec.unfold(attend(spec.fold(q, weights), k, v, spec.sm_scale), weights)
print("as it is: K", list(k.shape), "V", list(v.shape), "o", list(absorbed.shape))
print("the same, up to rounding:", bool((rebuilt - absorbed).abs().max() < 1e-12))
