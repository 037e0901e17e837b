"""Every refusal: before any launch, naming the argument, what it is and what was wanted."""

import re

import pytest
import torch

from kernels import merge_states, split_kv_decode, split_kv_decode_unnormalized
from tests.helpers.cases import PLAIN, Shape, make_case
from tests.helpers.decoders import DECODERS, LESSON_DECODERS
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import DEVICE

decoders = pytest.mark.parametrize("name", DECODERS)
lesson_decoders = pytest.mark.parametrize("name", LESSON_DECODERS)
forms = pytest.mark.parametrize(
    "decode", [split_kv_decode, split_kv_decode_unnormalized], ids=lambda f: f.__name__
)

# PLAIN: 4 query heads, 2 KV heads, D = 32, 16 tokens a page; 2 sequences of 20 tokens, 4 columns, 7 pages.
ARGUMENTS = ("q", "k_cache", "v_cache", "block_table", "seq_lens")


def _call(name, **changes):
    """The decoder on a good case, save for what `changes` replaces; a function is applied to the argument."""
    case = make_case([20, 20])
    arguments = dict(zip(ARGUMENTS, case.args, strict=True)) | case.kwargs
    for key, change in changes.items():
        arguments[key] = change(arguments[key]) if callable(change) else change
    positional = [arguments.pop(key) for key in ARGUMENTS]
    return DECODERS[name](*positional, **arguments)


def _on_another_device(tensor):
    return tensor.to("meta")


def _every_other(tensor):
    """The same values, two elements apart."""
    return tensor.repeat_interleave(2, -1)[..., ::2]


half, double, int64 = torch.Tensor.half, torch.Tensor.double, torch.Tensor.long

REFUSALS = {
    # argument: (change, error, what the argument is, what was wanted)
    "q: rank": ({"q": lambda t: t[0]}, ValueError, "q is float32 [4, 32]", "[B, Hq, D]"),
    "q: no tensor": ({"q": lambda t: None}, TypeError, "q is None", "a tensor [B, Hq, D]"),
    "q: dtype": ({"q": double}, TypeError, "q is float64 [2, 4, 32]", "float16, bfloat16 or float32"),
    "q: integers": ({"q": int64}, TypeError, "q is int64", "float16, bfloat16 or float32"),
    "q: stride": ({"q": _every_other}, ValueError, "the last stride of q is 2", "1"),
    "q: heads": ({"q": lambda t: t[:, :3]}, ValueError, "Hq is 3", "multiple of Hkv = 2"),
    "q: no heads": ({"q": lambda t: t[:, :0]}, ValueError, "Hq is 0", "multiple of Hkv = 2"),
    "q: batch": ({"q": lambda t: t[:1]}, ValueError, "block_table is int32 [2, 4]", "1 rows"),
    "q: head dim": ({"q": lambda t: t[..., :16]}, ValueError, "the last dim of k_cache is 32", "16"),
    "k_cache: rank": ({"k_cache": lambda t: t[0]}, ValueError, "k_cache is float32 [16, 2, 32]", "D]"),
    "k_cache: no tensor": (
        {"k_cache": lambda t: 7},
        TypeError,
        "k_cache is 7",
        "a tensor [num_pages, page_size",
    ),
    "k_cache: dtype": ({"k_cache": half}, TypeError, "k_cache is float16", "float32"),
    "k_cache: device": ({"k_cache": _on_another_device}, ValueError, "on meta", f"on {DEVICE.type}"),
    "k_cache: stride": ({"k_cache": _every_other}, ValueError, "the last stride of k_cache is 2", "1"),
    "v_cache: rank": ({"v_cache": lambda t: t[0]}, ValueError, "v_cache is float32 [16, 2, 32]", "D]"),
    "v_cache: dtype": ({"v_cache": half}, TypeError, "v_cache is float16", "float32"),
    "v_cache: device": ({"v_cache": _on_another_device}, ValueError, "on meta", f"on {DEVICE.type}"),
    "v_cache: stride": ({"v_cache": _every_other}, ValueError, "the last stride of v_cache is 2", "1"),
    "v_cache: pages": (
        {"v_cache": lambda t: t[1:]},
        ValueError,
        "v_cache is float32 [6, 16, 2, 32]",
        "k_cache",
    ),
    "v_cache: head dim": (
        {"v_cache": lambda t: t[..., :16]},
        ValueError,
        "v_cache is float32 [7, 16, 2, 16]",
        "k_ca",
    ),
    "block_table: rank": (
        {"block_table": lambda t: t[0]},
        ValueError,
        "block_table is int32 [4]",
        "[B, max_pages]",
    ),
    "block_table: dtype": ({"block_table": int64}, TypeError, "block_table is int64 [2, 4]", "int32"),
    "block_table: device": (
        {"block_table": _on_another_device},
        ValueError,
        "block_table is int32",
        DEVICE.type,
    ),
    "block_table: rows": (
        {"block_table": lambda t: t[:1]},
        ValueError,
        "block_table is int32 [1, 4]",
        "2 rows",
    ),
    "block_table: stride": (
        {"block_table": _every_other},
        ValueError,
        "the last stride of block_table is 2",
        "1",
    ),
    "seq_lens: rank": ({"seq_lens": lambda t: t[None]}, ValueError, "seq_lens is int32 [1, 2]", "[B]"),
    "seq_lens: dtype": ({"seq_lens": int64}, TypeError, "seq_lens is int64 [2]", "int32"),
    "seq_lens: no tensor": (
        {"seq_lens": lambda t: [20, 20]},
        TypeError,
        "seq_lens is [20, 20]",
        "a tensor [B]",
    ),
    "seq_lens: device": ({"seq_lens": _on_another_device}, ValueError, "seq_lens is int32", DEVICE.type),
    "seq_lens: length": ({"seq_lens": lambda t: t[:1]}, ValueError, "seq_lens is int32 [1]", "2 lengths"),
    "seq_lens: stride": ({"seq_lens": _every_other}, ValueError, "the last stride of seq_lens is 2", "1"),
    "kv_layout": ({"kv_layout": "NDH"}, ValueError, "kv_layout is 'NDH'", "'NHD' or 'HND'"),
    "kv_layout: the other one": ({"kv_layout": "HND"}, ValueError, "Hq is 4", "multiple of Hkv = 16"),
}


@pytest.mark.parametrize(("changes", "error", "what", "wanted"), REFUSALS.values(), ids=REFUSALS)
@decoders
def test_refusals(name, changes, error, what, wanted):
    with pytest.raises(error, match=re.escape(what) + ".*; wanted .*" + re.escape(wanted)):
        _call(name, **changes)


@decoders
def test_the_good_call_is_good(name):
    assert _call(name).shape == (2, 4, 32)


@pytest.mark.parametrize("page_size", [1, 8, 24, 256])
@lesson_decoders
def test_page_sizes_of_another_kernel(name, page_size):
    case = make_case([3], Shape(2, 32, page_size))
    with pytest.raises(
        ValueError, match=rf"page_size is {page_size}; wanted a power of two from 16 to 128.*fast_decode"
    ):
        DECODERS[name](*case.args)


@decoders
def test_pages_of_no_tokens(name):
    """Refused before checked mode divides by it."""
    q, k, v, table, lens = make_case([20]).args
    with pytest.raises(ValueError, match="page_size is 0; wanted at least 1 token"):
        DECODERS[name](q, k[:, :0], v[:, :0], table, lens)


@lesson_decoders
def test_query_heads_too_far_apart(name):
    """The lesson kernels take a head's offset in int32."""
    q, *rest = make_case([20], dtype=torch.float16, num_kv_heads=1).args
    head_dim = q.shape[2]
    buffer = torch.empty(2**31 + head_dim, dtype=q.dtype, device=DEVICE)  # not touched
    far = buffer.as_strided((1, 2, head_dim), (1, 2**31, 1))
    with pytest.raises(ValueError, match="a sequence of q is 2147483648; wanted less than 2"):
        LESSON_DECODERS[name](far, *rest)


@pytest.mark.parametrize("head_dim", [8, 72, 96, 512])
@lesson_decoders
def test_head_dims_of_another_kernel(name, head_dim):
    case = make_case([3], Shape(2, head_dim, 16))
    with pytest.raises(
        ValueError, match=rf"head_dim is {head_dim}; wanted a power of two from 16 to 256.*fast_decode"
    ):
        DECODERS[name](*case.args)


@decoders
def test_groups_that_are_too_large(name):
    case = make_case([3], Shape(65, 32, 16), num_kv_heads=1)
    with pytest.raises(ValueError, match=r"Hq / Hkv is 65; wanted 1 to 64 query heads a KV head"):
        DECODERS[name](*case.args)


@pytest.mark.parametrize("num_splits", [0, -1, 65536, 2.0, "3"])
@forms
def test_numbers_of_splits(decode, num_splits):
    with pytest.raises(ValueError, match=f"num_splits is {num_splits}; wanted .*1 to 65535"):
        decode(*make_case([20]).args, num_splits=num_splits)


@pytest.mark.parametrize("max_seq_len", [-1, 2.0, "3"])
@forms
def test_longest_lengths(decode, max_seq_len):
    with pytest.raises(ValueError, match=f"max_seq_len is {max_seq_len}; wanted .*int >= 0"):
        decode(*make_case([20]).args, max_seq_len=max_seq_len)


def _states(num_splits=2, head_dim=8):
    return torch.zeros(num_splits, 3, 4, head_dim, device=DEVICE), torch.zeros(
        num_splits, 3, 4, device=DEVICE
    )


@pytest.mark.parametrize(
    ("o", "lse", "error", "message"),
    [
        (lambda o: o[0], None, ValueError, r"o is float32 \[3, 4, 8\].*wanted \[S, B, Hq, D\]"),
        (lambda o: o[:0], lambda lse: lse[:0], ValueError, r"o is float32 \[0, 3, 4, 8\].*wanted .*S >= 1"),
        (lambda o: o[..., :0], None, ValueError, r"o is float32 \[2, 3, 4, 0\].*wanted .*D >= 1"),
        (lambda o: o.double(), None, TypeError, "o is float64.*wanted float16, bfloat16 or float32"),
        (_every_other, None, ValueError, "the last stride of o is 2; wanted 1"),
        (None, lambda lse: lse[..., None], ValueError, r"lse is float32 \[2, 3, 4, 1\].*wanted \[S, B, Hq\]"),
        (None, lambda lse: lse.half(), TypeError, "lse is float16.*wanted float32"),
        (None, lambda lse: lse[:1], ValueError, r"lse is float32 \[1, 3, 4\].*wanted .*\[2, 3, 4\]"),
        (None, _on_another_device, ValueError, f"lse is .* on meta; wanted .*{DEVICE.type}"),
        (None, lambda lse: 1.0, TypeError, r"lse is 1.0; wanted a tensor \[S, B, Hq\]"),
    ],
)
def test_merge_states_refuses(o, lse, error, message):
    good_o, good_lse = _states()
    with pytest.raises(error, match=message):
        merge_states(o(good_o) if o else good_o, lse(good_lse) if lse else good_lse)


@interpreter_only
@decoders
def test_bf16_in_the_interpreter(name):
    case = make_case([20], PLAIN, torch.bfloat16)
    with pytest.raises(TypeError, match=r"q is bfloat16 .*wanted float16 or float32.*interpreter.*GPU"):
        DECODERS[name](*case.args)


@interpreter_only
def test_bf16_states_in_the_interpreter():
    o, lse = _states()
    with pytest.raises(TypeError, match=r"o is bfloat16 .*wanted float16 or float32.*interpreter.*GPU"):
        merge_states(o.bfloat16(), lse)


@gpu_only
@decoders
def test_cpu_tensors_without_the_interpreter(name):
    case = make_case([20])
    with pytest.raises(ValueError, match=r"q is .* on cpu; wanted a tensor on a GPU, or TRITON_INTERPRET=1"):
        DECODERS[name](*(t.cpu() for t in case.args))


@decoders
def test_heads_too_far_apart(name):
    """A head-major cache in one buffer: kv_head * stride_h would pass 2**31, and wrap in int32."""
    case = make_case([20, 20], dtype=torch.float16)
    num_pages, page_size, num_kv_heads, head_dim = case.k_cache.shape
    buffer = torch.empty(2**31 + case.k_cache.numel(), dtype=torch.float16, device=DEVICE)  # not touched
    strides = (page_size * head_dim, head_dim, 2**31, 1)
    far = buffer.as_strided((num_pages, page_size, num_kv_heads, head_dim), strides)
    q, _, _, *rest = case.args
    for caches, wrong in (((far, case.v_cache), "k_cache"), ((case.k_cache, far), "v_cache")):
        message = rf"the offset of the last row of a page of {wrong} is \d+; wanted less than 2\*\*31"
        with pytest.raises(ValueError, match=message):
            DECODERS[name](q, *caches, *rest)


@gpu_only
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA GPUs")
def test_another_device_than_the_current_one():
    case = make_case([20])
    with (
        torch.cuda.device(1),
        pytest.raises(ValueError, match="wanted a tensor on cuda:1, the current device"),
    ):
        DECODERS["packed"](*case.args)
