"""L1: write_kv puts each token's K and V into its slot, and touches nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels import checks
from kernels.l1_write_kv import write_kv, write_kv_reference
from scripts.tracer import trace
from tests.helpers.far import assert_survives, skip_without_memory
from tests.helpers.l1_write import GUARD, POISON, Write
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import DEVICE, DTYPES, dtype_name

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
layouts = pytest.mark.parametrize("kv_layout", ["NHD", "HND"])


def test_the_reference_itself():
    """Token by token, as the definition says it."""
    for kv_layout in ("NHD", "HND"):
        call = Write([37, -1, 0], kv_layout=kv_layout)
        k, v = call.run(write_kv_reference)
        for cache, new in ((k, call.k), (v, call.v)):
            nhd = cache if kv_layout == "NHD" else cache.transpose(1, 2)
            bits = new.contiguous().view(torch.int32)
            assert torch.equal(nhd[GUARD + 2, 5], bits[0]) and torch.equal(nhd[GUARD, 0], bits[2])
            assert (nhd != POISON[4]).any((2, 3)).sum() == 2


@dtypes
@layouts
def test_layouts(kv_layout, dtype):
    Write([37, 5, -1, 95, 0, -1, 64], dtype=dtype, kv_layout=kv_layout).assert_right()


@pytest.mark.parametrize("head_dim", [8, 16, 24, 64, 72, 80, 96, 128, 192, 256])
@dtypes
def test_head_dims(head_dim, dtype):
    Write([3, 17, 40], k_dim=head_dim, dtype=dtype).assert_right()


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 32, 40])
@layouts
def test_numbers_of_heads(heads, kv_layout):
    """40 heads of 128 are 5 blocks of a row, 3 heads an odd part of one."""
    Write([7, -1, 20], heads=heads, k_dim=128, kv_layout=kv_layout).assert_right()


@pytest.mark.parametrize("page_size", [1, 2, 7, 16, 24, 128])
@layouts
def test_page_sizes(page_size, kv_layout):
    slots = [6 * page_size - 1, 0, page_size, -1, 2 * page_size + page_size // 2]
    Write(slots, page_size=page_size, kv_layout=kv_layout).assert_right()


@layouts
def test_k_and_v_in_one_interleaved_cache(kv_layout):
    Write([37, 5, -1, 95], interleaved=True, kv_layout=kv_layout).assert_right()


@pytest.mark.parametrize(("k_dim", "v_dim"), [(192, 128), (64, 512), (8, 72)])
def test_v_may_have_a_head_dim_of_its_own(k_dim, v_dim):
    Write([37, 5, -1, 95], heads=3, k_dim=k_dim, v_dim=v_dim).assert_right()


@layouts
def test_one_tensor_alone(kv_layout):
    """A latent of 512 + 64 elements and no V."""
    Write([37, 5, -1, 95], heads=1, k_dim=576, one=True, kv_layout=kv_layout).assert_right()


@pytest.mark.parametrize("slot_dtype", [torch.int32, torch.int64], ids=dtype_name)
@pytest.mark.parametrize("slots", [[], [-1], [-1, -1, -1], [0]], ids=str)
def test_few_tokens(slots, slot_dtype):
    Write(slots, slot_dtype=slot_dtype).assert_right()


@given(data=st.data())
def test_any_mapping(data):
    page_size = data.draw(st.sampled_from([1, 3, 16]), "page_size")
    num_pages = data.draw(st.integers(1, 5), "num_pages")
    every = st.integers(0, num_pages * page_size - 1)
    slots = data.draw(st.lists(every, max_size=12, unique=True), "slots")
    for place in sorted(data.draw(st.sets(st.integers(0, 12), max_size=3), "skipped")):
        slots.insert(place, -1)
    Write(
        slots, heads=data.draw(st.integers(1, 4), "heads"), k_dim=8 * data.draw(st.integers(1, 10), "D / 8"),
        page_size=page_size, num_pages=num_pages, dtype=data.draw(st.sampled_from(DTYPES), "dtype"),
        kv_layout=data.draw(st.sampled_from(["NHD", "HND"]), "kv_layout"),
    ).assert_right()  # fmt: skip


@interpreter_only
@layouts
@pytest.mark.parametrize("heads", [3, 40])
def test_memory_accesses(heads, kv_layout):
    """In bounds of the views; one program an element; each token read once; nothing stored for -1."""
    call = Write([37, -1, 5], heads=heads, k_dim=40, kv_layout=kv_layout)
    with trace() as t:
        write_kv(*call.args, kv_layout=kv_layout)
    t.assert_in_bounds()
    for name in ("k", "v"):
        assert (t.read_counts(f"{name}_ptr") == 1).all()
        writes = t.writes(f"{name}_cache_ptr")
        places = [tuple(int(i) for i in place) for a in writes for place in zip(*a.coordinates, strict=True)]
        assert len(places) == len(set(places)) == 2 * heads * 40
        assert {place[:2] for place in places} == {(2, 5), (0, 5)}
        assert {a.program[0] for a in writes} == {0, 2}


@interpreter_only
def test_loads_do_not_wait_for_stores():
    """Both rows are loaded before the first store, so that their latencies overlap."""
    call = Write([37])
    with trace() as t:
        write_kv(*call.args)
    assert [(a.op, a.name) for a in t.accesses] == [
        ("load", "slot_mapping_ptr"), ("load", "k_ptr"), ("load", "v_ptr"),
        ("store", "k_cache_ptr"), ("store", "v_cache_ptr"),
    ]  # fmt: skip


def refused(error=ValueError, match="", **changes):
    call = Write([0, 1])
    names = ("k", "v", "k_cache", "v_cache", "slot_mapping")
    arguments = dict(zip(names, call.args, strict=True)) | {"kv_layout": "NHD"} | changes
    before = [cache.clone() for cache in (call.k_cache, call.v_cache)]
    with pytest.raises(error, match=match):
        write_kv(*(arguments[name] for name in names), kv_layout=arguments["kv_layout"])
    for cache, old in zip((call.k_cache, call.v_cache), before, strict=True):
        assert torch.equal(cache.view(torch.int32), old.view(torch.int32))


def filled(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"kv_layout": "HDN"}, ValueError, "^kv_layout is 'HDN'; wanted 'NHD' or 'HND'"),
        ({"k": filled(2, 64)}, ValueError, r"^k is .*; wanted \[N, Hkv, D\]"),
        ({"k": filled(2, 2, 32, dtype=torch.float64)}, TypeError, "^k is float64"),
        ({"v": filled(2, 2, 32, dtype=torch.float16)}, TypeError, "^v is float16 .*; wanted float32"),
        ({"v": filled(3, 2, 32)}, ValueError, r"^v is .*; wanted \[2, 2\] first, as k"),
        ({"v": None}, ValueError, "^v_cache is .*; wanted None with v"),
        ({"k": filled(2, 2, 20), "k_cache": filled(6, 16, 2, 20)}, ValueError, "^the last dim of k is 20"),
        ({"k_cache": filled(6, 16, 3, 32)}, ValueError, r"^k_cache is .*; wanted \[num_pages, page_size, 2,"),
        ({"v_cache": filled(7, 16, 2, 32)}, ValueError, "^v_cache is .*; wanted the pages of k_cache"),
        ({"k": filled(2, 32, 2).transpose(1, 2)}, ValueError, "^the last stride of k is 2"),
        ({"slot_mapping": filled(2)}, TypeError, "^slot_mapping is float32 .*; wanted int64"),
        ({"slot_mapping": filled(3, dtype=torch.int64)}, ValueError, "^slot_mapping is .*; wanted 2 slots"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_bad_input_is_refused(changes, error, match):
    refused(error, match, **changes)


@pytest.mark.parametrize(
    ("slots", "match"),
    [
        ([0, 96], r"^slot_mapping\[1\] is 96; wanted -1, or 0 to 95: the cache has 96 slots"),
        ([-2, 0], r"^slot_mapping\[0\] is -2"),
        ([5, 5], r"^slot_mapping\[1\] is 5; wanted a slot of its own: token 0 has it already"),
    ],
)
def test_checked_mode_refuses_bad_slots(slots, match, monkeypatch):
    monkeypatch.setattr(checks, "CHECKED", True)  # the interpreter checks anyway
    refused(match=match, slot_mapping=torch.tensor(slots, device=DEVICE))


@interpreter_only
def test_bf16_needs_a_gpu():
    refused(TypeError, "interpreter computes bf16 wrongly", k=filled(2, 2, 32, dtype=torch.bfloat16))


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
def test_slots_past_int32(kv_layout):
    skip_without_memory()
    assert_survives("l1_big_write", kv_layout)


@gpu_only
@pytest.mark.parametrize("num_tokens", [1, 64, 8192])
@layouts
@dtypes
def test_real_sizes(dtype, kv_layout, num_tokens):
    slots = torch.randperm(600 * 16)[:num_tokens].tolist()
    Write(slots, heads=8, k_dim=128, num_pages=600, dtype=dtype, kv_layout=kv_layout).assert_right()


@gpu_only
def test_replayed_in_a_cuda_graph():
    """The mapping is read at each replay, so new slots need no new capture; -1 pads the batch."""
    call = Write([3, -1])
    call.run(write_kv)  # compiles; nothing may be left of it
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        write_kv(*call.args)
    for slots in ([50, -1], [51, 20]):
        call.slots.copy_(torch.tensor(slots))
        expected = call.run(write_kv_reference)
        graph.replay()
        found = call.run(lambda *args, **kwargs: None)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
