"""From a token to Q, K and V: projections with their shapes, and what a layer stores of a token.

Lesson: l0_shapes. Reference: the loops over one token in this file, in float64.
Source: own; grouped heads are arXiv:2305.13245, the rotation arXiv:2104.09864.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.checks import require


# region one_token
def project_token(x: Tensor, w: Tensor) -> Tensor:
    """One token x [Dm] times one matrix w [Dm, d]: [d], entry j is the sum of x[i] * w[i, j]."""
    return (x[:, None] * w).sum(0)  #: dot


def project_by_loop(x: Tensor, w: Tensor) -> Tensor:
    """The batch form as it is defined: [B, T, Dm] -> [B, T, d], a token at a time, one w for all."""
    q = torch.empty(*x.shape[:2], w.shape[1], dtype=x.dtype, device=x.device)
    for b in range(x.shape[0]):  #: loop
        for t in range(x.shape[1]):
            q[b, t] = project_token(x[b, t], w)  #: loop
    return q


def project(x: Tensor, w: Tensor) -> Tensor:
    """The same with any leading dims: [..., Dm] -> [..., d]."""
    return x @ w  #: matmul
# endregion one_token


# region heads
def split_heads(flat: Tensor, num_heads: int) -> Tensor:
    """[..., H * d] viewed as [..., H, d]: head h is elements h * d to (h + 1) * d - 1."""
    width = flat.shape[-1] // num_heads
    return flat.view(*flat.shape[:-1], num_heads, width)  #: view_as_heads


def kv_head_of(qo_head: int, group_size: int) -> int:
    """The KV head that a query head reads: groups are contiguous."""
    return qo_head // group_size  #: head_map
# endregion heads


# region rotate
def rotate(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """RoPE: turn each pair (x[i], x[i + d / 2]) of every head by its token's position times a rate.

    x: [T, H, d], d even (0 is allowed); positions: [T], in tokens. Position 0 turns nothing.
    """
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=x.dtype, device=x.device) / max(half, 1))  #: rates
    angles = positions.to(x.dtype)[:, None, None] * rates  # [T, 1, d / 2]
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., :half], x[..., half:]  #: pairs
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)  #: turn
# endregion rotate


# region attend
def attend(q: Tensor, k: Tensor, v: Tensor, sm_scale: float) -> Tensor:
    """Causal attention of the last tokens of one sequence over all of it.

    q: [Tq, Hq, d_k], the last Tq of T tokens; k: [T, H, d_k]; v: [T, H, d_v], Hq a multiple of H.
    Returns o [Tq, Hq, d_v].
    """
    group_size = q.shape[1] // k.shape[1]
    # [T, H, d] -> [T, Hq, d]: entry h is KV head h // group_size
    k, v = (t.repeat_interleave(group_size, dim=1) for t in (k, v))  #: repeat
    scores = torch.einsum("qhd,khd->hqk", q, k) * sm_scale  #: scores
    num_queries, num_tokens = scores.shape[1:]
    allowed = torch.ones(num_queries, num_tokens, dtype=torch.bool, device=q.device)
    allowed = allowed.tril(num_tokens - num_queries)  #: causal
    weights = torch.softmax(scores.masked_fill(~allowed, -math.inf), dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, v)  #: mix
# endregion attend


# region entry
class Entry(NamedTuple):
    """A tensor of which every token has a part: [num_heads, width] a token and layer."""

    num_heads: int
    width: int
    dtype: torch.dtype = torch.float16

    @property
    def num_elements(self) -> int:
        """Elements a token."""
        return self.num_heads * self.width

    @property
    def num_bytes(self) -> int:
        """Bytes a token."""
        return self.num_elements * self.dtype.itemsize
# endregion entry


Tensors = Mapping[str, Tensor]


# region cache_spec
@dataclass(frozen=True)
class CacheSpec:
    """What one layer stores of one token, and how K and V are read back from it.

    stored: by entry name a tensor [..., num_heads, width] with any leading dims, be it [T] of one
    sequence or [num_pages, page_size] of a cache. weights: the layer's, by name.

    name: of the family, for tables and messages.
    entries: name -> Entry.
    sm_scale: factor on q . k, the same for both ways to read.
    expand: (stored, weights) -> k [..., H, d_k], v [..., H, d_v], those of the equations.
    view: (stored, weights) -> k, v as a decode kernel reads them, of equal shape.
    fold: (q [..., Hq, d_k], weights) -> the query that goes with `view`.
    unfold: (o of `view`, weights) -> o [..., Hq, d_v].
    """

    name: str
    entries: Mapping[str, Entry]
    sm_scale: float
    expand: Callable[[Tensors, Tensors], tuple[Tensor, Tensor]]
    view: Callable[[Tensors, Tensors], tuple[Tensor, Tensor]]
    fold: Callable[[Tensor, Tensors], Tensor] = lambda q, weights: q  #: fold_nothing
    unfold: Callable[[Tensor, Tensors], Tensor] = lambda o, weights: o

    @property
    def elements_per_token(self) -> int:
        """Elements that one layer stores of one token."""
        return sum(entry.num_elements for entry in self.entries.values())

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one layer stores of one token."""
        return sum(entry.num_bytes for entry in self.entries.values())
# endregion cache_spec


class Attention(NamedTuple):  #: attention
    """An attention layer without its weights: one value serves every layer of a model.

    spec: what it stores. shapes: of its weights, by name. project: (x [T, Dm], positions [T],
    weights) -> (q [T, Hq, d_k], stored: what `spec` says, with leading dim T).
    """

    spec: CacheSpec
    shapes: Mapping[str, tuple[int, int]]
    project: Callable[[Tensor, Tensor, Tensors], tuple[Tensor, Tensors]]


# region grouped_spec
def grouped_spec(
    num_qo_heads: int, num_kv_heads: int, head_dim: int, dtype: torch.dtype = torch.float16
) -> CacheSpec:
    """MHA (Hkv = Hq), GQA, MQA (Hkv = 1): K, already rotated, and V of every KV head are stored."""
    divides = num_kv_heads >= 1 and num_qo_heads >= 1 and num_qo_heads % num_kv_heads == 0
    require(divides, "num_qo_heads", num_qo_heads, f"a positive multiple of Hkv = {num_kv_heads}")
    name = {num_qo_heads: "MHA", 1: "MQA"}.get(num_kv_heads, "GQA")
    entry = Entry(num_kv_heads, head_dim, dtype)
    return CacheSpec(
        name, {"k": entry, "v": entry}, head_dim**-0.5,  #: grouped_entries
        expand=lambda stored, weights: (stored["k"], stored["v"]),  #: grouped_expand
        view=lambda stored, weights: (stored["k"], stored["v"]),
    )
# endregion grouped_spec


# region grouped_attention
def grouped_attention(
    model_dim: int, num_qo_heads: int, num_kv_heads: int, head_dim: int, dtype=torch.float16
) -> Attention:
    """MHA, GQA or MQA over tokens of width `model_dim` (Dm)."""
    q_width, kv_width = num_qo_heads * head_dim, num_kv_heads * head_dim

    def project_grouped(x: Tensor, positions: Tensor, weights: Tensors) -> tuple[Tensor, Tensors]:
        q = split_heads(project(x, weights["w_q"]), num_qo_heads)  # [T, Hq, D]  #: q
        k = split_heads(project(x, weights["w_k"]), num_kv_heads)  # [T, Hkv, D]  #: k
        v = split_heads(project(x, weights["w_v"]), num_kv_heads)  #: v
        return rotate(q, positions), {"k": rotate(k, positions), "v": v}  #: rotated

    shapes = {  #: grouped_weights
        "w_q": (model_dim, q_width),
        "w_k": (model_dim, kv_width),
        "w_v": (model_dim, kv_width),
        "w_o": (q_width, model_dim),
    }  #: grouped_weights
    return Attention(
        grouped_spec(num_qo_heads, num_kv_heads, head_dim, dtype), shapes, project_grouped
    )
# endregion grouped_attention
