"""More ways to store less of a token, each as a `CacheSpec`: TPA, GTA and GLA.

Lesson: l0_shapes. Reference: sums over single elements, in the tests.
Source: own, from arXiv:2501.06425 (TPA) and arXiv:2505.21487 (GTA, GLA). Here K and V are rebuilt
at every read; their own decode kernels avoid it, as `fold` does for MLA.
"""

import torch
from torch import Tensor

from kernels.l0_shapes import CacheSpec, Entry, Tensors, project, split_heads


# region tpa
def tensor_product_spec(
    num_heads: int, head_dim: int, rank_k: int, rank_v: int, dtype=torch.float16
) -> CacheSpec:
    """TPA: K and V of a token are [H, D] matrices of low rank; their factors are stored.

    a_k [R, H] and b_k [R, D], b_k rotated before it is stored; a_v and b_v likewise.
    """

    def product(a: Tensor, b: Tensor) -> Tensor:
        return torch.einsum("...rh,...rd->...hd", a, b) / a.shape[-2]  #: outer_products

    def expand_factors(stored: Tensors, weights: Tensors) -> tuple[Tensor, Tensor]:
        return product(stored["a_k"], stored["b_k"]), product(stored["a_v"], stored["b_v"])

    entries = {
        "a_k": Entry(rank_k, num_heads, dtype), "b_k": Entry(rank_k, head_dim, dtype),
        "a_v": Entry(rank_v, num_heads, dtype), "b_v": Entry(rank_v, head_dim, dtype),
    }
    return CacheSpec("TPA", entries, head_dim**-0.5, expand=expand_factors, view=expand_factors)
# endregion tpa


# region gta
def tied_spec(num_kv_heads: int, head_dim: int, d_rope: int, dtype=torch.float16) -> CacheSpec:
    """GTA: one state a KV head is both, V as it is, K in its first D - d_rope elements.

    The rest of every head's K is one rotated part that all heads share, as in MLA.
    """

    def expand_tied(stored: Tensors, weights: Tensors) -> tuple[Tensor, Tensor]:
        kv = stored["kv"]
        k_rope = stored["k_rope"].expand(*kv.shape[:-1], d_rope)
        return torch.cat([kv[..., : head_dim - d_rope], k_rope], dim=-1), kv  #: tied

    entries = {"kv": Entry(num_kv_heads, head_dim, dtype), "k_rope": Entry(1, d_rope, dtype)}
    return CacheSpec("GTA", entries, head_dim**-0.5, expand=expand_tied, view=expand_tied)
# endregion gta


# region gla
def grouped_latent_spec(
    num_qo_heads: int, num_latents: int, d_c: int, d_rope: int, d_nope: int, d_v: int,
    dtype=torch.float16,
) -> CacheSpec:
    """GLA: several latents of d_c each, and the query heads of a group rebuild from their own.

    weights: w_uk [num_latents * d_c, Hq / num_latents * d_nope], latent after latent; w_uv, too.
    """
    group_size = num_qo_heads // num_latents

    def rebuild(c: Tensor, w: Tensor) -> Tensor:
        by_latent = w.unflatten(0, (num_latents, d_c))
        parts = [project(c[..., i, :], by_latent[i]) for i in range(num_latents)]  #: own_latent
        return torch.cat([split_heads(part, group_size) for part in parts], dim=-2)

    def expand_latents(stored: Tensors, weights: Tensors) -> tuple[Tensor, Tensor]:
        k_nope, v = (rebuild(stored["latents"], weights[name]) for name in ("w_uk", "w_uv"))
        k_rope = stored["k_rope"].expand(*k_nope.shape[:-1], d_rope)
        return torch.cat([k_nope, k_rope], dim=-1), v

    entries = {"latents": Entry(num_latents, d_c, dtype), "k_rope": Entry(1, d_rope, dtype)}
    scale = (d_nope + d_rope) ** -0.5
    return CacheSpec("GLA", entries, scale, expand=expand_latents, view=expand_latents)
# endregion gla
