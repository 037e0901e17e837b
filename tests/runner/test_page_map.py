"""The page map: which program read which pages, in what order, how many bytes, and how few would do."""

import json

import pytest
import torch
import triton
import triton.language as tl

from kernels import online_softmax, paged_decode, split_kv_decode
from kernels.l2_paged_decode import naive_paged_decode
from scripts.runner.page_map import page_map
from scripts.runner.tables import Tables
from scripts.tracer import trace
from tests.helpers.cases import Shape, make_case
from tests.helpers.marks import interpreter_only
from tests.runner.helpers import in_page

pytestmark = interpreter_only

SHAPE = Shape(4, 32, 16)
LENS = [37, 20, 0, 16]


def mapped(run, with_tables: bool = True) -> list[dict]:
    """The maps of all launches of a call; through JSON, as the page gets them."""
    with Tables() as tables, trace() as t:
        run()
    found = page_map(t, tables if with_tables else None)
    return json.loads(json.dumps(found, allow_nan=False))["launches"] if found else []


def of(decode, case, **kwargs) -> dict:
    (found,) = mapped(lambda: decode(*case.args, **case.kwargs, **kwargs))
    return found


def pages_of(case, seq: int) -> list[int]:
    return case.block_table[seq, : -(-case.lens[seq] // case.page_size)].tolist()


def page_bytes(case, seq: int, head_dim: int) -> list[int]:
    """Bytes of K of one KV head in each page of a sequence."""
    full, rest = divmod(case.lens[seq], case.page_size)
    return [
        tokens * head_dim * case.q.element_size() for tokens in [case.page_size] * full + [rest] * (rest > 0)
    ]


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_l2_reads_every_needed_byte_once(dtype, kv_layout):
    case = make_case(LENS, SHAPE, dtype, kv_layout=kv_layout)
    found = of(paged_decode, case)
    assert found["kernel"] == "_paged_decode_kernel" and found["caches"] == {"k": "k_ptr", "v": "v_ptr"}
    assert found["grid"] == [4, 2, 1] and len(found["programs"]) == 8
    for program in found["programs"]:
        seq, kv_head, _ = program["program"]
        wanted = page_bytes(case, seq, SHAPE.head_dim)
        assert [read["page"] for read in program["reads"]] == pages_of(case, seq)
        assert [read["k"] for read in program["reads"]] == wanted == [read["v"] for read in program["reads"]]
        assert all(read["heads"] == [kv_head] for read in program["reads"])
        assert program["k"] == program["v"] == sum(wanted)
    least = 2 * 2 * sum(LENS) * SHAPE.head_dim * case.q.element_size()
    assert found["bytes"] == {
        "k": least // 2, "v": least // 2, "total": least, "distinct": least, "least": least, "beyond": 0,
    }  # fmt: skip
    assert found["missed"] == 0 and max(page["times"] for page in found["pages"]) == 1


def test_pages_have_their_readers_heads_and_tokens():
    case = make_case(LENS, SHAPE)
    found = of(paged_decode, case)
    names = [tuple(program["program"]) for program in found["programs"]]
    owner = {page: seq for seq in range(len(LENS)) for page in pages_of(case, seq)}
    assert [page["page"] for page in found["pages"]] == list(range(found["num_pages"]))
    for page in found["pages"]:
        number = page["page"]
        assert page["tokens"] == int(case.used[number].sum())
        readers = [names[i] for i in page["programs"]]
        if number in owner:
            assert readers == [(owner[number], 0, 0), (owner[number], 1, 0)] and page["heads"] == [0, 1]
            assert page["bytes"] == page["distinct"] == page["tokens"] * 2 * 2 * 32 * 4
        else:
            assert readers == [] and page["bytes"] == page["times"] == 0
    assert len(owner) < found["num_pages"]


def test_naive_l2_reads_every_byte_once_a_query_head():
    case = make_case(LENS, SHAPE)
    found, packed = of(naive_paged_decode, case), of(paged_decode, case)
    assert found["bytes"]["total"] == SHAPE.group_size * packed["bytes"]["total"]
    assert found["bytes"]["least"] == packed["bytes"]["least"] == found["bytes"]["distinct"]
    read = [page for page in found["pages"] if page["programs"]]
    assert all(page["times"] == SHAPE.group_size and len(page["programs"]) == 8 for page in read)


def test_l3_splits_have_pages_of_their_own_and_the_combine_reads_no_cache():
    case = make_case([60, 20], SHAPE)
    found = of(split_kv_decode, case, num_splits=2)  # one map: that of the split kernel
    assert found["kernel"] == "_split_kernel" and found["launch"] == 0 and found["grid"] == [2, 2, 2]
    for program in found["programs"]:
        seq, _, split = program["program"]
        pages = pages_of(case, seq)
        half = -(-len(pages) // 2)
        assert [r["page"] for r in program["reads"]] == pages[half * split : half * (split + 1)]
    assert found["bytes"]["total"] == found["bytes"]["least"]


def test_a_shared_page_counts_once_in_the_least():
    case = make_case([32, 32], SHAPE)
    case.block_table[1, 0] = case.block_table[0, 0]  # a prefix that both sequences have
    found = of(paged_decode, case)
    shared = found["pages"][int(case.block_table[0, 0])]
    assert len(shared["programs"]) == 4 and shared["times"] == 2
    assert found["bytes"]["total"] == found["bytes"]["least"] * 4 // 3


def test_no_cache_no_map():
    assert mapped(lambda: online_softmax(torch.ones(20), torch.ones(20, 3))) == []
    case = make_case([], SHAPE)
    assert mapped(lambda: paged_decode(*case.args, **case.kwargs)) == []


@triton.jit
def _walk_kernel(
    out_ptr, keys, values, block_table_ptr, seq_lens_ptr, stride_table, stride_page, stride_n, stride_h,
    PAGE_SIZE: tl.constexpr, HEAD_DIM: tl.constexpr, MASKED: tl.constexpr, SKIP: tl.constexpr,
    BACKWARDS: tl.constexpr,
):  # fmt: skip
    """Reads K of all pages of one head, then V of them: the last SKIP left out, with or without a mask."""
    seq_len = tl.load(seq_lens_ptr + tl.program_id(0))
    pages = tl.cdiv(seq_len, PAGE_SIZE) - SKIP
    offs = tl.arange(0, PAGE_SIZE)[:, None] * stride_n + tl.arange(0, HEAD_DIM)[None, :]
    offs += tl.program_id(1) * stride_h
    total = 0.0
    for i in range(pages):
        page = pages - 1 - i if BACKWARDS else i
        at = tl.load(block_table_ptr + tl.program_id(0) * stride_table + page) * stride_page + offs
        mask = (page * PAGE_SIZE + tl.arange(0, PAGE_SIZE) < seq_len)[:, None] | (not MASKED)
        total += tl.sum(tl.sum(tl.load(keys + at, mask=mask, other=0.0), 0), 0)
    for page in range(pages):
        at = tl.load(block_table_ptr + tl.program_id(0) * stride_table + page) * stride_page + offs
        mask = (page * PAGE_SIZE + tl.arange(0, PAGE_SIZE) < seq_len)[:, None] | (not MASKED)
        total += tl.sum(tl.sum(tl.load(values + at, mask=mask, other=0.0), 0), 0)
    tl.store(out_ptr + tl.program_id(0), total)


def walk(case, masked=True, skip=0, backwards=False, times=1) -> None:
    """The walk over caches as they lie in memory, NHD or HND, under names that say nothing."""
    heads_first = case.kwargs["kv_layout"] == "HND"
    page, a, b, _ = case.k_cache.stride()
    for _ in range(times):
        _walk_kernel[(len(case.lens), 2)](
            torch.zeros(len(case.lens)), case.k_cache, case.v_cache, case.block_table, case.seq_lens,
            case.block_table.stride(0), page, *((b, a) if heads_first else (a, b)),
            PAGE_SIZE=16, HEAD_DIM=32, MASKED=masked, SKIP=skip, BACKWARDS=backwards,
        )  # fmt: skip


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
def test_caches_are_known_by_their_shape_and_their_layout_by_the_page(kv_layout):
    case = make_case([37, 16], SHAPE, kv_layout=kv_layout)
    (found,) = mapped(lambda: walk(case))
    assert found["caches"] == {"k": "keys", "v": "values"}
    assert (found["page_size"], found["num_kv_heads"]) == (16, 2)
    assert all(r["heads"] == [p["program"][1]] for p in found["programs"] for r in p["reads"])
    assert [r["slots"] for r in found["programs"][0]["reads"]] == [16, 16, 5]
    assert found["bytes"]["total"] == found["bytes"]["least"]


def test_the_order_is_that_of_the_first_touch():
    case = make_case([37], SHAPE)
    (found,) = mapped(lambda: walk(case, backwards=True))
    assert [r["page"] for r in found["programs"][0]["reads"]] == pages_of(case, 0)[::-1]


def test_slots_without_a_token_and_tokens_that_were_missed():
    case = make_case([37, 20], SHAPE, unused=0.0)
    (found,) = mapped(lambda: walk(case, masked=False))
    assert found["bytes"]["beyond"] == (11 + 12) * 2 * 2 * 32 * 4 and found["missed"] == 0
    assert found["bytes"]["total"] == found["bytes"]["least"] + found["bytes"]["beyond"]
    (found,) = mapped(lambda: walk(case, skip=1))
    assert found["missed"] == 5 + 4 and found["bytes"]["beyond"] == 0
    unread = [page for page in found["pages"] if page["tokens"] and not page["programs"]]
    assert [page["tokens"] for page in unread] == [case.used[p["page"]].sum() for p in unread] and unread


def test_tables_are_those_of_the_launch_not_those_of_the_end():
    case = make_case([20, 33], SHAPE)

    def steps():
        for _ in range(2):
            walk(case)
            case.seq_lens.sub_(1)
        case.block_table.fill_(-1)

    first, second = mapped(steps)
    assert first["missed"] == second["missed"] == 0
    assert first["bytes"]["least"] - second["bytes"]["least"] == 2 * 2 * 2 * 32 * 4
    assert [m["launch"] for m in (first, second)] == [0, 1]


def test_without_tables_the_least_is_what_was_read():
    case = make_case([37, 20], SHAPE)
    (found,) = mapped(lambda: naive_paged_decode(*case.args, **case.kwargs), with_tables=False)
    assert found["missed"] is None and all(page["tokens"] is None for page in found["pages"])
    assert found["bytes"]["least"] == found["bytes"]["distinct"] == found["bytes"]["total"] // 4


def test_wrong_entries_of_a_table_do_no_harm():
    tables = Tables()
    table, lengths = torch.tensor([[99, -1, 2]]).numpy(), torch.tensor([100]).numpy()
    tables.by_launch[0] = table, lengths
    used = tables.tokens(0, 4, 16)
    assert used.sum() == 16 and used[2].all()
    assert tables.tokens(1, 4, 16) is None


PROGRAM = """
import torch
from scripts.runner import session
source = '''
import torch
from kernels.{module} import {function}
from tests.runner.stepped import numbers
def tensor(shape, step): return torch.tensor(numbers(shape, step).tolist())
table = torch.tensor([[7, 2, 9, -1], [4, 1, -1, -1]], dtype=torch.int32)
lens = torch.tensor([40, 20], dtype=torch.int32)
caches = tensor((10, 16, 2, 32), 37), tensor((10, 16, 2, 32), 53)
{function}(tensor((2, 8, 32), 11), *caches, table, lens{more})
'''
"""


@pytest.mark.parametrize(
    ("module", "function", "more"),
    [
        ("l2_paged_decode", "paged_decode", ""),
        ("l2_paged_decode", "naive_paged_decode", ""),
        ("l3_split_kv_decode", "split_kv_decode", ", num_splits=2"),
    ],
)
def test_a_run_in_the_page_gives_the_map_of_the_real_interpreter(module, function, more):
    text = PROGRAM.format(module=module, function=function, more=more)
    run = in_page(text + "result = session.run(source)\n")
    assert run["ok"], run["error"]
    names: dict = {}
    here = mapped(lambda: exec(text.split("'''")[1], names))
    assert run["page_map"]["launches"] == here and here[0]["bytes"]["total"] > 0
