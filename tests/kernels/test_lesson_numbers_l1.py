"""The numbers that lesson L1 works out by hand, computed again."""

import pytest
import torch

from kernels.l0_shapes import grouped_spec
from kernels.l1_page_table import PageTable
from kernels.l1_paged_cache import PagedKVCache
from scripts import records
from tests.helpers.lesson import assert_numbers, nbytes, sections
from tests.helpers.marks import interpreter_only

LESSON = "l1_paged_cache"
HEADS, HEAD_DIM, LAYERS, PAGE = 8, 128, 32, 32
TOKEN = nbytes(2, HEADS, HEAD_DIM)


def grown() -> tuple[PageTable, int]:
    """The run of the first figure: A beside B, after somebody else."""
    table = PageTable(10, PAGE)
    other = table.allocate(50)
    a, b = table.allocate(30), table.allocate(60)
    while table.num_tokens(a) < 68:
        table.append([a, b])
    table.free(other)
    return table, a


def test_bytes_of_a_token():
    assert grouped_spec(32, HEADS, HEAD_DIM).bytes_per_token == TOKEN
    assert_numbers(LESSON, "step", [
        (nbytes(32, 4096, 4096), "1,073,741,824"), (TOKEN, "4096"), (LAYERS * TOKEN, "131,072"),
        (LAYERS * TOKEN / 1024, "128"),
    ])  # fmt: skip


def test_reserving_the_maximum():
    assert_numbers(LESSON, "three-ways", [(64 * 4096 * LAYERS * TOKEN / 2**30, "32")])


def test_a_page():
    assert_numbers(LESSON, "table", [(nbytes(PAGE, HEADS, HEAD_DIM), "65,536")])


def test_the_worked_example():
    table, a = grown()
    assert table.pages(a) == [2, 5, 7]
    for lang in ("zh", "en"):
        text = sections(lang, LESSON)["slot"]
        for token in (0, 31, 32, 40, 67):
            page, place = table.pages(a)[token // PAGE], token % PAGE
            row = f"| {token} | {token // PAGE} | {place} | {page} | {page} × {PAGE} + {place} = "
            assert f"{row}{table.slot(a, token)} |" in text
    assert_numbers(LESSON, "slot", [
        (len(table.pages(a)), "3"), (68 - 2 * PAGE, "4"), (3 * PAGE - 68, "28"), (PAGE - 1, "31"),
        ((PAGE - 1) * LAYERS * TOKEN / 2**20, "3.875"), (4096 - 68, "4028"),
    ])  # fmt: skip


def test_without_copy_on_write_both_would_be_at_one_slot():
    table, a = grown()
    assert_numbers(LESSON, "pitfall-no-copy", [(table.pages(a)[2] * PAGE + 68 % PAGE, "228")])


def test_sharing_a_prefix():
    table = PageTable(400, 16)
    prefix = table.allocate(1000)
    requests = [table.fork(prefix) for _ in range(64)]
    for request in requests:
        table.append([request], 50)
    shared = sum(table.references(page) > 1 for page in table.pages(requests[0]))
    assert_numbers(LESSON, "sharing", [
        (len(table.pages(prefix)), "63"), (shared, "62"), (len(table.pages(requests[0])), "66"),
        (len(table.pages(requests[0])) - shared, "4"), (table.num_pages - table.num_free, "319"),
        (64 * 66, "4224"),
    ])  # fmt: skip


def test_addresses_in_both_layouts():
    table, a = grown()
    page, place = divmod(table.slot(a, 40), PAGE)
    for layout, address in (("NHD", "172,416"), ("HND", "177,152")):
        cache = PagedKVCache(grouped_spec(8, HEADS, HEAD_DIM), num_pages=10, page_size=PAGE, kv_layout=layout)
        strides = cache.tensors(0)["k"].stride()
        parts = [n * stride for n, stride in zip((page, place, 3), strides, strict=False)]
        names = [f"{part:,}" if part >= 10000 else str(part) for part in parts]
        numbers = [(part, name) for part, name in zip(parts, names, strict=True)]
        assert_numbers(LESSON, "layouts", [*numbers, (sum(parts), address)])


def test_bytes_that_a_step_writes_and_reads():
    assert_numbers(LESSON, "measured", [
        (64 * TOKEN, "262,144"), (64 * 1024 * TOKEN, "268,435,456"), (HEADS * HEAD_DIM * 2, "2048"),
        (HEAD_DIM * 2, "256"), (16 * HEAD_DIM * 2 / 1024, "4"), (HEAD_DIM * 2 / 32, "8"),
    ])  # fmt: skip


def test_the_page_of_a_slot_depends_on_the_page_size():
    assert_numbers(LESSON, "pitfall-layout", [(75849 // 16, "4740"), (75849 // 4, "18962")])
    assert_numbers(LESSON, "pitfall-int32", [(2**31 // 16384 - 1, "131071"), (2**31 // 16384, "131072")])


def test_a_page_of_virtual_memory():
    assert_numbers(LESSON, "interview", [(2 * 2**20 / nbytes(HEADS, HEAD_DIM), "1024")])


def test_check_yourself():
    table = PageTable(20, 16)
    a = table.allocate(8)
    others = [table.fork(a) for _ in range(3)]
    assert table.pages_needed([a, *others]) == 3 and table.pages_needed([a, others[0]]) == 2
    full = PageTable(8, 32)
    parent = full.allocate(64)
    child = full.fork(parent)
    assert full.append([child]).copies == [] and len(full.pages(child)) == 3
    assert_numbers(LESSON, "check-yourself", [(5 * 16 + 49 % 16, "81"), (4 * 16 - 50, "14")])


@pytest.fixture(scope="module")
def measured() -> dict[tuple, float]:
    """{(kind, sequences, tokens, page size, variant, layout): us} of the record that the page speaks of."""
    record = records.load(records.RESULTS / "nvidia-h200/l1_paged_cache.json")
    keys = ("kind", "batch_size", "ctx", "page_size", "variant", "kv_layout")
    return {tuple(row[key] for key in keys): row["latency_us"]["p50"] for row in record["rows"]}


def test_no_pair_of_layouts_differs_by_more_than_three_percent(measured):
    pairs = {
        key: measured[*key[:5], "HND"] / us
        for key, us in measured.items()
        if key[4] in ("write_kv", "paged_decode") and key[5] == "NHD"
    }
    assert len(pairs) == 12 and all(abs(ratio - 1) <= 0.03 for ratio in pairs.values())
    assert min(pairs.values()) < 1 < max(pairs.values())
    assert min(pairs, key=lambda key: -abs(pairs[key] - 1))[:4] == ("read", 1, 32768, 64)


def test_a_write_is_nearly_a_copy(measured):
    for sequences, tokens in ((1, 1), (8, 1), (64, 1), (256, 1), (1, 512), (1, 8192)):
        write, copy, indexed = (
            measured["write", sequences, tokens, 16, variant, layout]
            for variant, layout in (("write_kv", "NHD"), ("copy", "-"), ("index_put", "NHD"))
        )
        assert copy < write < 1.3 * copy and indexed > 5 * write


@interpreter_only
def test_run_it(capsys):
    """The page's program, without its decode kernel, which tests of L2 hold to the reference."""
    for lang in ("zh", "en"):
        text = sections(lang, LESSON)["run"]
        code, printed = text.split("```python\n")[1].split("```")[0], text.split("```console\n")[1]
        exec(compile(code, f"try_l1.{lang}", "exec"), {"torch": torch})
        assert capsys.readouterr().out == printed.split("```")[0].partition("\n")[2]
