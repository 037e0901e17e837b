"""Simulated memory: buffers, windows, views of launches, and the record of every access."""

import json

import pytest

from tests.runner.helpers import ROOT, in_page


def test_a_buffer_has_bytes_and_an_address_of_its_own():
    facts = in_page("""
        import numpy as np
        from scripts.runner.memory import MEM, MIDDLE, POISON, WINDOW_BITS
        a, b = MEM.alloc(100, written=True), MEM.alloc(40, written=False)
        result = {
            "aligned": [buffer.data.ctypes.data % 64 for buffer in (a, b)],
            "bytes": [a.data.tolist() == [0] * 100, b.data.tolist() == [POISON] * 40, a.nbytes, b.nbytes],
            "written": [a.written is None, b.written.tolist() == [False] * 40],
            "middle": [buffer.base % 2**WINDOW_BITS == MIDDLE for buffer in (a, b)],
            "far": abs(a.base - b.base) >= 2**44,
            "same": a.base == a.base,
            "nan": bool(np.isnan(b.data.view(np.float32)).all() and np.isnan(b.data.view(np.float16)).all()),
            "found": [MEM.region_at(a.base + offset).alive() is a for offset in (0, -(2**43), 2**43 - 1)],
        }
    """)
    assert facts == {
        "aligned": [0, 0], "bytes": [True, True, 100, 40], "written": [True, True], "middle": [True, True],
        "far": True, "same": True, "nan": True, "found": [True, True, True],
    }  # fmt: skip


def test_windows_are_free_again_with_their_buffers_and_with_the_run():
    assert in_page("""
        import gc
        from scripts.runner import memory
        from scripts.runner.memory import MEM
        memory.WINDOWS = 8  # of which six can be had
        kept = [MEM.alloc(8, written=True) for _ in range(5)]
        bases = {buffer.base for buffer in kept}
        for _ in range(20):  # one after the other, the sixth
            one = MEM.alloc(8, written=True)
            assert one.base not in bases
            del one
        kept.append(MEM.alloc(8, written=True))
        kept[-1].base
        try:
            MEM.alloc(8, written=True).base
        except memory.OutOfMemory as error:
            full = error.code
        old = kept[0].base
        MEM.reset()
        found = MEM.region_at(old)
        result = [len(bases), full, found, kept[0].base in {k.base for k in kept[1:]}]
    """) == [5, "out_of_windows", None, False]  # fmt: skip


def test_the_record_is_that_of_the_tracer_with_lines():
    same, lines = in_page("""
        from pathlib import Path
        from kernels import l3_split_kv_decode as lesson
        from scripts.runner import session
        from scripts.tracer import trace
        from tests.helpers.cases import make_case
        def told(trace):
            return [
                [a.op, a.kernel, a.launch.number, list(a.program), a.name, a.offsets.tolist(),
                 a.index.tolist(), a.sequence]
                for a in trace.accesses
            ]
        case = make_case([37, 0, 16])
        file = lesson.__file__
        record = session.begin(file, Path(file).read_text(), trace=True)
        lesson.split_kv_decode(*case.args, num_splits=2)
        own = told(record.trace)
        lines = sorted({(a.name, a.line) for a in record.trace.accesses})
        session.begin(file, Path(file).read_text())
        with trace() as theirs:
            lesson.split_kv_decode(*case.args, num_splits=2)
        result = [own == told(theirs) and len(own) > 50, lines]
    """)  # fmt: skip
    assert same
    source = (ROOT / "kernels/l3_split_kv_decode.py").read_text(encoding="utf-8").splitlines()
    for name, line in lines:
        if line is not None:  # of attend_pages, which is in another file
            assert any(name in text for text in source[line - 1 : line + 5]), (name, line)
    assert {name for name, line in lines if line is not None} >= {"seq_lens_ptr", "o_partial_ptr", "q_ptr"}


def test_the_tracers_rules_hold_on_the_record():
    assert in_page("""
        from pathlib import Path
        from kernels import l2_paged_decode as lesson
        from scripts.runner import session
        from tests.helpers.cases import make_case
        case = make_case([37, 0, 16])
        record = session.begin(lesson.__file__, Path(lesson.__file__).read_text(), trace=True)
        lesson.paged_decode(*case.args)
        record.trace.assert_in_bounds()
        record.trace.assert_written_once("o_ptr")
        record.trace.assert_table_reads(case.block_table, case.seq_lens, case.k_cache.shape[1])
        result = record.trace.read_counts("seq_lens_ptr").tolist()
    """)


@pytest.mark.parametrize(
    "dtype, values, expected",
    [
        ("float32", [1.5, 2.5, -1.0], [3.0, 1.5, 4.0]),
        ("int32", [1, 2, -1], [2, 1, 3]),
    ],
)
def test_lanes_at_one_address_add_up_one_after_the_other(dtype, values, expected):
    """Three lanes add to one element: what each got is what was there before it."""
    assert in_page(
        """
        import json
        import numpy as np
        from scripts.runner.memory import MEM
        from triton._C.libtriton.interpreter import RMW_OP
        dtype, values = json.loads(sys.argv[2])
        buffer = MEM.alloc(16, written=True)
        ptrs = np.array([buffer.base + 4] * 3, np.uint64)
        op = RMW_OP.FADD if dtype == "float32" else RMW_OP.ADD
        old = MEM.atomic_rmw(op, ptrs, np.array(values, dtype), np.ones(3, bool), None)
        result = [float(buffer.data.view(dtype)[1]), float(old[1]), float(old[2])]
        """,
        arguments=(json.dumps([dtype, values]),),
    ) == [float(x) for x in expected]


def test_what_is_remembered_for_speed_is_what_triton_works_out():
    """Types of many shapes, with published Triton here and with the remembering page there."""
    import triton.language as tl

    program = """
        import itertools
        shapes = [list(s) for n in (1, 2, 3) for s in itertools.product((1, 2, 16), repeat=n)]
        kinds = [tl.float32, tl.int1, tl.int64, tl.pointer_type(tl.float16), tl.pointer_type(tl.float16, 3)]
        blocks = [tl.block_type(kind, shape) for _ in range(2) for kind in kinds for shape in shapes]
        tensors = [tl.tensor(None, block) for block in blocks]
        result = [
            [str(b), list(b.shape), b.numel, str(b.element_ty), str(t), [s.value for s in t.shape],
             t.numel.value]
            for b, t in zip(blocks, tensors)
        ]
    """
    import textwrap

    here: dict = {"tl": tl}
    exec(textwrap.dedent(program), here)
    assert in_page("        import triton.language as tl\n" + program) == here["result"]


def test_kernels_that_look_alike_are_not_taken_for_each_other():
    kernel = """
import torch, triton
import triton.language as tl

K = tl.constexpr({constant})

@triton.jit
def kernel(o_ptr, N: tl.constexpr = {default}):
    i = tl.arange(0, 4)
    tl.store(o_ptr + i, i * {factor} + K + N)

o = torch.zeros(4)
kernel[(1,)](o)
print(o.tolist())
"""
    variants = [(1, 2, 3), (1, 2, 3), (5, 2, 3), (1, 7, 3), (1, 2, 9)]
    sources = [kernel.format(constant=c, default=d, factor=f) for c, d, f in variants]
    printed = in_page(
        """
        import json
        from scripts.runner import session
        result = [session.run(source)["stdout"] for source in json.loads(sys.argv[2])]
        """,
        arguments=(json.dumps(sources),),
    )
    assert printed == [f"{[float(i * f + c + d) for i in range(4)]}\n" for c, d, f in variants]
