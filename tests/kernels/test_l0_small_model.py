"""Prefill and token-by-token decode over the paged cache give the logits of the full forward, every step."""

import ast
import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels import l0_small_model, paged_decode
from kernels.l0_mla import latent_attention
from kernels.l0_shapes import grouped_attention
from kernels.l0_small_model import decode_step, prefill, random_model
from kernels.l1_paged_cache import PagedKVCache
from tests.helpers.l0_weights import ATTENTIONS
from tests.helpers.mode import DEVICE
from tests.helpers.oracle import assert_twice_as_good

CLOSE = {"rtol": 0, "atol": 1e-11}  # float64, two layers


def tokens_of(num_tokens: int, seed: int, device="cpu") -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(40, (num_tokens,), generator=rng).to(device)


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_every_step_has_the_logits_of_the_full_forward(name, kv_layout):
    """Three sequences of different lengths in one batch, pages of 4 tokens, 11 steps over several pages."""
    model = random_model(ATTENTIONS[name](torch.float64))
    cache = PagedKVCache(model.attention.spec, num_layers=2, num_pages=24, page_size=4, kv_layout=kv_layout)
    prompts = [tokens_of(n, seed=n) for n in (5, 1, 8)]
    seqs = [cache.allocate() for _ in prompts]
    for seq, prompt in zip(seqs, prompts, strict=True):
        torch.testing.assert_close(prefill(model, cache, seq, prompt), model.forward(prompt), **CLOSE)

    for step in range(11):
        new = tokens_of(3, seed=100 + step)
        prompts = [torch.cat([prompt, new[b : b + 1]]) for b, prompt in enumerate(prompts)]
        logits = decode_step(model, cache, seqs, new)
        expected = torch.stack([model.forward(prompt)[-1] for prompt in prompts])
        torch.testing.assert_close(logits, expected, **CLOSE, msg=lambda m, s=step: f"step {s}: {m}")


@given(
    name=st.sampled_from(list(ATTENTIONS)), pieces=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    page_size=st.sampled_from([1, 3, 16]), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_prompt_may_come_in_pieces(name, pieces, page_size, seed):
    model = random_model(ATTENTIONS[name](torch.float64), seed=seed)
    cache = PagedKVCache(model.attention.spec, num_layers=2, num_pages=32, page_size=page_size)
    tokens, seq = tokens_of(sum(pieces), seed), cache.allocate()
    logits = torch.cat([prefill(model, cache, seq, piece) for piece in tokens.split(pieces)])
    torch.testing.assert_close(logits, model.forward(tokens), **CLOSE)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_fork_goes_its_own_way(name):
    """Two continuations of one prompt, which they share: each has the logits of its own full forward."""
    model = random_model(ATTENTIONS[name](torch.float64))
    cache = PagedKVCache(model.attention.spec, num_layers=2, num_pages=16, page_size=4)
    prompt, seq = tokens_of(6, seed=1), cache.allocate()
    prefill(model, cache, seq, prompt)
    seqs, texts = [seq, cache.fork(seq)], [prompt, prompt]
    for step in range(4):
        new = tokens_of(2, seed=step)
        texts = [torch.cat([text, new[b : b + 1]]) for b, text in enumerate(texts)]
        logits = decode_step(model, cache, seqs, new)
        expected = torch.stack([model.forward(text)[-1] for text in texts])
        torch.testing.assert_close(logits, expected, **CLOSE)


# Sizes that the kernel of L2 takes: its head_dim is the width of what `view` gives.
FOR_THE_KERNEL = {
    "GQA": lambda dtype: grouped_attention(32, 8, 2, 16, dtype),
    "MLA": lambda dtype: latent_attention(32, 8, 24, 8, 16, 16, dtype),
}


@pytest.mark.parametrize("name", FOR_THE_KERNEL)
def test_the_kernel_of_l2_decodes_both_families(name):
    """`paged_decode` gets what `view` and `fold` give, K and V apart or one latent for both."""
    make = FOR_THE_KERNEL[name]
    exact = random_model(make(torch.float64))
    model = random_model(make(torch.float32), dtype=torch.float32, device=DEVICE)
    cache = PagedKVCache(model.attention.spec, num_layers=2, num_pages=8, page_size=16, device=DEVICE)
    texts = [tokens_of(n, seed=n) for n in (15, 4)]
    seqs = [cache.allocate() for _ in texts]
    for seq, text in zip(seqs, texts, strict=True):
        prefill(model, cache, seq, text.to(DEVICE))
    for step in range(3):
        new = tokens_of(2, seed=step)
        texts = [torch.cat([text, new[b : b + 1]]) for b, text in enumerate(texts)]
        logits = decode_step(model, cache, seqs, new.to(DEVICE), decode=paged_decode).cpu()
        plain = torch.stack([model.forward(text.to(DEVICE))[-1] for text in texts]).cpu()
        expected = torch.stack([exact.forward(text)[-1] for text in texts])
        # Both tokens are one row, for a single one may be right by luck in the plain order.
        assert_twice_as_good(logits[None], [plain[None]], expected[None], f"logits of step {step}")


def test_the_model_does_not_ask_for_the_family():
    """No branch at all in the code that uses a CacheSpec, and no name of a family or of an entry."""
    tree = ast.parse(inspect.getsource(l0_small_model))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp | ast.Match)]
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not texts & {"k", "v", "latent", "MHA", "GQA", "MQA", "MLA"}
