"""The small cases of lesson L0's drill: heads, rotation, attention, the latent, and a model over a cache.

A library for scripts/part_checks.py. All of it in float64, so that what differs is wrong and not rounded.
"""

from collections.abc import Iterator

import torch

from kernels import l0_mla, l0_shapes, l0_small_model
from kernels.l1_paged_cache import PagedKVCache
from scripts.part_checks import Part
from tests.helpers import l0_weights

Steps = Iterator[tuple[str, object]]
F64 = torch.float64


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def heads() -> Steps:
    """12 elements, 0 to 11, as 3 heads; then two tokens of them."""
    flat = torch.arange(12)
    split = l0_shapes.split_heads(flat, 3)
    yield "split_heads", split
    yield "whether it is a view", split.data_ptr() == flat.data_ptr()
    yield "split_heads", l0_shapes.split_heads(torch.arange(24).view(2, 12), 3)


def head_map() -> Steps:
    """8 query heads in groups of 4, then of 1."""
    yield "kv_head_of", [l0_shapes.kv_head_of(h, 4) for h in range(8)]
    yield "kv_head_of", [l0_shapes.kv_head_of(h, 1) for h in range(3)]


def turns() -> Steps:
    """Positions 0, 2 and 7; two heads of 4."""
    positions = torch.tensor([0, 2, 7])
    yield "rotate", l0_shapes.rotate(normal(3, 2, 4), positions, base=100.0)
    yield "the shape of heads of width 0", list(l0_shapes.rotate(normal(3, 2, 0), positions).shape)


def attends() -> Steps:
    """4 query heads on 2 KV heads: all of 5 tokens, then the last 2."""
    q, k, v = normal(5, 4, 4), normal(5, 2, 4, seed=1), normal(5, 2, 3, seed=2)
    yield "attend", l0_shapes.attend(q, k, v, 0.5)
    yield "attend", l0_shapes.attend(q[-2:], k, v, 0.5)


def grouped() -> Steps:
    """What a GQA layer stores of three tokens at positions 4, 5 and 6."""
    attention = l0_shapes.grouped_attention(6, 4, 2, 4, F64)
    weights = l0_weights.random_weights(attention)
    q, stored = attention.project(normal(3, 6), torch.arange(4, 7), weights)
    yield "the names of what is stored", sorted(stored)
    yield "v", stored["v"]
    yield "k", stored["k"]
    yield "q", q


def _latent():
    """An MLA layer of 3 heads, d_c = 8, d_rope = 2, d_nope = 4, d_v = 5; its weights; 6 tokens of it."""
    attention = l0_mla.latent_attention(6, 3, 8, 2, 4, 5, F64)
    return attention.spec, l0_weights.random_weights(attention), {"latent": normal(6, 1, 10)}


def stores() -> Steps:
    """What the spec of MLA says: d_c = 8, d_rope = 2, d_nope = 4, d_v = 5."""
    spec, _, _ = _latent()
    yield "its entries", [(name, entry.num_heads, entry.width) for name, entry in spec.entries.items()]
    yield "bytes a token", spec.bytes_per_token


def expands() -> Steps:
    """K and V of 3 heads, rebuilt from the latents of 6 tokens."""
    spec, weights, stored = _latent()
    k, v = spec.expand(stored, weights)
    yield "k", k
    yield "v", v


def folds() -> Steps:
    """The query for the latent, and what comes out again."""
    spec, weights, stored = _latent()
    yield "fold", spec.fold(normal(2, 3, 6), weights)
    yield "unfold", spec.unfold(normal(2, 3, 10), weights)
    k, v = spec.view(stored, weights)
    yield "whether view copies nothing", k.data_ptr() == v.data_ptr() == stored["latent"].data_ptr()


def scaled() -> Steps:
    """The scale; then attention, K and V rebuilt, and read as a latent."""
    spec, weights, stored = _latent()
    q = normal(6, 3, 6, seed=3)
    yield "attention of what is rebuilt", l0_shapes.attend(q, *spec.expand(stored, weights), spec.sm_scale)
    o = l0_shapes.attend(spec.fold(q, weights), *spec.view(stored, weights), spec.sm_scale)
    yield "attention of the latent", spec.unfold(o, weights)
    yield "sm_scale", torch.tensor(spec.sm_scale, dtype=F64)


def _play(attention) -> Steps:
    """Logits of prefill in two pieces, then of two decode steps of two sequences."""
    model = l0_small_model.random_model(attention)
    cache = PagedKVCache(attention.spec, num_pages=12, page_size=4, num_layers=len(model.layers))
    a, b = cache.allocate(), cache.allocate()
    yield "logits of a prompt of 5", l0_small_model.prefill(model, cache, a, torch.arange(5))
    yield "logits of 3 tokens more", l0_small_model.prefill(model, cache, a, torch.arange(5, 8))
    yield "logits of a prompt of 2", l0_small_model.prefill(model, cache, b, torch.arange(20, 22))
    for step in range(2):
        tokens = torch.tensor([30 + step, 10 + step])
        yield f"logits of decode step {step}", l0_small_model.decode_step(model, cache, [a, b], tokens)
    yield "tokens of a and b", cache.seq_lens([a, b])


def model_of_groups() -> Steps:
    """A model with GQA: prompts of 5 + 3 and of 2 tokens, pages of 4."""
    yield from _play(l0_shapes.grouped_attention(8, 4, 2, 4, F64))


def model_of_latents() -> Steps:
    """A model with MLA: prompts of 5 + 3 and of 2 tokens, pages of 4."""
    yield from _play(l0_mla.latent_attention(8, 3, 8, 2, 4, 5, F64))


TESTS = "tests/kernels/test_l0_{}.py".format
PARTS = {
    "kernels/l0_shapes.py": Part(
        ("split_heads", "kv_head_of", "rotate", "attend", "grouped_attention"),
        (heads, head_map, turns, attends, grouped), TESTS("shapes"),
    ),
    "kernels/l0_mla.py": Part(
        ("latent_spec", "latent_attention"), (stores, expands, folds, scaled), TESTS("mla")
    ),
    "kernels/l0_small_model.py": Part(
        ("SmallModel", "prefill", "decode_step", "random_model"), (model_of_groups, model_of_latents),
        TESTS("small_model"),
    ),
}  # fmt: skip
