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


def project_token(x: Tensor, w: Tensor) -> Tensor:
    """One token x [Dm] times one matrix w [Dm, d]: [d], entry j is the sum of x[i] * w[i, j]."""
    return (x[:, None] * w).sum(0)


def project_by_loop(x: Tensor, w: Tensor) -> Tensor:
    """The batch form as it is defined: [B, T, Dm] -> [B, T, d], a token at a time, one w for all."""
    q = torch.empty(*x.shape[:2], w.shape[1], dtype=x.dtype, device=x.device)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            q[b, t] = project_token(x[b, t], w)
    return q


def project(x: Tensor, w: Tensor) -> Tensor:
    """The same with any leading dims: [..., Dm] -> [..., d]."""
    return x @ w


def split_heads(flat: Tensor, num_heads: int) -> Tensor:
    """[..., H * d] viewed as [..., H, d]: head h is elements h * d to (h + 1) * d - 1."""
    # TODO: Nothing is copied.


def kv_head_of(qo_head: int, group_size: int) -> int:
    """The KV head that a query head reads: groups are contiguous."""
    # TODO: Query heads 0 to group_size - 1 read KV head 0.


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """RoPE: turn each pair (x[i], x[i + d / 2]) of every head by its token's position times a rate.

    x: [T, H, d], d even (0 is allowed); positions: [T], in tokens. Position 0 turns nothing.
    """
    # TODO: Pair i of d / 2 turns by its token's position times base ** (-2 * i / d).
    #   All heads alike; d may be 0. Rates and angles in x's dtype.


def attend(q: Tensor, k: Tensor, v: Tensor, sm_scale: float) -> Tensor:
    """Causal attention of the last tokens of one sequence over all of it.

    q: [Tq, Hq, d_k], the last Tq of T tokens; k: [T, H, d_k]; v: [T, H, d_v], Hq a multiple of H.
    Returns o [Tq, Hq, d_v].
    """
    # TODO: Softmax over the tokens that a query may see: itself and those before it.
    #   The queries are the LAST tokens of the sequence. No loop is needed.


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


Tensors = Mapping[str, Tensor]


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
    fold: Callable[[Tensor, Tensors], Tensor] = lambda q, weights: q
    unfold: Callable[[Tensor, Tensors], Tensor] = lambda o, weights: o

    @property
    def elements_per_token(self) -> int:
        """Elements that one layer stores of one token."""
        return sum(entry.num_elements for entry in self.entries.values())

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one layer stores of one token."""
        return sum(entry.num_bytes for entry in self.entries.values())


class Attention(NamedTuple):
    """An attention layer without its weights: one value serves every layer of a model.

    spec: what it stores. shapes: of its weights, by name. project: (x [T, Dm], positions [T],
    weights) -> (q [T, Hq, d_k], stored: what `spec` says, with leading dim T).
    """

    spec: CacheSpec
    shapes: Mapping[str, tuple[int, int]]
    project: Callable[[Tensor, Tensor, Tensors], tuple[Tensor, Tensors]]


def grouped_spec(
    num_qo_heads: int, num_kv_heads: int, head_dim: int, dtype: torch.dtype = torch.float16
) -> CacheSpec:
    """MHA (Hkv = Hq), GQA, MQA (Hkv = 1): K, already rotated, and V of every KV head are stored."""
    divides = num_kv_heads >= 1 and num_qo_heads >= 1 and num_qo_heads % num_kv_heads == 0
    require(divides, "num_qo_heads", num_qo_heads, f"a positive multiple of Hkv = {num_kv_heads}")
    name = {num_qo_heads: "MHA", 1: "MQA"}.get(num_kv_heads, "GQA")
    entry = Entry(num_kv_heads, head_dim, dtype)
    return CacheSpec(
        name, {"k": entry, "v": entry}, head_dim**-0.5,
        expand=lambda stored, weights: (stored["k"], stored["v"]),
        view=lambda stored, weights: (stored["k"], stored["v"]),
    )


def grouped_attention(
    model_dim: int, num_qo_heads: int, num_kv_heads: int, head_dim: int, dtype=torch.float16
) -> Attention:
    """MHA, GQA or MQA over tokens of width `model_dim` (Dm)."""
    q_width, kv_width = num_qo_heads * head_dim, num_kv_heads * head_dim

    def project_grouped(x: Tensor, positions: Tensor, weights: Tensors) -> tuple[Tensor, Tensors]:
        q = split_heads(project(x, weights["w_q"]), num_qo_heads)  # [T, Hq, D]
        # TODO: K and V likewise. Return what Attention.project says: q, and the stored, by name.
        #   What is rotated, and when?

    shapes = {
        "w_q": (model_dim, q_width),
        "w_k": (model_dim, kv_width),
        "w_v": (model_dim, kv_width),
        "w_o": (q_width, model_dim),
    }
    return Attention(
        grouped_spec(num_qo_heads, num_kv_heads, head_dim, dtype), shapes, project_grouped
    )
