"""L3: split kernel and combine kernel, with (o, lse) partials and with un-normalised (m, l, acc) ones."""

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

from kernels import choose_num_splits, paged_decode, split_kv_decode, split_kv_decode_unnormalized
from kernels.l3_split_kv_decode import split_range
from tests.helpers.cases import (
    PLAIN,
    SHAPES,
    STORAGES,
    TRACED_CALLS,
    Shape,
    listed_lengths,
    make_case,
    sweep_case,
)
from tests.helpers.compile_once import compiled_rows
from tests.helpers.decoders import L3_DECODERS, OUTPUTS
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import DEVICE, DTYPES, dtype_name
from tests.helpers.oracle import assert_right, run_poisoned
from tests.helpers.traced import assert_clean, run_traced

decoders = pytest.mark.parametrize("name", L3_DECODERS)
forms = pytest.mark.parametrize(
    "decode", [split_kv_decode, split_kv_decode_unnormalized], ids=lambda f: f.__name__
)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)


@dtypes
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@decoders
def test_shapes(name, shape, dtype):
    assert_right(L3_DECODERS[name], sweep_case(shape, dtype))


@dtypes
@decoders
def test_lengths_around_the_edges_of_a_page(name, dtype):
    assert_right(L3_DECODERS[name], make_case(listed_lengths(PLAIN.page_size), PLAIN, dtype, num_kv_heads=1))


@pytest.mark.parametrize("num_splits", [1, 2, 3, 16, 40])
@forms
def test_numbers_of_splits_agree(decode, num_splits):
    """More splits than pages included: 40 against 5, and against none."""
    case = make_case([70, 0, 3], num_kv_heads=1)
    o, lse = assert_right(decode, case, num_splits=num_splits)
    whole_o, whole_lse = paged_decode(*case.args, return_lse=True)
    assert torch.allclose(o, whole_o, rtol=1e-5, atol=1e-6) and torch.allclose(
        lse, whole_lse, rtol=1e-6, atol=1e-6
    )


@forms
@pytest.mark.parametrize(("num_splits", "seq_len"), [(19, 300), (65, 1037)])
def test_more_splits_than_a_step_of_the_combine_takes(decode, num_splits, seq_len):
    """One page each; the un-normalised combine takes 16 a step, L3's 64, and head_dim is another number."""
    assert_right(decode, make_case([seq_len], PLAIN, num_kv_heads=1), num_splits=num_splits)


@dtypes
def test_one_split_is_l2(dtype):
    """One launch, nothing to merge: the same bits."""
    case = make_case([70, 0, 3], PLAIN, dtype)
    o, lse = assert_right(split_kv_decode, case, num_splits=1)
    whole_o, whole_lse = paged_decode(*case.args, return_lse=True)
    assert torch.equal(o, whole_o) and torch.equal(lse, whole_lse)
    assert torch.equal(split_kv_decode(*case.args, num_splits=1), whole_o)


@interpreter_only
@pytest.mark.parametrize(
    ("num_splits", "kernels"),
    [(1, ["_paged_decode_kernel"]), (2, ["_split_kernel", "_combine_kernel"])],
)
def test_what_is_launched(num_splits, kernels):
    case = make_case([37, 0])
    t = run_traced(split_kv_decode, case, num_splits=num_splits)
    assert [launch.kernel for launch in t.launches] == kernels
    assert_clean(t, case, OUTPUTS["packed" if num_splits == 1 else "split"])


@dtypes
@forms
def test_the_number_of_splits_may_be_left_to_the_host(decode, dtype):
    case = make_case([300, 0, 70], PLAIN, dtype, num_kv_heads=1)
    assert_right(decode, case)
    assert_right(decode, case, max_seq_len=300)
    # Only the choice depends on it, never the result.
    assert_right(decode, case, max_seq_len=0)


@pytest.mark.parametrize("lens", [[0], [0, 0, 0], [1], [16], [17, 0]], ids=str)
@forms
def test_empty_splits_and_empty_sequences(decode, lens):
    assert_right(decode, make_case(lens, num_kv_heads=1), num_splits=4)


@decoders
def test_no_sequences(name):
    o, lse = run_poisoned(L3_DECODERS[name], make_case([]))
    assert o.shape == (0, 4, 32) and lse.shape == (0, 4)


@forms
def test_a_table_without_columns(decode):
    case = make_case([0, 0], spare_columns=0)
    assert_right(decode, case)
    assert_right(decode, case, num_splits=2)


@decoders
def test_without_lse_the_same_o(name):
    case = make_case([20, 0], num_kv_heads=1)
    o = L3_DECODERS[name](*case.args)
    assert torch.equal(o, L3_DECODERS[name](*case.args, return_lse=True)[0])


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("storage", STORAGES)
@decoders
def test_layouts_and_strides(name, storage, kv_layout):
    assert_right(L3_DECODERS[name], make_case([37, 16], kv_layout=kv_layout, storage=storage, strided=True))


@pytest.mark.parametrize("sm_scale", [1e4, -1e4])
@decoders
def test_huge_scores_do_not_overflow(name, sm_scale):
    """All weight on one token of one split: its value comes back, whole."""
    case = make_case([37], num_kv_heads=1, sm_scale=sm_scale)
    o, lse = run_poisoned(L3_DECODERS[name], case)
    k, v = (c[case.block_table[0, :3].long()].flatten(0, 1)[:37, 0] for c in case.nhd_caches)
    scores = case.q[0].double() @ k.double().T * sm_scale
    assert torch.allclose(o[0], v[scores.argmax(1)], rtol=1e-6)
    assert torch.allclose(lse[0].double(), scores.amax(1), rtol=1e-6)


@decoders
def test_scores_far_below_zero(name):
    """The running maximum starts at -inf: from 0 on, every weight would be 0."""
    case = make_case([37, 5], num_kv_heads=1, sm_scale=-20.0)
    case.q.abs_()
    case.k_cache.abs_()
    _, lse = assert_right(L3_DECODERS[name], case)
    assert (lse < -100).all()


@dtypes
@decoders
def test_nothing_unused_changes_one_bit(name, dtype):
    def run(unused, beyond):
        case = make_case([17, 0, 1, 33], PLAIN, dtype, num_kv_heads=1, unused=unused, beyond=beyond)
        return run_poisoned(L3_DECODERS[name], case)

    largest = torch.finfo(dtype).max
    expected_o, expected_lse = run(float("nan"), -1)
    for unused, beyond in ((largest, 2**31 - 1), (-largest, -(2**31)), (float("inf"), 0)):
        o, lse = run(unused, beyond)
        assert torch.equal(o, expected_o) and torch.equal(lse, expected_lse)


@decoders
def test_scattered_pages_as_ordered_ones(name):
    scattered, ordered = (
        run_poisoned(L3_DECODERS[name], make_case([40, 70], num_kv_heads=1, ids=ids))
        for ids in ("scattered", "ordered")
    )
    assert torch.equal(scattered[0], ordered[0]) and torch.equal(scattered[1], ordered[1])


@decoders
def test_head_map(name):
    """V holds its KV head's number, so o shows which KV head each query head read: h // G."""
    case = make_case([20], Shape(4, 64, 16), num_kv_heads=5)
    case.v_cache[:] = torch.arange(5, device=case.v_cache.device)[:, None]
    o, _ = run_poisoned(L3_DECODERS[name], case)
    heads = torch.arange(5, device=o.device).repeat_interleave(4)
    assert torch.allclose(o[0], heads[:, None].float().expand_as(o[0]), atol=1e-5)


@forms
def test_what_the_partials_hold(decode):
    """Scratch of every (head, split), the empty ones included: nothing is left as it was allocated."""
    case = make_case([40, 0], num_kv_heads=1)
    o, lse = assert_right(decode, case, num_splits=4)
    assert not o.isnan().any() and not lse.isnan().any()


@interpreter_only
@pytest.mark.parametrize(("lens", "shape", "kwargs"), TRACED_CALLS, ids=str)
@decoders
def test_memory_accesses(name, lens, shape, kwargs):
    case = make_case(lens, shape, **kwargs)
    assert_clean(run_traced(L3_DECODERS[name], case), case, OUTPUTS[name])


@interpreter_only
@decoders
def test_each_key_and_value_is_read_once(name):
    """Whatever the number of splits: the ranges neither lose nor share a page, nor a token."""
    case = make_case([100, 17, 0])
    t = run_traced(L3_DECODERS[name], case)
    for tensor in ("k_ptr", "v_ptr"):
        counts = t.read_counts(tensor)  # NHD
        assert (counts == case.used.numpy()[:, :, None, None]).all()


def test_the_fp32_kernel_compiles_and_is_not_tf32():
    rows = compiled_rows("split", "split_unnormalized", "combine", "combine_unnormalized")
    assert [row["tf32_instructions"] for row in rows] == [0] * len(rows)


@triton.jit
def _range_kernel(range_ptr, seq_lens_ptr, PAGE_SIZE: tl.constexpr):
    """Grid (lengths, num_splits): stores the range of each split."""
    seq_id, split_id = tl.program_id(0), tl.program_id(1)
    begin, end = split_range(tl.load(seq_lens_ptr + seq_id), split_id, tl.num_programs(1), PAGE_SIZE)
    out = (seq_id * tl.num_programs(1) + split_id) * 2
    tl.store(range_ptr + out, begin)
    tl.store(range_ptr + out + 1, end)


@pytest.mark.parametrize("num_splits", [1, 2, 3, 4, 16, 33])
def test_ranges_cut_every_sequence_into_whole_pages(num_splits):
    lens = [0, 1, 15, 16, 17, 37, 100, 1000]
    ranges = torch.full((len(lens), num_splits, 2), -1, dtype=torch.int32, device=DEVICE)
    seq_lens = torch.tensor(lens, dtype=torch.int32, device=DEVICE)
    _range_kernel[(len(lens), num_splits)](ranges, seq_lens, PAGE_SIZE=16)
    for n, splits in zip(lens, ranges.tolist(), strict=True):
        pages = [page for begin, end in splits for page in range(begin, end)]
        assert pages == list(range(-(-n // 16)))


@pytest.mark.parametrize(
    ("batch_size", "num_kv_heads", "max_seq_len", "splits"),
    [
        # 4 * 132 = 528 side by side: 528 // 8 = 66, 32 pages each; 528 // 64; 528 // 512; 528 // 528.
        (1, 8, 32768, 64), (8, 8, 4096, 8), (64, 8, 1024, 1), (66, 8, 131072, 1),
        # More than 132 SMs: 16 pages each are 128 splits, 63 each of 8192 are 131. 528 // 5: 79 each, 104.
        (1, 1, 32768, 128), (1, 1, 131072, 131), (4, 1, 131072, 131), (5, 1, 131072, 104),
        # No more than there are pages: 1, 7 and 63.
        (1, 8, 1, 1), (1, 8, 100, 7), (1, 8, 1000, 63),
        # 536 and more queue: a split for 1024 tokens, 16 at most; 1250 pages are 79 each.
        (67, 8, 1024, 1), (67, 8, 1025, 2), (128, 8, 2048, 2), (128, 8, 16384, 16), (128, 8, 20000, 16),
        (512, 8, 1 << 20, 16),
    ],
)  # fmt: skip
def test_choice_on_an_h200(batch_size, num_kv_heads, max_seq_len, splits):
    assert choose_num_splits(batch_size, num_kv_heads, max_seq_len, page_size=16, num_sms=132) == splits


@pytest.mark.parametrize(
    ("batch_size", "max_seq_len", "splits"), [(0, 0, 1), (0, 4096, 128), (4, 0, 1), (67, 0, 1)]
)
def test_choice_for_nothing(batch_size, max_seq_len, splits):
    """No sequence counts as one program; no token, as one split."""
    assert choose_num_splits(batch_size, 8, max_seq_len, page_size=16, num_sms=132) == splits


@given(
    batch_size=st.integers(0, 512),
    num_kv_heads=st.integers(1, 64),
    max_seq_len=st.integers(0, 1 << 20),
    page_size=st.sampled_from([16, 32, 64, 128]),
    num_sms=st.integers(1, 200),
)
def test_choice_is_sensible(batch_size, num_kv_heads, max_seq_len, page_size, num_sms):
    def choose(b):
        return choose_num_splits(b, num_kv_heads, max_seq_len, page_size, num_sms)

    splits, num_pages = choose(batch_size), -(-max_seq_len // page_size)
    assert isinstance(splits, int) and 1 <= splits <= max(1, num_pages)
    # None stays empty in the longest sequence.
    pages_per_split = -(-num_pages // splits)
    assert num_pages == 0 or (splits - 1) * pages_per_split < num_pages
    programs = max(1, batch_size * num_kv_heads)
    if programs <= 4 * num_sms:  # all side by side, cut or not, and no more splits than SMs
        assert programs * splits <= 4 * num_sms and splits <= num_sms
    else:  # they queue: a split for 1024 tokens, 16 at most, so that more than 512 are in each
        assert splits <= min(-(-max_seq_len // 1024) or 1, 16)
        assert splits == 1 or pages_per_split * page_size > 512
    # A larger batch never gets more splits, but where it is the first to queue.
    after = max(1, (batch_size + 1) * num_kv_heads)
    if (programs <= 4 * num_sms) == (after <= 4 * num_sms):
        assert choose(batch_size + 1) <= splits


@gpu_only
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=dtype_name)
@pytest.mark.parametrize(
    "lens", [[32768], [4096, 1, 0, 4095], [1024] * 64], ids=lambda lens: f"{len(lens)}x{lens[0]}"
)
@pytest.mark.parametrize("num_splits", [None, 16, 64])
@forms
def test_real_sizes(decode, num_splits, lens, dtype):
    case = make_case(lens, Shape(4, 128, 16), dtype, num_kv_heads=8)
    assert_right(decode, case, num_splits=num_splits)
