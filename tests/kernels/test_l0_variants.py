"""TPA, GTA and GLA: what is rebuilt from what they store, element by element."""

import pytest
import torch

from kernels.l0_mla import latent_spec
from kernels.l0_shapes import grouped_spec
from kernels.l0_variants import grouped_latent_spec, tensor_product_spec, tied_spec

CLOSE = {"rtol": 0, "atol": 1e-12}
TOKENS = 5


def random_stored(spec, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(TOKENS, entry.num_heads, entry.width, dtype=torch.float64, generator=rng)
        for name, entry in spec.entries.items()
    }


def test_tpa_is_a_mean_of_outer_products():
    spec = tensor_product_spec(num_heads=3, head_dim=4, rank_k=2, rank_v=5)
    stored = random_stored(spec)
    k, v = spec.expand(stored, {})
    for rebuilt, a, b, rank in ((k, "a_k", "b_k", 2), (v, "a_v", "b_v", 5)):
        for t, h in ((t, h) for t in range(TOKENS) for h in range(3)):
            expected = sum(stored[a][t, r, h] * stored[b][t, r] for r in range(rank)) / rank
            torch.testing.assert_close(rebuilt[t, h], expected, **CLOSE)


def test_tpa_of_full_rank_with_fixed_a_is_mha():
    """R = H and a_k = H times the identity, the same for every token: b_k is K itself."""
    spec = tensor_product_spec(num_heads=3, head_dim=4, rank_k=3, rank_v=3)
    fixed = 3 * torch.eye(3, dtype=torch.float64).expand(TOKENS, 3, 3)
    stored = random_stored(spec) | {"a_k": fixed, "a_v": fixed}
    k, v = spec.expand(stored, {})
    torch.testing.assert_close(k, stored["b_k"], **CLOSE)
    torch.testing.assert_close(v, stored["b_v"], **CLOSE)


def test_gta_ties_k_to_v():
    spec = tied_spec(num_kv_heads=2, head_dim=6, d_rope=2)
    stored = random_stored(spec)
    k, v = spec.expand(stored, {})
    assert torch.equal(v, stored["kv"]) and torch.equal(k[..., :4], v[..., :4])
    assert all(torch.equal(k[:, h, 4:], stored["k_rope"][:, 0]) for h in range(2))


def test_gla_of_one_latent_is_mla():
    sizes = (4, 7, 2, 5, 3)  # Hq, d_c, d_rope, d_nope, d_v
    mla, gla = latent_spec(*sizes), grouped_latent_spec(4, 1, *sizes[1:])
    stored = random_stored(gla)
    weights = {
        "w_uk": torch.randn(7, 20, dtype=torch.float64), "w_uv": torch.randn(7, 12, dtype=torch.float64)
    }  # fmt: skip
    latent = torch.cat([stored["latents"], stored["k_rope"]], dim=-1)
    for ours, theirs in zip(
        gla.expand(stored, weights), mla.expand({"latent": latent}, weights), strict=True
    ):
        torch.testing.assert_close(ours, theirs, **CLOSE)
    assert gla.elements_per_token == mla.elements_per_token and gla.sm_scale == mla.sm_scale


def test_gla_heads_read_their_own_latent():
    spec = grouped_latent_spec(6, 2, 7, 2, 5, 3)
    stored = random_stored(spec)
    weights = {
        "w_uk": torch.randn(14, 15, dtype=torch.float64), "w_uv": torch.randn(14, 9, dtype=torch.float64)
    }  # fmt: skip
    k, v = spec.expand(stored, weights)
    for h in range(6):
        i, j = h // 3, h % 3
        c, rows = stored["latents"][:, i], slice(7 * i, 7 * i + 7)
        torch.testing.assert_close(k[:, h, :5], c @ weights["w_uk"][rows, 5 * j : 5 * j + 5], **CLOSE)
        torch.testing.assert_close(v[:, h], c @ weights["w_uv"][rows, 3 * j : 3 * j + 3], **CLOSE)


@pytest.mark.parametrize(
    ("spec", "elements"),
    [
        (tensor_product_spec(32, 128, 2, 2), (2 + 2) * (32 + 128)),
        (tied_spec(8, 128, 64), 8 * 128 + 64),
        (grouped_latent_spec(32, 2, 256, 64, 128, 128), 2 * 256 + 64),
        (grouped_spec(32, 1, 256), 2 * 256),
    ],
    ids=["TPA", "GTA", "GLA", "MFA"],
)
def test_elements_a_token(spec, elements):
    assert spec.elements_per_token == elements
