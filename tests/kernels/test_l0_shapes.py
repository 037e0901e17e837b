"""From a token to Q, K, V: every equation of the lesson as an equality, in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.l0_shapes import (
    Entry,
    attend,
    grouped_attention,
    grouped_spec,
    kv_head_of,
    project,
    project_by_loop,
    project_token,
    rotate,
    split_heads,
)
from kernels.reference import paged_attention_reference
from tests.helpers.l0_weights import (
    ATTENTIONS,
    MODEL_DIM,
    attend_by_loop,
    random_tokens,
    random_weights,
    read_both_ways,
)
from tests.helpers.oracle import assert_twice_as_good

CLOSE = {"rtol": 0, "atol": 1e-12}  # float64, numbers of the order of 1: rounding and nothing else


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_one_token_by_its_definition():
    x, w = normal(5), normal(5, 3, seed=1)
    expected = [sum(float(x[i] * w[i, j]) for i in range(5)) for j in range(3)]
    torch.testing.assert_close(project_token(x, w), torch.tensor(expected, dtype=torch.float64), **CLOSE)


@given(batch=st.integers(1, 3), num_tokens=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_batch_is_a_loop_over_tokens(batch, num_tokens, seed):
    x, w = normal(batch, num_tokens, 6, seed=seed), normal(6, 4, seed=seed + 1)
    torch.testing.assert_close(project(x, w), project_by_loop(x, w), **CLOSE)
    for b in range(batch):
        for t in range(num_tokens):
            torch.testing.assert_close(project(x, w)[b, t], project_token(x[b, t], w), **CLOSE)


def test_weights_do_not_grow_with_the_batch():
    """One matrix serves every b and t: shuffling the tokens shuffles the results, and no more."""
    x, w = normal(2, 5, 6), normal(6, 4, seed=1)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(project(x[:, order], w), project(x, w)[:, order], **CLOSE)


def test_heads_are_a_view():
    flat = torch.arange(2 * 3 * 20).view(2, 3, 20)
    heads = split_heads(flat, 5)
    assert heads.shape == (2, 3, 5, 4) and heads.data_ptr() == flat.data_ptr()
    for h in range(5):
        assert torch.equal(heads[:, :, h], flat[:, :, h * 4 : (h + 1) * 4])
    assert not torch.equal(heads, flat.view(2, 3, 4, 5).transpose(2, 3))  # the same elements, read otherwise


def test_a_head_is_its_columns_of_the_matrix():
    """Projecting and then splitting is one matrix [Dm, D] a head."""
    x, w = normal(7, 6), normal(6, 3 * 4, seed=1)
    heads = split_heads(project(x, w), 3)
    for h in range(3):
        torch.testing.assert_close(heads[:, h], project(x, w[:, h * 4 : (h + 1) * 4]), **CLOSE)


def test_head_map():
    assert [kv_head_of(h, 4) for h in range(32)] == [h // 4 for h in range(32)]
    assert [h for h in range(32) if kv_head_of(h, 4) == 3] == [12, 13, 14, 15]


def test_rotation_of_one_pair():
    """Position 2, the first pair (rate 1): an angle of 2 radians; the second pair at base 100: 0.2."""
    x = torch.tensor([[[1.0, 1.0, 0.0, 0.0]]], dtype=torch.float64)
    turned = rotate(x, torch.tensor([2]), base=100.0)[0, 0].tolist()
    assert turned == pytest.approx([math.cos(2), math.cos(0.2), math.sin(2), math.sin(0.2)])


@given(shift=st.integers(0, 500), first=st.integers(0, 50), second=st.integers(0, 50))
def test_rotated_scores_know_the_distance_alone(shift, first, second):
    q, k = normal(1, 1, 8), normal(1, 1, 8, seed=1)

    def score(i: int, j: int) -> float:
        return float((rotate(q, torch.tensor([i])) * rotate(k, torch.tensor([j]))).sum())

    assert score(first, second) == pytest.approx(score(first + shift, second + shift), abs=1e-9)


def test_rotation_keeps_lengths_and_position_zero():
    x = normal(5, 3, 8)
    turned = rotate(x, torch.arange(5))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), **CLOSE)
    assert torch.equal(turned[0], x[0]) and not torch.equal(turned[1], x[1])
    assert rotate(x[..., :0], torch.arange(5)).shape == (5, 3, 0)


@given(
    num_queries=st.integers(1, 6), before=st.integers(0, 5), group=st.integers(1, 3),
    heads=st.integers(1, 3), seed=st.integers(0, 99),
)  # fmt: skip
def test_attend_is_its_definition(num_queries, before, group, heads, seed):
    num_tokens = num_queries + before
    q = normal(num_queries, group * heads, 4, seed=seed)
    k, v = normal(num_tokens, heads, 4, seed=seed + 1), normal(num_tokens, heads, 3, seed=seed + 2)
    torch.testing.assert_close(attend(q, k, v, 0.5), attend_by_loop(q, k, v, 0.5), **CLOSE)


def test_attend_of_the_last_token_is_the_reference_of_l2():
    """One query token over its sequence: the specification that the kernels of L2 are held to."""
    q, k, v = normal(1, 6, 8), normal(11, 2, 8, seed=1), normal(11, 2, 8, seed=2)
    pages = torch.full((2, 2, 8, 2, 8), math.nan, dtype=torch.float64)  # K and V, two pages of 8
    for cache, tokens in zip(pages, (k, v), strict=True):
        cache[1], cache[0, :3] = tokens[:8], tokens[8:]
    table, lens = torch.tensor([[1, 0]], dtype=torch.int32), torch.tensor([11], dtype=torch.int32)
    paged = paged_attention_reference(q, *pages, table, lens, sm_scale=0.3)
    torch.testing.assert_close(attend(q, k, v, 0.3), paged, **CLOSE)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 6])
def test_fewer_kv_heads_are_repeated_columns(num_kv_heads):
    """GQA and MQA are MHA whose W_K and W_V repeat the columns of a KV head."""
    grouped = grouped_attention(MODEL_DIM, 6, num_kv_heads, 4)
    full = grouped_attention(MODEL_DIM, 6, 6, 4)
    weights = random_weights(grouped)
    repeated = {
        name: weights[name].unflatten(1, (-1, 4)).repeat_interleave(6 // num_kv_heads, dim=1).flatten(1)
        for name in ("w_k", "w_v")
    }
    x, positions = random_tokens(9), torch.arange(9)
    o, _ = read_both_ways(grouped, weights, x, positions)
    expected, _ = read_both_ways(full, weights | repeated, x, positions)
    torch.testing.assert_close(o, expected, **CLOSE)


@pytest.mark.parametrize(("num_kv_heads", "name"), [(8, "MHA"), (2, "GQA"), (1, "MQA")])
def test_what_grouped_heads_store(num_kv_heads, name):
    spec = grouped_spec(8, num_kv_heads, 16)
    assert (spec.name, spec.elements_per_token) == (name, 2 * num_kv_heads * 16)
    assert spec.bytes_per_token == 2 * spec.elements_per_token
    assert set(spec.entries) == {"k", "v"} and spec.sm_scale == 0.25


def test_entries_have_a_dtype_each():
    assert Entry(1, 512, torch.float8_e4m3fn).num_bytes == 512
    assert Entry(2, 3, torch.float32).num_bytes == 24 and Entry(2, 3).num_elements == 6


def test_refusals():
    with pytest.raises(ValueError, match="num_qo_heads is 6; wanted a positive multiple of Hkv = 4"):
        grouped_spec(6, 4, 8)
    with pytest.raises(ValueError, match="num_qo_heads is 6; wanted a positive multiple of Hkv = 0"):
        grouped_spec(6, 0, 8)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_token_stores_what_its_spec_says(name):
    attention = ATTENTIONS[name](torch.float64)
    weights = random_weights(attention)
    q, stored = attention.project(random_tokens(5), torch.arange(5), weights)
    assert attention.spec.name == name and stored.keys() == attention.spec.entries.keys()
    for key, entry in attention.spec.entries.items():
        assert stored[key].shape == (5, entry.num_heads, entry.width)
    k, v = attention.spec.expand(stored, weights)
    assert k.shape[-1] == q.shape[-1] and attention.spec.sm_scale == q.shape[-1] ** -0.5
    assert v.shape[-1] * q.shape[-2] == weights["w_o"].shape[0]
    viewed = attention.spec.view(stored, weights)
    assert viewed[0].shape == viewed[1].shape
    assert {t.data_ptr() for t in viewed} <= {t.data_ptr() for t in stored.values()}  # nothing is copied


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_token_does_not_see_its_neighbours(name):
    """What is stored depends on the token and its position alone, so it can be kept."""
    attention = ATTENTIONS[name](torch.float64)
    weights, x = random_weights(attention), random_tokens(6)
    _, together = attention.project(x, torch.arange(6), weights)
    for t in range(6):
        _, alone = attention.project(x[t : t + 1], torch.tensor([t]), weights)
        for key in together:
            torch.testing.assert_close(alone[key][0], together[key][t], **CLOSE)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_only_distances_matter(name):
    """All positions moved by 37: the same result, so both q and K were rotated, and by the same rule."""
    attention = ATTENTIONS[name](torch.float64)
    weights, x = random_weights(attention), random_tokens(7)
    here, _ = read_both_ways(attention, weights, x, torch.arange(7))
    there, _ = read_both_ways(attention, weights, x, torch.arange(7) + 37)
    nowhere, _ = read_both_ways(attention, weights, x, torch.zeros(7))
    torch.testing.assert_close(there, here, rtol=0, atol=1e-10)
    assert (nowhere - here).abs().max() > 0.01


@given(name=st.sampled_from(list(ATTENTIONS)), num_tokens=st.integers(1, 9), seed=st.integers(0, 99))
def test_both_ways_to_read_agree(name, num_tokens, seed):
    attention = ATTENTIONS[name](torch.float64)
    weights = random_weights(attention, seed)
    rebuilt, viewed = read_both_ways(
        attention, weights, random_tokens(num_tokens, seed + 1), torch.arange(num_tokens)
    )
    torch.testing.assert_close(viewed, rebuilt, **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_the_viewed_reading_is_as_good_as_the_rebuilt_one(name, dtype):
    """In the dtype of a real cache: at most twice the error of the plain order of products."""
    attention = ATTENTIONS[name](dtype)
    weights, x = random_weights(attention, dtype=dtype), random_tokens(12, dtype=dtype)
    exact = {key: w.double() for key, w in weights.items()}
    expected, _ = read_both_ways(ATTENTIONS[name](torch.float64), exact, x.double(), torch.arange(12))
    rebuilt, viewed = read_both_ways(attention, weights, x, torch.arange(12))
    # The whole result is one row: a single token may be right by luck in either order.
    assert_twice_as_good(viewed[None], [rebuilt[None]], expected[None], name)
