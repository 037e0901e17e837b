"""A small decoder with random weights: prefill, then token by token over a paged cache.

Lesson: l0_shapes. Reference: `SmallModel.forward`, the whole sequence at once without a cache.
Source: own. Nothing here asks which family of attention it runs: its `CacheSpec` answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from kernels.l0_shapes import Attention, Tensors, attend
from kernels.reference import paged_attention_reference


@dataclass(frozen=True)
class SmallModel:
    """Embedding, layers of attention and a gated MLP with RMS norms before them, logits.

    embedding: [vocabulary, Dm]; layers: weights by name, a mapping each; head: [Dm, vocabulary].
    """

    attention: Attention
    embedding: Tensor
    layers: Sequence[Tensors]
    head: Tensor

    def run(self, tokens: Tensor, positions: Tensor, mix: Callable) -> Tensor:
        """Logits [N, vocabulary] of N tokens, ids and positions [N].

        mix: (layer, q [N, Hq, d_k], stored) -> o [N, Hq, d_v]: where the tokens meet others.
        """
        x = self.embedding[tokens]  # [N, Dm]
        for layer, weights in enumerate(self.layers):
            q, stored = self.attention.project(norm(x), positions, weights)
            x = x + mix(layer, q, stored).flatten(-2) @ weights["w_o"]
            h = norm(x)
            x = x + (F.silu(h @ weights["w_gate"]) * (h @ weights["w_up"])) @ weights["w_down"]
        return norm(x) @ self.head

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [T, vocabulary] of one sequence of ids [T], without a cache."""
        spec = self.attention.spec

        def mix(layer: int, q: Tensor, stored: Tensors) -> Tensor:
            return attend(q, *spec.expand(stored, self.layers[layer]), spec.sm_scale)

        return self.run(tokens, torch.arange(len(tokens), device=tokens.device), mix)


def norm(x: Tensor) -> Tensor:
    """RMS norm without a weight."""
    return F.rms_norm(x, x.shape[-1:])


def prefill(model: SmallModel, cache, seq: int, tokens: Tensor) -> Tensor:
    """Take tokens [T] into the sequence `seq`; logits [T, vocabulary].

    What is there already is attended to, so a prompt may come in pieces.
    """
    spec = model.attention.spec
    # TODO: Room for the tokens; in each layer write what is stored, read the whole sequence back,
    #   and attend to it. The sequence may hold tokens already.


def decode_step(
    model: SmallModel, cache, seqs: list[int], tokens: Tensor, *, decode=paged_attention_reference
) -> Tensor:
    """One token [B] for each of B sequences; logits [B, vocabulary].

    decode: any function with the arguments of `paged_attention_reference`.
    """
    spec = model.attention.spec
    # TODO: Room for one token each; in each layer write it, then decode over the whole cache:
    #   spec.view for K and V, spec.fold for q, spec.unfold for o.


def random_model(
    attention: Attention, *, vocabulary: int = 40, mlp_dim: int = 48, num_layers: int = 2,
    dtype: torch.dtype = torch.float64, device="cpu", seed: int = 0,
) -> SmallModel:
    """A model with normal weights, each matrix scaled so that it keeps the size of what it maps."""
    rng = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int) -> Tensor:
        w = torch.randn(rows, columns, dtype=torch.float64, generator=rng)
        return (w / max(rows, 1) ** 0.5).to(device, dtype)

    model_dim = attention.shapes["w_q"][0]
    up, down = (model_dim, mlp_dim), (mlp_dim, model_dim)
    shapes = {**attention.shapes, "w_gate": up, "w_up": up, "w_down": down}
    layers = [{name: matrix(*shape) for name, shape in shapes.items()} for _ in range(num_layers)]
    embedding = torch.randn(vocabulary, model_dim, dtype=torch.float64, generator=rng)
    return SmallModel(
        attention, embedding.to(device, dtype), layers, matrix(model_dim, vocabulary)
    )
