"""A model that decodes with a cache: at every step the logits are those of a forward pass without one."""

import torch

from kernels.l0_mla import latent_attention
from kernels.l0_shapes import grouped_attention
from kernels.l0_small_model import decode_step, prefill, random_model
from kernels.l1_paged_cache import PagedKVCache

for attention in (
    grouped_attention(24, 6, 2, 4, torch.float64),  # Dm, Hq, Hkv, D
    latent_attention(24, 4, 7, 6, 5, 3, torch.float64),  # Dm, Hq, d_c, d_rope, d_nope, d_v
):
    model = random_model(attention)
    cache = PagedKVCache(attention.spec, num_pages=8, page_size=4, num_layers=2)
    seq, text = cache.allocate(), torch.tensor([3, 1, 4, 1, 5])
    logits, errors = prefill(model, cache, seq, text)[-1], []
    for _ in range(4):
        text = torch.cat([text, logits.argmax()[None]])
        logits = decode_step(model, cache, [seq], text[-1:])[0]
        errors.append((logits - model.forward(text)[-1]).abs().max().item())
    print(f"{attention.spec.name}: logits {list(logits.shape)}, pages {cache.table.pages(seq)}")
    print("  4 tokens, the same up to rounding:", max(errors) < 1e-12)
