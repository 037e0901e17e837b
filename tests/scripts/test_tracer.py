"""scripts/tracer.py sees what it is there to see: small kernels, each with one fault."""

import pytest
import torch
import triton
import triton.language as tl

from scripts.tracer import TraceError, trace
from tests.helpers.marks import interpreter_only

pytestmark = interpreter_only


@triton.jit
def _copy_kernel(
    out_ptr, x_ptr, n, BLOCK: tl.constexpr, MASK_LOAD: tl.constexpr = True, MASK_STORE: tl.constexpr = True
):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0) if MASK_LOAD else tl.load(x_ptr + offs)
    if MASK_STORE:
        tl.store(out_ptr + offs, x, mask=offs < n)
    else:
        tl.store(out_ptr + offs, x)


@triton.jit
def _rows_kernel(out_ptr, GROUP: tl.constexpr, ROWS: tl.constexpr):
    """Each program owns GROUP elements and writes ROWS of them: padding rows written back if ROWS > GROUP."""
    tl.store(out_ptr + tl.program_id(0) * GROUP + tl.arange(0, ROWS), tl.zeros([ROWS], tl.float32))


@triton.jit
def _table_kernel(
    out_ptr, table_ptr, seq_lens_ptr, stride_table, EXTRA: tl.constexpr, PAGE_SIZE: tl.constexpr
):
    """Reads the entries of one row, and EXTRA of those after them."""
    seq = tl.program_id(0)
    total = 0
    for page in range(tl.cdiv(tl.load(seq_lens_ptr + seq), PAGE_SIZE) + EXTRA):
        total += tl.load(table_ptr + seq * stride_table + page)
    tl.store(out_ptr + seq, total)


@triton.jit
def _rows_read_kernel(out_ptr, x_ptr, stride_row, columns, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride_row + offs, mask=offs < columns, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, 0))


@triton.jit
def _far_kernel(out_ptr, x_ptr, offset):
    tl.store(out_ptr, tl.load(x_ptr + offset))


@triton.jit
def _flag_kernel(out_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    """A mask of a block and a scalar together."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.zeros([BLOCK], tl.float32), mask=(offs < n) & (tl.load(flag_ptr) >= 0))


@triton.jit
def _atomic_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + offs, tl.full([BLOCK], 1.0, tl.float32), mask=offs < n)


def _copy(n=10, block=8, out_size=None, **switches):
    out, x = torch.full((out_size or n,), -1.0), torch.arange(float(n))
    with trace() as t:
        _copy_kernel[(triton.cdiv(n, block),)](out, x, n, BLOCK=block, **switches)
    return t, out, x


def test_records_what_happened_under_the_names_of_the_parameters():
    t, out, x = _copy()
    assert torch.equal(out, x)
    assert [(launch.kernel, launch.grid) for launch in t.launches] == [("_copy_kernel", [2, 1, 1])]
    assert [(a.op, a.name, a.program, a.sequence) for a in t.accesses] == [
        ("load", "x_ptr", (0, 0, 0), 0),
        ("store", "out_ptr", (0, 0, 0), 1),
        ("load", "x_ptr", (1, 0, 0), 2),
        ("store", "out_ptr", (1, 0, 0), 3),
    ]
    # Masked lanes are no accesses.
    assert t.reads("x_ptr")[1].offsets.tolist() == [8, 9]
    assert t.read_counts("x_ptr").tolist() == [1] * 10
    t.assert_in_bounds()
    t.assert_written_once("out_ptr")


def test_tracing_ends_with_the_block():
    t, *_ = _copy()
    before = len(t.accesses)
    out, x = torch.zeros(4), torch.ones(4)
    _copy_kernel[(1,)](out, x, 4, BLOCK=4)
    assert len(t.accesses) == before and torch.equal(out, x)


def test_unmasked_tail_load():
    t, *_ = _copy(MASK_LOAD=False)
    with pytest.raises(TraceError, match=r"load of x_ptr \[10\] by program \(1, 0, 0\).*6 lanes.*\[10, 11"):
        t.assert_in_bounds()


def test_store_outside_a_tensor_is_reported_and_not_carried_out():
    storage = torch.full((16,), -1.0)
    with trace() as t:
        _copy_kernel[(2,)](storage[:10], torch.arange(10.0), 10, BLOCK=8, MASK_STORE=False)
    with pytest.raises(TraceError, match=r"store of out_ptr \[10\].*6 lanes outside"):
        t.assert_in_bounds()
    assert storage[10:].tolist() == [-1.0] * 6


def test_element_never_written():
    t, *_ = _copy(out_size=12)
    with pytest.raises(TraceError, match=r"2 elements of out_ptr never written, the first at \[10\]"):
        t.assert_written_once("out_ptr")


def test_padding_rows_written_back():
    out = torch.full((3, 4), float("nan"))
    with trace() as t:
        _rows_kernel[(3,)](out, GROUP=4, ROWS=8)
    assert (
        not out.isnan().any()
    )  # the values show nothing: each program repaired what the one before it spoilt
    with pytest.raises(
        TraceError, match=r"8 elements .*first at \[1, 0\] by programs \[\(0, 0, 0\), \(1, 0, 0\)\]"
    ):
        t.assert_written_once("out_ptr")
    with pytest.raises(TraceError, match="outside"):
        t.assert_in_bounds()


def _read_table(table, lens, extra):
    seq_lens = torch.tensor(lens, dtype=torch.int32)
    with trace() as t:
        _table_kernel[(len(lens),)](
            torch.zeros(len(lens), dtype=torch.int32),
            table,
            seq_lens,
            table.stride(0),
            EXTRA=extra,
            PAGE_SIZE=16,
        )
    t.assert_table_reads(table, seq_lens, 16)
    return t


def test_table_entry_of_nobody():
    table = torch.zeros(2, 4, dtype=torch.int32)
    _read_table(table, [37, 16], extra=0)
    with pytest.raises(TraceError, match=r"program \(0, 0, 0\).*entry \[0, 3\]; sequence 0 has 3"):
        _read_table(table, [37, 16], extra=1)


def test_table_read_past_the_row_lands_in_the_next_one():
    table = torch.zeros(2, 3, dtype=torch.int32)
    with pytest.raises(TraceError, match=r"entry \[1, 0\]; sequence 0 has 3"):
        _read_table(table, [37, 16], extra=1)


def test_table_read_past_the_row_of_a_slice():
    table = torch.zeros(2, 5, dtype=torch.int32)[:, :3]
    t = _read_table(table, [37, 37], extra=0)
    t.assert_in_bounds()
    with trace() as t:
        _table_kernel[(2,)](
            torch.zeros(2, dtype=torch.int32), table, torch.tensor([37, 37], dtype=torch.int32), 5,
            EXTRA=1, PAGE_SIZE=16,
        )  # fmt: skip
    with pytest.raises(TraceError, match=r"load of table_ptr \[2, 3\].*outside it, at element offsets \[3\]"):
        t.assert_in_bounds()


def test_a_table_that_is_never_read():
    with trace() as t:
        _rows_kernel[(1,)](torch.zeros(4), GROUP=4, ROWS=4)
    with pytest.raises(TraceError, match="never read"):
        t.assert_table_reads(torch.zeros(1, 1, dtype=torch.int32), torch.tensor([1]), 16)


@pytest.mark.parametrize("columns", [3, 4])
def test_elements_of_a_view_not_of_its_storage(columns):
    """Two interleaved halves of one storage: an element of the other half is outside."""
    both = torch.arange(24.0).view(3, 2, 4)
    left, right = both[:, 0, :3], both[:, 1, :3]
    with trace() as t:
        _rows_read_kernel[(3,)](torch.zeros(3), left, left.stride(0), columns, BLOCK=4)
        _rows_read_kernel[(3,)](torch.zeros(3), right, right.stride(0), 3, BLOCK=4)
    if columns == 3:
        t.assert_in_bounds()
        rows, cols = t.reads("x_ptr")[4].coordinates
        assert (rows.tolist(), cols.tolist()) == ([1, 1, 1], [0, 1, 2])
    else:
        with pytest.raises(TraceError, match=r"load of x_ptr \[3, 3\].*offsets \[3\]"):
            t.assert_in_bounds()


@pytest.mark.parametrize("offset", [-1, 4, -(2**31), 2**31 - 1])
def test_far_addresses_keep_their_tensor(offset):
    """Also where a wild address would be another tensor's, or nobody's memory."""
    with trace() as t:
        _far_kernel[(1,)](torch.zeros(1), torch.zeros(4), offset)
    with pytest.raises(TraceError, match=rf"load of x_ptr \[4\].*\[{offset}\]"):
        t.assert_in_bounds()


def test_one_tensor_under_two_names():
    x = torch.arange(4.0)
    with trace() as t:
        _copy_kernel[(1,)](x, x, 4, BLOCK=4)
    assert len(t.reads("x_ptr")) == len(t.writes("out_ptr")) == 1
    assert not t.reads("out_ptr") and not t.writes("x_ptr")


def test_atomics_are_reads_and_writes():
    out = torch.zeros(6)
    with trace() as t:
        _atomic_kernel[(1,)](out, 6, BLOCK=8)
    assert out.tolist() == [1.0] * 6
    assert [a.op for a in t.reads("out_ptr") + t.writes("out_ptr")] == ["atomic"] * 2
    t.assert_written_once("out_ptr")


def test_reads_of_elements_that_nobody_may_read():
    t, *_ = _copy()
    t.assert_reads_within("x_ptr", torch.ones(10, dtype=torch.bool).numpy())
    with pytest.raises(TraceError, match=r"load of x_ptr .*program \(1, 0, 0\).*2 lanes.*first at \[8\]"):
        t.assert_reads_within("x_ptr", (torch.arange(10) < 8).numpy())


def test_a_name_that_no_kernel_has():
    t, *_ = _copy()
    with pytest.raises(TraceError, match=r"'y_ptr'; wanted one of \['out_ptr', 'x_ptr'\]"):
        t.assert_written_once("y_ptr")


def test_outside_the_interpreter(monkeypatch):
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"), trace():
        pass


@pytest.mark.parametrize("flag", [3, -1])
def test_a_scalar_may_be_part_of_a_mask(flag):
    out = torch.ones(8)
    with trace() as t:
        _flag_kernel[(1,)](out, torch.tensor([flag], dtype=torch.int64), 5, BLOCK=8)
    assert out.tolist() == ([0] * 5 + [1] * 3 if flag >= 0 else [1] * 8)
    assert sum(len(a.coordinates[0]) for a in t.writes("out_ptr")) == (5 if flag >= 0 else 0)
