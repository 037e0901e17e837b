"""MLA: the rebuilt and the absorbed reading, the shared rotated part, and GQA as a case of it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.l0_mla import latent_attention, latent_spec, latent_weights_of_grouped, selection
from kernels.l0_shapes import attend, grouped_attention, rotate
from tests.helpers.l0_weights import MODEL_DIM, attend_by_loop, random_tokens, random_weights, read_both_ways

CLOSE = {"rtol": 0, "atol": 1e-12}
HEADS, D_C, D_ROPE, D_NOPE, D_V = 3, 7, 4, 5, 6
SIZES = (HEADS, D_C, D_ROPE, D_NOPE, D_V)


def layer():
    attention = latent_attention(MODEL_DIM, *SIZES, torch.float64)
    return attention, random_weights(attention), random_tokens(8), torch.arange(8)


def test_k_and_v_by_their_equations():
    """c = x W_DKV; k_h = [c W_UK,h ; rot(x W_KR)], v_h = c W_UV,h, head by head and token by token."""
    attention, weights, x, positions = layer()
    _, stored = attention.project(x, positions, weights)
    k, v = attention.spec.expand(stored, weights)
    for t in range(len(x)):
        c = x[t] @ weights["w_dkv"]
        torch.testing.assert_close(stored["latent"][t, 0, :D_C], c, **CLOSE)
        k_rope = rotate((x[t] @ weights["w_kr"])[None, None], positions[t : t + 1])[0, 0]
        torch.testing.assert_close(stored["latent"][t, 0, D_C:], k_rope, **CLOSE)
        for h in range(HEADS):
            w_uk = weights["w_uk"][:, h * D_NOPE : (h + 1) * D_NOPE]
            w_uv = weights["w_uv"][:, h * D_V : (h + 1) * D_V]
            torch.testing.assert_close(k[t, h], torch.cat([c @ w_uk, k_rope]), **CLOSE)
            torch.testing.assert_close(v[t, h], c @ w_uv, **CLOSE)


def test_only_part_of_the_query_is_rotated():
    attention, weights, x, positions = layer()
    q, _ = attention.project(x, positions, weights)
    still, _ = attention.project(x, positions * 0, weights)
    assert torch.equal(q[..., :D_NOPE], still[..., :D_NOPE])
    torch.testing.assert_close(q[..., D_NOPE:], rotate(still[..., D_NOPE:], positions), **CLOSE)


def test_absorbing_w_uk_moves_it_to_the_query():
    """q . (c W_UK) = (q W_UK^T) . c: one score, both ways."""
    attention, weights, x, positions = layer()
    spec = attention.spec
    q, stored = attention.project(x, positions, weights)
    k, _ = spec.expand(stored, weights)
    folded, latent = spec.fold(q, weights), stored["latent"]
    assert folded.shape == (len(x), HEADS, D_C + D_ROPE)
    for h in range(HEADS):
        w_uk = weights["w_uk"][:, h * D_NOPE : (h + 1) * D_NOPE]
        torch.testing.assert_close(folded[:, h, :D_C], q[:, h, :D_NOPE] @ w_uk.T, **CLOSE)
        torch.testing.assert_close(q[:, h] @ k[:, h].T, folded[:, h] @ latent[:, 0].T, **CLOSE)


def test_absorbing_w_uv_moves_it_behind_the_sum():
    """sum p_t (c_t W_UV) = (sum p_t c_t) W_UV."""
    attention, weights, x, positions = layer()
    _, stored = attention.project(x, positions, weights)
    _, v = attention.spec.expand(stored, weights)
    p = torch.softmax(torch.arange(8, dtype=torch.float64), 0)
    mean_of_latents = torch.einsum("t,tc->c", p, stored["latent"][:, 0])
    o = attention.spec.unfold(mean_of_latents.expand(HEADS, -1), weights)
    torch.testing.assert_close(o, torch.einsum("t,thd->hd", p, v), **CLOSE)


def test_rebuilt_is_attention_by_its_definition():
    attention, weights, x, positions = layer()
    spec = attention.spec
    q, stored = attention.project(x, positions, weights)
    k, v = spec.expand(stored, weights)
    rebuilt, _ = read_both_ways(attention, weights, x, positions)
    torch.testing.assert_close(rebuilt, attend_by_loop(q, k, v, spec.sm_scale), **CLOSE)


def test_the_scale_is_that_of_the_heads_not_of_the_latent():
    spec = latent_spec(128, 512, 64, 128, 128)  # DeepSeek-V3
    assert spec.sm_scale == 192**-0.5 and spec.elements_per_token == 576
    assert spec.bytes_per_token == 1152


def test_one_latent_serves_any_number_of_heads():
    assert latent_spec(128, *SIZES[1:]).entries == latent_spec(2, *SIZES[1:]).entries


def test_a_selection_copies_the_head_of_the_group():
    w = selection(4, 2, 3, first=6)
    assert w.shape == (12, 12) and w.sum() == 12 and set(w.unique().tolist()) == {0.0, 1.0}
    latent = torch.arange(12, dtype=torch.float64)
    assert (latent @ w).view(4, 3).tolist() == [[6, 7, 8], [6, 7, 8], [9, 10, 11], [9, 10, 11]]


@given(
    num_kv_heads=st.integers(1, 3), group=st.integers(1, 4), head_dim=st.sampled_from([2, 4, 6]),
    num_tokens=st.integers(1, 9), seed=st.integers(0, 99),
)  # fmt: skip
def test_gqa_is_a_case_of_mla(num_kv_heads, group, head_dim, num_tokens, seed):
    """Without RoPE (every token at position 0): same x, same o, and the latent is [K; V]."""
    sizes = (group * num_kv_heads, num_kv_heads, head_dim)
    grouped = grouped_attention(MODEL_DIM, *sizes, torch.float64)
    d_c = 2 * num_kv_heads * head_dim
    latent = latent_attention(MODEL_DIM, sizes[0], d_c, 0, head_dim, head_dim, torch.float64)
    weights = random_weights(grouped, seed)
    latent_weights = latent_weights_of_grouped(weights, *sizes)
    assert {name: tuple(w.shape) for name, w in latent_weights.items()} == latent.shapes
    assert latent.spec.elements_per_token == grouped.spec.elements_per_token
    assert latent.spec.sm_scale == grouped.spec.sm_scale

    x, nowhere = random_tokens(num_tokens, seed + 1), torch.zeros(num_tokens)
    expected, _ = read_both_ways(grouped, weights, x, nowhere)
    for o in read_both_ways(latent, latent_weights, x, nowhere):
        torch.testing.assert_close(o, expected, **CLOSE)


def rotated_example():
    """GQA with RoPE, its weights as MLA's, and what both layers store."""
    sizes = (6, 2, 4)
    grouped = grouped_attention(MODEL_DIM, *sizes, torch.float64)
    latent = latent_attention(MODEL_DIM, 6, 16, 0, 4, 4, torch.float64)
    weights = random_weights(grouped)
    x, positions = random_tokens(9), torch.arange(9)
    q, stored = grouped.project(x, positions, weights)
    return grouped, latent, weights, latent_weights_of_grouped(weights, *sizes), x, positions, q, stored


def test_with_the_rotated_k_in_the_latent_it_still_is():
    """The reading is the same map; only what is stored differs: [rot(K); V]."""
    grouped, latent, weights, latent_weights, x, positions, q, stored = rotated_example()
    kv = torch.cat([stored["k"].flatten(1), stored["v"].flatten(1)], dim=-1)[:, None]
    expected, _ = read_both_ways(grouped, weights, x, positions)
    spec = latent.spec
    k, v = spec.expand({"latent": kv}, latent_weights)
    assert torch.equal(k, stored["k"].repeat_interleave(3, dim=1))  # a selection rounds nothing
    assert torch.equal(v, stored["v"].repeat_interleave(3, dim=1))
    rebuilt = attend(q, k, v, spec.sm_scale)
    o = attend(spec.fold(q, latent_weights), *spec.view({"latent": kv}, latent_weights), spec.sm_scale)
    torch.testing.assert_close(rebuilt, expected, **CLOSE)
    torch.testing.assert_close(spec.unfold(o, latent_weights), expected, **CLOSE)


def test_the_latent_of_x_alone_cannot_hold_rope():
    """A rotation depends on the position: no fixed matrix after x W_DKV gives it."""
    grouped, latent, weights, latent_weights, x, positions, q, _ = rotated_example()
    expected, _ = read_both_ways(grouped, weights, x, positions)
    _, unrotated = latent.project(x, positions, latent_weights)  # d_rope = 0: positions do not matter
    k, v = latent.spec.expand(unrotated, latent_weights)
    o = attend(q, k, v, latent.spec.sm_scale)
    assert (o - expected).abs().max() > 0.1


@pytest.mark.parametrize("transposed", ["w_uk", "w_uv"])
def test_heads_of_the_weights_lie_one_after_the_other(transposed):
    """Read as [d, Hq] in place of [Hq, d], a matrix gives other numbers of the same shape."""
    attention, weights, x, positions = layer()
    wrong = weights[transposed].unflatten(1, (-1, HEADS)).transpose(1, 2).flatten(1)
    right, _ = read_both_ways(attention, weights, x, positions)
    other, _ = read_both_ways(attention, weights | {transposed: wrong}, x, positions)
    assert right.shape == other.shape and (right - other).abs().max() > 0.1
