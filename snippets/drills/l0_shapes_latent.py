"""MLA: one latent vector a token; K and V of every head are rebuilt from it, or read without that.

Lesson: l0_shapes. Reference: `expand` of the spec and `attend`, in float64.
Source: own; MLA is arXiv:2405.04434, grouped heads as a case of it arXiv:2502.07864.
"""

import torch
from torch import Tensor

from kernels.l0_shapes import (
    Attention,
    CacheSpec,
    Entry,
    Tensors,
    project,
    rotate,
    split_heads,
)


def latent_spec(
    num_qo_heads: int, d_c: int, d_rope: int, d_nope: int, d_v: int, dtype=torch.float16
) -> CacheSpec:
    """MLA: a token stores its latent c [d_c] and one rotated part of K [d_rope], the
    same for all heads.

    d_nope: width of a head's key part that is rebuilt from c; d_v: width of a head's value.
    """

    # TODO: Return the CacheSpec, named "MLA"; its entry "latent" is [1, d_c + d_rope], c first.
    #   w_uk is [d_c, Hq * d_nope] and w_uv [d_c, Hq * d_v], heads one after the other.
    #   expand rebuilds k [..., Hq, d_nope + d_rope] and v [..., Hq, d_v].
    #   view copies nothing: the latent is K and V.
    #   fold gives the query for it, unfold what o means.


def latent_attention(
    model_dim: int, num_qo_heads: int, d_c: int, d_rope: int, d_nope: int, d_v: int,
    dtype=torch.float16,
) -> Attention:
    """MLA over tokens of width `model_dim` (Dm)."""

    def project_latent(x: Tensor, positions: Tensor, weights: Tensors) -> tuple[Tensor, Tensors]:
        q = split_heads(project(x, weights["w_q"]), num_qo_heads)  # [T, Hq, d_nope + d_rope]
        q_nope, q_rope = q.split([d_nope, d_rope], dim=-1)
        q = torch.cat([q_nope, rotate(q_rope, positions)], dim=-1)
        c = project(x, weights["w_dkv"])[:, None]  # [T, 1, d_c]
        k_rope = rotate(project(x, weights["w_kr"])[:, None], positions)
        return q, {"latent": torch.cat([c, k_rope], dim=-1)}

    shapes = {
        "w_q": (model_dim, num_qo_heads * (d_nope + d_rope)),
        "w_dkv": (model_dim, d_c),
        "w_kr": (model_dim, d_rope),
        "w_uk": (d_c, num_qo_heads * d_nope),
        "w_uv": (d_c, num_qo_heads * d_v),
        "w_o": (num_qo_heads * d_v, model_dim),
    }
    spec = latent_spec(num_qo_heads, d_c, d_rope, d_nope, d_v, dtype)
    return Attention(spec, shapes, project_latent)
