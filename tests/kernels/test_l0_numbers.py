"""The numbers worked by hand on the page of L0, section by section, and the output of its program."""

import contextlib
import io
import math
import re

import pytest
import torch

from kernels.l0_mla import latent_spec
from kernels.l0_shapes import attend, grouped_attention, grouped_spec, kv_head_of, rotate, split_heads
from kernels.l0_small_model import decode_step, prefill, random_model
from kernels.l1_paged_cache import PagedKVCache
from scripts.bake_l0 import LONG, MODELS, elements, entries_of, load
from scripts.traces import l0_shapes as example
from tests.helpers.l0_weights import MODEL_DIM, random_tokens, random_weights, read_both_ways
from tests.helpers.lesson import assert_numbers, nbytes, sections
from tests.kernels.test_l0_pitfalls import module_of

LESSON = "l0_shapes"
V3 = {"num_qo_heads": 128, "d_c": 512, "d_rope": 64, "d_nope": 128, "d_v": 128}


def numbers(anchor: str, *pairs) -> None:
    assert_numbers(LESSON, anchor, list(pairs))


def said(anchor: str, *texts: str) -> None:
    """The section has each text, in both languages."""
    for lang in ("zh", "en"):
        for text in texts:
            assert text in sections(lang, LESSON)[anchor], f"docs/{lang}/lessons/{LESSON}.md#{anchor}: {text}"


def f64(rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def shown(rows) -> str:
    """A vector as the page prints it."""
    return "[" + ", ".join(f"{x:g}" for x in rows) + "]"


def test_heads():
    """#heads: the group of 32 and 8, and the bytes of a tensor of scores."""
    assert [h for h in range(32) if kv_head_of(h, 32 // 8) == 3] == [12, 13, 14, 15]
    numbers("heads", (nbytes(32, 32768, 32768), "68,719,476,736"))


def test_by_hand():
    """#by-hand: the picture's token."""
    token = example.token()
    x = f64(example.X)
    for name, w in (("q", example.W_Q), ("k", example.W_K), ("v", example.W_V)):
        flat = (x @ f64(w)).tolist()
        assert flat == token["flat"][name]
        said("by-hand", shown(flat), ", ".join(shown(head) for head in token["heads"][name]))
    assert token["scores"] == [4, 6, 4, 7] and token["kv_head"] == [0, 0, 1, 1]
    numbers("by-hand", *((score, str(score)) for score in token["scores"]))
    for lang in ("zh", "en"):
        matrices = re.findall(r"pmatrix\} (.*?) \\end", sections(lang, LESSON)["by-hand"])
        printed = [[[int(x) for x in row.split("&")] for row in m.split(r"\\")] for m in matrices]
        assert printed == [example.W_Q, example.W_K, example.W_V]


def test_bytes():
    """#bytes, and the first question of #check-yourself."""
    models = load(MODELS)

    def a_token(name: str) -> int:
        return 2 * elements(entries_of(models[name])) * models[name]["num_layers"]

    small, large = a_token("llama_3_8b"), a_token("llama_3_1_405b")
    layer = grouped_spec(32, 8, 128).bytes_per_token
    assert grouped_spec(128, 8, 128).bytes_per_token == layer == 2 * 8 * 128 * 2
    numbers("bytes", (layer, "4096"), (small, "131,072"), (large, "516,096"))
    numbers("bytes", (small * LONG / 1e9, "4.29"), (large * LONG / 1e9, "16.91"))
    numbers("bytes", (a_token("gemma_7b"), "458,752"), (a_token("gemma_7b") / small, "3.5"))
    numbers("bytes", (a_token("deepseek_v3"), "70,272"), (64 * 1024 * layer, "268,435,456"))
    assert a_token("deepseek_v3") / small == pytest.approx(0.536, abs=1e-3)
    numbers("check-yourself", (a_token("llama_3_70b"), "327,680"))
    assert divmod(1000, 128) == (7, 104)
    numbers("check-yourself", (7, "7"), (104, "104"))


def test_mla():
    """#mla, #absorb, #check-yourself and #interview: the sizes of DeepSeek-V3."""
    spec = latent_spec(**V3)
    rebuilt = 128 * ((128 + 64) + 128)
    for anchor in ("mla", "check-yourself"):
        numbers(anchor, (spec.elements_per_token, "576"), (rebuilt, "40,960"))
        numbers(anchor, (rebuilt / spec.elements_per_token, "71"))
    numbers("mla", (spec.bytes_per_token, "1152"))
    numbers("absorb", (2 * 512 * 128 * (128 + 128), "33,554,432"), (rebuilt, "40,960"))
    assert spec.sm_scale == pytest.approx((128 + 64) ** -0.5)
    assert 7168 * 512 > 7168 * 128 + 512 * 128


def test_absorbing_by_hand():
    """#absorb: two cached tokens and one head."""
    q, c = f64([2, 1]), f64([[1, 2], [0, 1]])
    w_uk, w_uv, p = f64([[1, 0], [1, 1]]), f64([[0, 1], [2, 0]]), f64([0.75, 0.25])
    keys, values = c @ w_uk, c @ w_uv
    folded, mean = w_uk @ q, p @ c
    said("absorb", *map(shown, [q, *c, *keys, *values, folded, mean, p @ values]))
    assert (keys @ q).tolist() == (c @ folded).tolist() == [8, 3]
    assert (mean @ w_uv).tolist() == (p @ values).tolist() == [3.5, 0.75]


def test_repeated_whole():
    """#pitfall-repeat"""
    q, k = torch.ones(1, 4, 2), torch.ones(3, 2, 2)
    v = torch.tensor([0.0, 1.0]).view(1, 2, 1).expand(3, 2, 2)
    wrong = module_of("heads_repeated_whole").attend
    said("pitfall-repeat", *(shown(mix(q, k, v, 1.0)[0, :, 0].tolist()) for mix in (attend, wrong)))


def test_transposed_view():
    """#pitfall-view"""
    flat = torch.tensor(example.token()["flat"]["q"])
    for split in (split_heads, module_of("heads_transposed").split_heads):
        said("pitfall-view", ", ".join(map(shown, split(flat, 4).tolist())))


def test_unrotated_keys():
    """#pitfall-rotation"""
    attention = module_of("keys_not_rotated").grouped_attention(MODEL_DIM, 6, 2, 4, torch.float64)
    weights, x = random_weights(attention), random_tokens(7)
    here, _ = read_both_ways(attention, weights, x, torch.arange(7))
    there, _ = read_both_ways(attention, weights, x, torch.arange(7) + 37)
    change = (here - there).abs().max().item()
    numbers("pitfall-rotation", (change, "1.18"), (here.abs().max().item(), "2.12"))


def test_other_pairs():
    """#pitfall-pairs"""
    x, position = f64([[[1, 1, 0, 0]]]), torch.tensor([2])
    for turn in (rotate, module_of("pairs_adjacent").rotate):
        values = turn(x, position, base=100.0).flatten().tolist()
        text = ", ".join("0" if value == 0 else f"{value:.3f}" for value in values).replace("-", "−")
        said("pitfall-pairs", f"[{text}]")


def test_scale_of_the_latent():
    """#pitfall-scale"""
    wrong = module_of("scale_of_the_latent").latent_spec(**V3).sm_scale
    assert wrong == pytest.approx(576**-0.5)
    numbers("pitfall-scale", (latent_spec(**V3).sm_scale / wrong, "1.73"), (math.sqrt(3), "1.73"))


def test_position_of_the_next():
    """#pitfall-position: one step after a prompt of six tokens."""
    model = random_model(grouped_attention(MODEL_DIM, 6, 2, 4, torch.float64))
    text, new = torch.arange(6), torch.tensor([7])
    expected = model.forward(torch.cat([text, new]))[-1]
    for step in (decode_step, module_of("position_of_the_next").decode_step):
        cache = PagedKVCache(model.attention.spec, num_layers=2, num_pages=8, page_size=4)
        seq = cache.allocate()
        prefill(model, cache, seq, text)
        logits = step(model, cache, [seq], new)[0]
        error = (logits - expected).abs().max().item()
        assert step is not decode_step or error < 1e-12
    numbers("pitfall-position", (error, "0.46"), (expected.abs().max().item(), "2.36"))
    assert logits.argmax() == expected.argmax()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_program_prints_what_the_page_says(lang):
    """#run"""
    text = sections(lang, LESSON)["run"]
    program = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    output = re.search(r"^```console\n\$[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "try_l0.py", "exec"), {})
    assert printed.getvalue() == output
