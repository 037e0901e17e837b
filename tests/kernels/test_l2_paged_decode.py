"""L2: one program a query head (naive), and one a KV head (packed)."""

from unittest import mock

import pytest
import torch

from kernels.checks import check_paged_inputs
from kernels.l2_paged_decode import launch_paged_decode
from kernels.launch import choose_launch, new_outputs
from scripts.tracer import trace
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
from tests.helpers.decoders import L2_DECODERS, OUTPUTS
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import DTYPES, dtype_name
from tests.helpers.oracle import assert_right, run_poisoned
from tests.helpers.traced import assert_clean, run_traced

decoders = pytest.mark.parametrize("name", L2_DECODERS)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)


@dtypes
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@decoders
def test_shapes(name, shape, dtype):
    assert_right(L2_DECODERS[name], sweep_case(shape, dtype))


@dtypes
@decoders
def test_lengths_around_the_edges_of_a_page(name, dtype):
    assert_right(L2_DECODERS[name], make_case(listed_lengths(PLAIN.page_size), PLAIN, dtype))


@pytest.mark.parametrize("lens", [[0], [0, 0, 0], [0, 1], [1, 0], [1], [15], [16], [17], [100]], ids=str)
@decoders
def test_small_batches(name, lens):
    assert_right(L2_DECODERS[name], make_case(lens, PLAIN, num_kv_heads=1))


@decoders
def test_no_sequences(name):
    o, lse = run_poisoned(L2_DECODERS[name], make_case([]))
    assert o.shape == (0, 4, 32) and lse.shape == (0, 4)


@decoders
def test_a_table_without_columns(name):
    assert_right(L2_DECODERS[name], make_case([0, 0], spare_columns=0))


@decoders
def test_without_lse_the_same_o(name):
    case = make_case([20, 0])
    o = L2_DECODERS[name](*case.args)
    assert torch.equal(o, L2_DECODERS[name](*case.args, return_lse=True)[0])


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("storage", STORAGES)
@decoders
def test_layouts_and_strides(name, storage, kv_layout):
    case = make_case([37, 0, 16], kv_layout=kv_layout, storage=storage, strided=True)
    assert_right(L2_DECODERS[name], case)


@pytest.mark.parametrize("sm_scale", [0.03, 1.0, -0.5, 0.0])
@decoders
def test_scale(name, sm_scale):
    assert_right(L2_DECODERS[name], make_case([37], num_kv_heads=1, sm_scale=sm_scale))


@pytest.mark.parametrize("sm_scale", [1e4, -1e4])
@decoders
def test_huge_scores_do_not_overflow(name, sm_scale):
    """All weight on one token: its value comes back, whole."""
    case = make_case([37], num_kv_heads=1, sm_scale=sm_scale)
    o, lse = run_poisoned(L2_DECODERS[name], case)
    k, v = (c[case.block_table[0, :3].long()].flatten(0, 1)[:37, 0] for c in case.nhd_caches)
    scores = case.q[0].double() @ k.double().T * sm_scale
    assert torch.equal(o[0], v[scores.argmax(1)])
    assert torch.allclose(lse[0].double(), scores.amax(1), rtol=1e-6)


@decoders
def test_scores_far_below_zero(name):
    """The running maximum starts at -inf: from 0 on, every weight would be 0."""
    case = make_case([37, 5], num_kv_heads=1, sm_scale=-20.0)
    case.q.abs_()
    case.k_cache.abs_()
    _, lse = assert_right(L2_DECODERS[name], case)
    assert (lse < -100).all()


@dtypes
@decoders
def test_nothing_unused_changes_one_bit(name, dtype):
    """Masking the scores is not enough, 0 x NaN is NaN; and table entries past the end are never read."""

    def run(unused, beyond):
        case = make_case([17, 0, 1, 16], PLAIN, dtype, num_kv_heads=1, unused=unused, beyond=beyond)
        return run_poisoned(L2_DECODERS[name], case)

    largest = torch.finfo(dtype).max
    expected_o, expected_lse = run(float("nan"), -1)
    for unused, beyond in ((largest, 2**31 - 1), (-largest, -(2**31)), (float("inf"), 0)):
        o, lse = run(unused, beyond)
        assert torch.equal(o, expected_o) and torch.equal(lse, expected_lse)


@dtypes
@decoders
def test_scattered_pages_as_ordered_ones(name, dtype):
    scattered, ordered = (
        run_poisoned(L2_DECODERS[name], make_case([40, 70, 7], PLAIN, dtype, num_kv_heads=1, ids=ids))
        for ids in ("scattered", "ordered")
    )
    assert torch.equal(scattered[0], ordered[0]) and torch.equal(scattered[1], ordered[1])


@decoders
def test_sequences_that_share_pages(name):
    case = make_case([40, 40])
    case.block_table[1] = case.block_table[0]
    case.q[1] = case.q[0]
    o, lse = run_poisoned(L2_DECODERS[name], case)
    assert torch.equal(o[0], o[1]) and torch.equal(lse[0], lse[1])


@pytest.mark.parametrize("group_size", [1, 4, 5])
@decoders
def test_head_map(name, group_size):
    """V holds its KV head's number, so o shows which KV head each query head read: h // G."""
    case = make_case([20], Shape(group_size, 64, 16), num_kv_heads=5)
    case.v_cache[:] = torch.arange(5, device=case.v_cache.device)[:, None]
    o, _ = run_poisoned(L2_DECODERS[name], case)
    heads = torch.arange(5, device=o.device).repeat_interleave(group_size)
    assert torch.allclose(o[0], heads[:, None].float().expand_as(o[0]), atol=1e-5)


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
def test_k_by_swapped_strides_gives_the_same_result(kv_layout):
    case = make_case(listed_lengths(16), kv_layout=kv_layout)
    inputs = check_paged_inputs(*case.args, kv_layout)
    results = []
    for swap in (False, True):
        o, lse = new_outputs(case.q)
        launch_paged_decode(
            o, lse, case.q, inputs, case.block_table, case.seq_lens, None,
            choose_launch(inputs, case.q), swap_k_strides=swap,
        )  # fmt: skip
        results.append((o, lse))
    (o, lse), (swapped_o, swapped_lse) = results
    torch.testing.assert_close(swapped_o, o, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(swapped_lse, lse, rtol=1e-6, atol=1e-6)


@interpreter_only
@pytest.mark.parametrize(("lens", "shape", "kwargs"), TRACED_CALLS, ids=str)
@decoders
def test_memory_accesses(name, lens, shape, kwargs):
    case = make_case(lens, shape, **kwargs)
    assert_clean(run_traced(L2_DECODERS[name], case), case, OUTPUTS[name])


@interpreter_only
@decoders
def test_a_page_id_of_minus_1_is_nobodys_page(name):
    """Past the host's check: the address must be nowhere. A clamp would read another sequence's page 0."""
    case = make_case([37], num_kv_heads=1, spare_pages=9)
    case.block_table[0, :3] = torch.tensor([9, -1, 7])
    with mock.patch("kernels.checks.check_ids"), trace() as t:
        L2_DECODERS[name](*case.args)
    for tensor in ("k_ptr", "v_ptr"):
        assert t.read_counts(tensor)[[9, 7]].any() and not t.read_counts(tensor)[0].any()


def test_the_fp32_kernel_compiles_and_is_not_tf32():
    rows = compiled_rows("naive", "packed", "packed_swap_k")
    assert [row["tf32_instructions"] for row in rows] == [0] * len(rows)


@gpu_only
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=dtype_name)
@pytest.mark.parametrize(
    "lens", [[32768], [4096, 1, 0, 4095], [1024] * 64], ids=lambda lens: f"{len(lens)}x{lens[0]}"
)
@decoders
def test_real_sizes(name, lens, dtype):
    assert_right(L2_DECODERS[name], make_case(lens, Shape(4, 128, 16), dtype, num_kv_heads=8))
