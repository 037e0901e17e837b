"""L7: fast_decode over its whole contract, its plans, its e4m3 caches, and calls that are remembered."""

from functools import partial

import pytest
import torch

from kernels import DecodePlan, checks, fast_decode, make_plan, paged_attention_reference
from kernels import l7_fast_decode as l7
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
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import DEVICE, DTYPES, ON_GPU, dtype_name
from tests.helpers.oracle import assert_right, assert_twice_as_good, reference, run_poisoned
from tests.helpers.poison import poisoned
from tests.helpers.traced import assert_clean, run_traced

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
# What the lesson kernels refuse: head dims and pages that are no powers of two, or small, or large.
ODD_SHAPES = [Shape(4, d, 16) for d in (8, 72, 80, 96, 192)]
ODD_SHAPES += [Shape(4, 64, page) for page in (1, 2, 8, 24, 256, 544, 1024)]
ODD_SHAPES += [Shape(5, 72, 24), Shape(64, 192, 1), Shape(3, 248, 1000)]
SPLITS = [DecodePlan(1), DecodePlan(3)]
whole_and_split = pytest.mark.parametrize("plan", SPLITS, ids=["whole", "split"])


def decode_with(plan):
    return partial(fast_decode, plan=plan)


def assert_planned_right(case, plan):
    """With a work list, partials of whole sequences stay unwritten: the guards alone are checked."""
    with poisoned(written=False):
        o, lse = fast_decode(*case.args, **case.kwargs, return_lse=True, plan=plan)
    expected_o, expected_lse = reference(case)
    plain_o, plain_lse = fast_decode(*case.args, **case.kwargs, return_lse=True, plan=DecodePlan(1))
    assert_twice_as_good(o, [plain_o], expected_o)
    assert torch.allclose(lse, plain_lse, rtol=1e-6, atol=1e-6)
    assert torch.equal(torch.isneginf(lse), torch.isneginf(expected_lse))


# The dtypes take turns: each compiles and computes the same code otherwise.
@pytest.mark.parametrize("plan, dtype", list(zip(SPLITS * 2, DTYPES, strict=False)), ids=str)
@pytest.mark.parametrize("shape", SHAPES + ODD_SHAPES, ids=str)
def test_shapes(shape, plan, dtype):
    assert_right(decode_with(plan), sweep_case(shape, dtype))


@whole_and_split
@pytest.mark.parametrize("page_size", [1, 16, 24, 64])
def test_lengths_around_the_edges_of_pages_and_tiles(page_size, plan):
    shape = PLAIN._replace(page_size=page_size)
    lens = [*listed_lengths(page_size), 15, 16, 17, 31, 33, 63, 65]
    assert_right(decode_with(plan), make_case(lens, shape, torch.float16, num_kv_heads=1))


@pytest.mark.parametrize("num_splits", [1, 2, 7, 16, 40, 100])
def test_numbers_of_splits_agree(num_splits):
    """More splits than tokens included, and more than one step of the combine kernel takes."""
    case = make_case([70, 0, 3], num_kv_heads=1)
    o, lse = assert_right(fast_decode, case, plan=DecodePlan(num_splits))
    whole_o, whole_lse = fast_decode(*case.args, return_lse=True, plan=DecodePlan(1))
    assert torch.allclose(o, whole_o, rtol=1e-5, atol=1e-6)
    assert torch.allclose(lse, whole_lse, rtol=1e-6, atol=1e-6)


@dtypes
def test_the_splits_may_be_left_to_the_host(dtype):
    assert_right(fast_decode, make_case([300, 0, 70], PLAIN, dtype, num_kv_heads=1))


@whole_and_split
@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("storage", STORAGES)
def test_layouts_and_strides(storage, kv_layout, plan):
    case = make_case([37, 16], kv_layout=kv_layout, storage=storage, strided=True)
    assert_right(decode_with(plan), case)


@whole_and_split
@pytest.mark.parametrize("fill", [float("nan"), float("inf"), 6e4])
def test_unused_slots_change_no_bit(fill, plan):
    shape = PLAIN._replace(page_size=24)
    plain = make_case([37, 0, 5], shape, torch.float16, unused=0.0)
    filled = make_case([37, 0, 5], shape, torch.float16, unused=fill)
    for one, other in zip(
        run_poisoned(fast_decode, plain, plan=plan),
        run_poisoned(fast_decode, filled, plan=plan),
        strict=True,
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("sm_scale", [1e4, -1e4, 0.0])
@whole_and_split
def test_scales_of_any_sign_and_size(plan, sm_scale):
    case = make_case([37], num_kv_heads=1, sm_scale=sm_scale)
    o, _ = run_poisoned(fast_decode, case, plan=plan)
    k, v = (c[case.block_table[0, :3].long()].flatten(0, 1)[:37, 0] for c in case.nhd_caches)
    scores = case.q[0].double() @ k.double().T * sm_scale
    wanted = torch.softmax(scores, 1) @ v.double()
    assert torch.allclose(o[0].double(), wanted, rtol=1e-5, atol=1e-6)


@whole_and_split
def test_no_sequences_and_empty_tables(plan):
    o, lse = run_poisoned(fast_decode, make_case([]), plan=plan)
    assert o.shape == (0, 4, 32) and lse.shape == (0, 4)
    assert_right(decode_with(plan), make_case([0, 0], spare_columns=0))


@interpreter_only
@whole_and_split
@pytest.mark.parametrize("call", TRACED_CALLS, ids=lambda call: f"{call[0]}, {call[2]}")
def test_memory_accesses(call, plan):
    lens, shape, kwargs = call
    case = make_case(lens, shape, **kwargs)
    outputs = ("o_ptr", "lse_ptr") + (("partial_ptr",) if plan.num_splits > 1 else ())
    trace = run_traced(fast_decode, case, plan=plan)
    if lens:
        assert_clean(trace, case, outputs, axis=2, as_stored=True)


# Ragged batches.

RAGGED = [[300, 0, 70, 1, 16, 513], [7], [0, 0], [64] * 9]


@pytest.mark.parametrize("lens", RAGGED, ids=lambda lens: f"{len(lens)} sequences, longest {max(lens)}")
@pytest.mark.parametrize("programs_per_sm", [1, 6, 12])
@dtypes
def test_planned(lens, programs_per_sm, dtype, monkeypatch):
    monkeypatch.setattr("kernels.l7_plan.MIN_TOKENS", 32)
    case = make_case(lens, PLAIN, dtype, num_kv_heads=1)
    assert_planned_right(case, make_plan(case.seq_lens, 1, programs_per_sm=programs_per_sm))


def test_a_plan_is_a_partition(monkeypatch):
    """Each split of each sequence once, the longest first, and nothing in what is left over."""
    monkeypatch.setattr("kernels.l7_plan.MIN_TOKENS", 32)
    lens = torch.tensor([300, 0, 70, 1, 16, 513], dtype=torch.int32, device=DEVICE)
    plan = make_plan(lens, 2, programs_per_sm=24 / l7.num_sms(lens.device))
    total = sum(lens.tolist()) * 2
    tokens = max(32, -(-total // 24))
    splits = [max(1, -(-n // tokens)) for n in lens.tolist()]
    assert plan.slots[:, 1].tolist() == splits
    rows = [tuple(row) for row in plan.work[: sum(splits), :3].tolist()]
    assert sorted(rows) == [(b, s, n) for b, n in enumerate(splits) for s in range(n)]
    longest = [-(-lens[b].item() // n) for b, _, n in rows]
    assert longest == sorted(longest, reverse=True)
    for b, (first, count) in enumerate(plan.slots.tolist()):
        assert [rows[first + s] for s in range(count)] == [(b, s, count) for s in range(count)]
    assert all(row == [0, 2, 2] for row in plan.work[sum(splits) :, :3].tolist())


def test_a_plan_for_other_lengths_is_slow_not_wrong(monkeypatch):
    monkeypatch.setattr("kernels.l7_plan.MIN_TOKENS", 32)
    case = make_case([300, 0, 70, 513], PLAIN, num_kv_heads=1)
    for lens in ([1, 1, 1, 1], [513, 300, 0, 0]):
        lens = torch.tensor(lens, dtype=torch.int32, device=DEVICE)
        assert_planned_right(case, make_plan(lens, 1, programs_per_sm=8))


def test_bad_plans_are_refused():
    case = make_case([20, 3])
    good, other = make_plan(case.seq_lens, 2), make_plan(case.seq_lens[:1], 2)
    narrow = good.work[:, :3].contiguous()
    for plan, error, message in (
        (4, TypeError, "plan is 4; wanted a DecodePlan"),
        (DecodePlan(0), ValueError, "plan.num_splits is 0; wanted an int from 1"),
        (DecodePlan(True), ValueError, "plan.num_splits is True; wanted an int"),
        (other, ValueError, r"plan.slots is int32 \[1, 2\] .*; wanted a contiguous \[2, 2\]"),
        (good._replace(work=None), TypeError, "plan.work is None; wanted a tensor"),
        (good._replace(slots=None), TypeError, "plan.slots is None; wanted a tensor"),
        (good._replace(work=[1]), TypeError, r"plan.work is \[1\]; wanted a tensor"),
        (good._replace(work=narrow), ValueError, r"plan.work is .*; wanted a contiguous \[slots, 4\]"),
        (good._replace(work=good.work.long()), TypeError, "plan.work is int64"),
    ):
        with pytest.raises(error, match=message):
            fast_decode(*case.args, plan=plan)
    for lens, kwargs, error, message in (
        (case.seq_lens.float(), {}, TypeError, "seq_lens is float32"),
        (case.seq_lens, {"num_kv_heads": 0}, ValueError, "num_kv_heads is 0; wanted at least 1"),
        (case.seq_lens, {"num_kv_heads": 2.0}, ValueError, "num_kv_heads is 2.0; wanted at least 1, an int"),
        (case.seq_lens, {"programs_per_sm": 0}, ValueError, "programs_per_sm is 0; wanted a number above 0"),
        (case.seq_lens, {"programs_per_sm": float("nan")}, ValueError, "programs_per_sm is nan"),
    ):
        with pytest.raises(error, match=message):
            make_plan(lens, **{"num_kv_heads": 2} | kwargs)


def test_splits_that_would_wrap_in_int32_are_refused():
    """split x units is int32 in the kernel: 65535 splits of a table of a million tokens pass 2**31."""
    case = make_case([20])
    wide = case.block_table.new_full((1, 65536), -1)
    wide[:, : case.block_table.shape[1]] = case.block_table
    args = (*case.args[:3], wide, case.seq_lens)
    fast_decode(*args, plan=DecodePlan(3))
    with pytest.raises(ValueError, match=r"units of the table is 4294967295; wanted less than 2\*\*31"):
        fast_decode(*args, plan=DecodePlan(65535))


def test_more_sequences_than_a_grid_holds_are_refused():
    case = make_case([0] * 4)
    many = [t[:1].expand(65536, *t.shape[1:]) for t in (case.q, case.block_table)]
    lens = torch.zeros(65536, dtype=torch.int32, device=DEVICE)
    with pytest.raises(ValueError, match="B is 65536; wanted at most 65535"):
        fast_decode(many[0], case.k_cache, case.v_cache, many[1], lens, plan=DecodePlan(1))


@interpreter_only  # which checks; on a GPU KERNELS_CHECKED=1 does
def test_a_plan_with_rows_out_of_it_is_refused():
    case = make_case([20, 3])
    plan = make_plan(case.seq_lens, 2)
    for name, row, value in (("work", 0, 9), ("slots", 1, 9999)):
        bad = getattr(plan, name).clone()
        bad[row, 0] = value
        with pytest.raises(ValueError, match=rf"plan.{name}\[{row}\] is \[{value}, "):
            fast_decode(*case.args, plan=plan._replace(**{name: bad}))


@gpu_only
def test_cpu_tensors_on_a_gpu_machine_are_refused_by_name():
    case = make_case([20])
    with pytest.raises(ValueError, match=r"q is .* on cpu; wanted a tensor on a GPU"):
        fast_decode(*(t.cpu() for t in case.args))


# e4m3 caches.


def quantised(case, dtype=torch.float8_e4m3fn):
    """The same case with e4m3 caches, and the float64 truth on what those hold."""
    k, v = (c.to(dtype) for c in (case.k_cache, case.v_cache))
    return (case.q, k, v, case.block_table, case.seq_lens)


@pytest.mark.parametrize("scales", [(None, None), (0.5, 2.0), "tensors"], ids=str)
@whole_and_split
@pytest.mark.parametrize("shape", [*SHAPES[:4], Shape(4, 128, 16), Shape(5, 72, 24), Shape(2, 8, 1)], ids=str)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != torch.float32], ids=dtype_name)
def test_e4m3_caches(shape, plan, scales, dtype):
    case = make_case([shape.page_size + 5, 0, 33], shape, dtype, unused=0.0)
    args = quantised(case)
    numbers = (0.25, 3.0) if scales == "tensors" else scales
    if scales == "tensors":
        scales = [torch.tensor([x], device=DEVICE) for x in numbers]
    with poisoned():
        o, lse = fast_decode(*args, k_scale=scales[0], v_scale=scales[1], plan=plan, return_lse=True)
    k_scale, v_scale = (1.0 if x is None else x for x in numbers)
    k, v = args[1].double() * k_scale, args[2].double() * v_scale
    wanted_o, wanted_lse = paged_attention_reference(args[0].double(), k, v, *args[3:], return_lse=True)
    plain = [fast_decode(args[0], k.to(dtype), v.to(dtype), *args[3:], plan=DecodePlan(1))]
    assert_twice_as_good(o, plain, wanted_o)
    assert torch.allclose(lse.double(), wanted_lse, rtol=1e-5, atol=1e-5)


def test_e4m3_layouts_and_poisoned_tails():
    case = make_case([37, 16], Shape(4, 64, 16), torch.float16, kv_layout="HND", storage="head_pairs")
    filled = [c.nan_to_num(0.0) for c in (case.k_cache, case.v_cache)]
    results = []
    for k, v in ((case.k_cache, case.v_cache), filled):  # NaN in what no token holds, then 0
        args = (case.q, k.to(torch.float8_e4m3fn), v.to(torch.float8_e4m3fn), *case.args[3:])
        results.append(fast_decode(*args, kv_layout="HND", plan=DecodePlan(2)))
    assert torch.equal(*results) and not results[0].isnan().any()


def test_all_256_bytes_are_converted_right():
    """Every e4m3 number as a value of V, alone on its token: what comes back is that number."""
    codes = torch.arange(256, dtype=torch.uint8).repeat_interleave(16).view(256, 1, 1, 16)
    v = codes.to(DEVICE).view(torch.float8_e4m3fn)
    k = torch.zeros(256, 1, 1, 16, device=DEVICE).to(torch.float8_e4m3fn)
    q = torch.zeros(256, 1, 16, dtype=torch.float16, device=DEVICE)
    table = torch.arange(256, dtype=torch.int32, device=DEVICE)[:, None]
    o = fast_decode(q, k, v, table, torch.ones_like(table[:, 0]))
    wanted = v.half()[:, 0]
    number = ~wanted.isnan()
    assert torch.equal(o[number], wanted[number]) and (~number).any(-1).sum() == 2  # 0x7f and 0xff
    if ON_GPU:  # the interpreter takes those two for 480
        assert o[~number].isnan().all()


def test_bad_input_is_refused():
    case = make_case([20, 3], PLAIN, torch.float16)
    fp8 = quantised(case)
    q, k, v, table, lens = fp8
    cases = [
        ((case.q, case.k_cache, v, table, lens), {}, TypeError, "v_cache is float8_e4m3fn"),
        ((q.float(), k, v, table, lens), {}, TypeError, "q is float32 .*; wanted float16 or bfloat16"),
        (case.args, {"sm_scale": "1"}, TypeError, "sm_scale is 1; wanted a number"),
        (case.args, {"sm_scale": torch.ones(())}, TypeError, r"sm_scale is float32 \[\]"),
        (case.args, {"kv_layout": ["NHD"]}, ValueError, "kv_layout is"),
        (case.args, {"k_scale": "1"}, TypeError, "k_scale is 1; wanted a number"),
        (case.args, {"v_scale": torch.ones(2, device=DEVICE)}, ValueError, r"v_scale is float32 \[2\]"),
        (make_case([3], Shape(1, 12, 16)).args, {}, ValueError, "head_dim is 12; wanted a multiple of 8"),
        (make_case([3], Shape(1, 264, 16)).args, {}, ValueError, "head_dim is 264"),
        (make_case([3], Shape(1, 16, 1025)).args, {}, ValueError, "page_size is 1025; wanted 1 to 1024"),
        (make_case([3], Shape(65, 16, 16)).args, {}, ValueError, "Hq / Hkv is 65"),
        (("q", *case.args[1:]), {}, TypeError, "q is q; wanted a tensor"),
    ]
    for args, kwargs, error, message in cases:
        with pytest.raises(error, match=message):
            fast_decode(*args, **kwargs)


def test_odd_strides_of_an_e4m3_cache_are_refused():
    q, k, v, table, lens = quantised(make_case([20], Shape(4, 16, 16), torch.float16))
    odd = torch.zeros(*k.shape[:3], 17, device=DEVICE).to(k.dtype)[..., :16]
    with pytest.raises(ValueError, match=r"k_cache's strides is .*; wanted even strides"):
        fast_decode(q, odd, v, table, lens)


# Calls that are remembered.


@gpu_only
def test_a_remembered_call_checks_what_changed():
    """The second call skips the checks; another shape, alignment or type does not."""
    case = make_case([70, 33], PLAIN, torch.float16)
    args = case.args
    first, again = fast_decode(*args), fast_decode(*args)
    assert torch.equal(first, again)
    wide = torch.empty(args[0].numel() + 8, dtype=args[0].dtype, device=DEVICE)
    moved = wide[1 : 1 + args[0].numel()].view(args[0].shape).copy_(args[0])  # 2 bytes off
    assert moved.data_ptr() % 16 and torch.equal(fast_decode(moved, *args[1:]), first)
    with pytest.raises(TypeError, match="seq_lens"):
        fast_decode(*args[:4], args[4].long())
    for sm_scale in (0.1, 0.7):  # not in the key, and yet it counts
        scaled = make_case([70, 33], PLAIN, torch.float16, sm_scale=sm_scale)
        assert_right(fast_decode, scaled)


@gpu_only
def test_the_memory_of_calls_is_bounded(monkeypatch):
    monkeypatch.setattr(l7, "MAX_CALLS", 2)
    l7._CALLS.clear()
    for n in (1, 2, 3, 4):
        fast_decode(*make_case([5] * n).args)
    assert len(l7._CALLS) <= 2


@gpu_only
def test_checked_mode_remembers_nothing(monkeypatch):
    monkeypatch.setattr(checks, "CHECKED", True)
    case = make_case([70, 33], PLAIN, torch.float16)
    fast_decode(*case.args)
    table = case.block_table.clone()
    table[0, 0] = 10**6
    with pytest.raises(ValueError, match=r"block_table\[0, 0\] is 1000000"):
        fast_decode(*case.args[:3], table, case.seq_lens)


@gpu_only
def test_a_captured_plan_follows_its_lengths():
    """Plan and decode in one graph: replayed after the lengths changed, both follow."""
    case = make_case([2000, 0, 70, 513], PLAIN, torch.float16, num_kv_heads=1)
    lens = case.seq_lens.clone()
    args = (*case.args[:4], lens)
    for _ in range(2):
        fast_decode(*args, plan=make_plan(lens, 1))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan = make_plan(lens, 1)
        o = fast_decode(*args, plan=plan)
    for wanted in ([2000, 0, 70, 513], [17, 0, 70, 1], [1999, 0, 0, 400]):
        lens.copy_(torch.tensor(wanted, dtype=torch.int32))
        graph.replay()
        assert torch.allclose(o, fast_decode(*args, plan=DecodePlan(1)), rtol=2e-3, atol=2e-3)


@gpu_only
def test_dependent_launch_changes_nothing():
    """Back to back, with and without it, over buffers that the next launch overwrites: the same bits."""
    case = make_case([900, 333, 16], Shape(4, 128, 16), torch.float16)
    inputs = l7.check_fast_inputs(*case.args, "NHD", None, None)
    for plan in (DecodePlan(1), DecodePlan(8)):
        results = []
        for pdl in (False, True):
            call = l7.FastCall(case.q, inputs, case.block_table, plan, pdl=pdl)
            _, lse, scratch = call.new_outputs()
            rows = []
            for _ in range(50):
                o = torch.empty_like(case.q)
                call(o, lse, scratch, *case.args)
                rows.append(o)
            results.append(torch.stack(rows))
        assert torch.equal(*results)
