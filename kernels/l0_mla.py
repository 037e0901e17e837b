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
    kv_head_of,
    project,
    rotate,
    split_heads,
)


# region latent_spec
def latent_spec(
    num_qo_heads: int, d_c: int, d_rope: int, d_nope: int, d_v: int, dtype=torch.float16
) -> CacheSpec:
    """MLA: a token stores its latent c [d_c] and one rotated part of K [d_rope], the
    same for all heads.

    d_nope: width of a head's key part that is rebuilt from c; d_v: width of a head's value.
    """

    def by_head(w: Tensor) -> Tensor:
        return split_heads(w, num_qo_heads)  # [d_c, Hq * d] -> [d_c, Hq, d]

    def expand_latent(stored: Tensors, weights: Tensors) -> tuple[Tensor, Tensor]:
        c, k_rope = stored["latent"].split([d_c, d_rope], dim=-1)  #: cut
        k_nope = split_heads(project(c, weights["w_uk"]).squeeze(-2), num_qo_heads)  #: k_nope
        v = split_heads(project(c, weights["w_uv"]).squeeze(-2), num_qo_heads)  #: latent_v
        k_rope = k_rope.expand(*k_nope.shape[:-1], d_rope)  #: shared_rope
        return torch.cat([k_nope, k_rope], dim=-1), v

    def fold_latent(q: Tensor, weights: Tensors) -> Tensor:
        q_nope, q_rope = q.split([d_nope, d_rope], dim=-1)
        q_c = torch.einsum("...hd,chd->...hc", q_nope, by_head(weights["w_uk"]))  #: absorb_k
        return torch.cat([q_c, q_rope], dim=-1)  # [..., Hq, d_c + d_rope]

    def unfold_latent(o: Tensor, weights: Tensors) -> Tensor:
        o_c = o[..., :d_c]  # the weighted mean of c; the rest is that of k_rope  #: drop_rope
        return torch.einsum("...hc,chd->...hd", o_c, by_head(weights["w_uv"]))  #: absorb_v

    return CacheSpec(
        "MLA", {"latent": Entry(1, d_c + d_rope, dtype)}, (d_nope + d_rope) ** -0.5,  #: mla_scale
        expand=expand_latent,
        view=lambda stored, weights: (stored["latent"], stored["latent"]),  #: latent_view
        fold=fold_latent,
        unfold=unfold_latent,
    )
# endregion latent_spec


# region latent_attention
def latent_attention(
    model_dim: int, num_qo_heads: int, d_c: int, d_rope: int, d_nope: int, d_v: int,
    dtype=torch.float16,
) -> Attention:
    """MLA over tokens of width `model_dim` (Dm)."""

    def project_latent(x: Tensor, positions: Tensor, weights: Tensors) -> tuple[Tensor, Tensors]:
        q = split_heads(project(x, weights["w_q"]), num_qo_heads)  # [T, Hq, d_nope + d_rope]
        q_nope, q_rope = q.split([d_nope, d_rope], dim=-1)
        q = torch.cat([q_nope, rotate(q_rope, positions)], dim=-1)  #: q_rope
        c = project(x, weights["w_dkv"])[:, None]  # [T, 1, d_c]  #: latent
        k_rope = rotate(project(x, weights["w_kr"])[:, None], positions)  #: k_rope
        return q, {"latent": torch.cat([c, k_rope], dim=-1)}

    shapes = {  #: latent_weights
        "w_q": (model_dim, num_qo_heads * (d_nope + d_rope)),
        "w_dkv": (model_dim, d_c),
        "w_kr": (model_dim, d_rope),
        "w_uk": (d_c, num_qo_heads * d_nope),
        "w_uv": (d_c, num_qo_heads * d_v),
        "w_o": (num_qo_heads * d_v, model_dim),
    }  #: latent_weights
    spec = latent_spec(num_qo_heads, d_c, d_rope, d_nope, d_v, dtype)
    return Attention(spec, shapes, project_latent)
# endregion latent_attention


# region gqa_as_mla
def selection(num_qo_heads: int, num_kv_heads: int, head_dim: int, first: int) -> Tensor:
    """[2 * Hkv * D, Hq * D] of 0 and 1: latent row -> query head h, from the row `first` on."""
    w = torch.zeros(2 * num_kv_heads * head_dim, num_qo_heads * head_dim, dtype=torch.float64)
    for h in range(num_qo_heads):
        row = first + kv_head_of(h, num_qo_heads // num_kv_heads) * head_dim  #: selected_row
        columns = slice(h * head_dim, (h + 1) * head_dim)
        w[row : row + head_dim, columns] = torch.eye(head_dim)  #: identity
    return w


def latent_weights_of_grouped(
    weights: Tensors, num_qo_heads: int, num_kv_heads: int, head_dim: int
) -> dict[str, Tensor]:
    """The weights with which MLA (d_c = 2 * Hkv * D, d_rope = 0) computes GQA without RoPE."""
    sizes = (num_qo_heads, num_kv_heads, head_dim)
    w_k, w_v = weights["w_k"], weights["w_v"]
    return {
        "w_q": weights["w_q"],
        "w_dkv": torch.cat([w_k, w_v], dim=1),  # the latent is [K; V]  #: latent_is_kv
        "w_kr": w_k[:, :0],
        "w_uk": selection(*sizes, first=0).to(w_k),
        "w_uv": selection(*sizes, first=num_kv_heads * head_dim).to(w_v),
        "w_o": weights["w_o"],
    }
# endregion gqa_as_mla
