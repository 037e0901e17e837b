"""A run of a reader's program: what it reports, and that nothing of it is left for the next one."""

import pytest

from tests.runner.helpers import in_page
from tests.runner.session_runs import KERNEL, runs


def test_a_report():
    (report,) = runs(KERNEL.format(value="v * 2"))
    assert report["ok"] and report["error"] is None and report["warnings"] == []
    assert report["stdout"] == "done 6.0\n"
    assert 0 < report["ms"] < 60_000
    tensors = [{"name": n, "shape": [32], "dtype": "float32"} for n in ("x_ptr", "o_ptr")]
    assert report["launches"] == [{"kernel": "kernel", "grid": [2, 1, 1], "tensors": tensors}]
    assert report["page_map"] is None and report["steps"] is None


def test_steps_and_page_map_come_along():
    (report,) = runs(KERNEL.format(value="v"), steps={"kernel": "kernel", "program": [1, 0, 0]})
    assert report["steps"]["kernel"] == "kernel" and report["steps"]["steps"]
    from scripts import run_program

    (report,) = runs(run_program.program("l2_paged_decode"))
    assert report["page_map"]["launches"][0]["page_size"] == 16
    (report,) = runs(run_program.program("l2_paged_decode"), trace=False)
    assert report["ok"] and report["page_map"] is None


def test_errors_know_the_innermost_line_of_the_readers_file():
    wrong = KERNEL.format(value="helper(v)")
    line = 1 + wrong.splitlines().index("    return tl.sqrt(v) + missing")
    shape = KERNEL.format(value="v + tl.arange(0, 8)")
    host = "import torch\n\ndef f():\n    return torch.zeros(2)[3]\n\nf()\n"
    syntax = "x = 1\ny = (\n"
    indent = "if True:\nprint(1)\n"
    reports = runs(wrong, shape, host, syntax, indent, "def f():\n    return f()\nf()\n", "1 / 0\n")
    told = [(r["error"]["kind"], r["error"]["line"]) for r in reports]
    assert told == [
        ("NameError", line), ("ValueError", 14), ("IndexError", 4), ("SyntaxError", 2),
        ("IndentationError", 2), ("RecursionError", 2), ("ZeroDivisionError", 1),
    ]  # fmt: skip
    assert "missing" in reports[0]["error"]["message"]
    assert all(r["error"]["texts"]["en"] == r["error"]["message"] for r in reports)
    assert reports[3]["error"]["message"] == "'(' was never closed"


@pytest.mark.parametrize(
    "source, error",
    [
        ("import sys\nsys.exit()\n", None),
        ("import sys\nsys.exit(0)\n", None),
        ("import sys\nsys.exit('enough')\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("raise MemoryError\n", "MemoryError"),
        ("class Mine(BaseException): pass\nraise Mine('x')\n", "Mine"),
        ("raise ValueError('a') from KeyError('b')\n", "ValueError"),
    ],
)
def test_whatever_a_program_raises_is_told(source, error):
    (report,) = runs(source)
    assert report["ok"] is (error is None)
    assert (report["error"] or {}).get("kind") == error


def test_what_is_printed_comes_at_once_and_is_not_without_end():
    told = in_page("""
        from scripts.runner import session
        told = []
        source = "for i in range(3): print(i)\\nimport sys\\nprint('warned', file=sys.stderr)"
        report = session.run(source, on_stdout=told.append)
        flood = session.run("for i in range(10000): print('x' * 1000)")
        result = [told, report["stdout"], len(flood["stdout"]), flood["stdout"][-60:]]
    """)
    assert "".join(told[0]) == told[1] == "0\n1\n2\nwarned\n"
    assert len(told[0]) > 3
    assert told[2] < 300_000 and "the output is cut after 262,144 characters" in told[3]


def test_nothing_is_left_for_the_next_run():
    first = """
        import random, sys, warnings
        import numpy as np
        import torch
        left_over = 1
        np.seterr(all="raise")
        np.set_printoptions(formatter={"all": lambda x: "?"})
        torch.manual_seed(5)
        random.seed(5)
        warnings.simplefilter("error")
        sys.settrace(lambda *args: None)
        kept = torch.ones(3)
        print(torch.randn(2), random.random(), __name__)
    """
    second = """
        import random, sys, warnings
        import numpy as np
        import torch
        assert "left_over" not in globals()
        assert sys.gettrace() is None
        assert sys.modules["__main__"].__dict__ is globals()
        print(np.float32(1e38) * np.float32(1e10), np.arange(2), torch.randn(2), random.random())
        warnings.warn("once")
    """
    one, two, three = runs(first, second, second)
    assert one["ok"] and two["ok"], two["error"]
    assert (two["stdout"], three["stdout"]) == (three["stdout"], two["stdout"])
    assert two["stdout"].startswith("inf [0 1]")
    assert two["stdout"].endswith("UserWarning: once\n")


def test_the_same_program_gives_the_same_report():
    source = KERNEL.format(value="v + tl.rand(1, i)") + "print(torch.randn(3))\n"
    one, two = runs(source, source)
    one.pop("ms"), two.pop("ms")
    assert one == two


def test_memory_and_kernels_of_a_run_are_let_go():
    alive = in_page(f"""
        import gc
        from triton.runtime.interpreter import InterpretedFunction
        from scripts.runner import hooks, session
        from scripts.runner.memory import MEM, Buffer
        counts = []
        for run in range(3):
            assert session.run({KERNEL.format(value="v * 2")!r})["ok"]
            gc.collect()
            counts.append([
                sum(isinstance(o, Buffer) for o in gc.get_objects()),
                sum(f.__code__.co_filename == "kernel.py" for f in InterpretedFunction.rewritten_fn),
                len(MEM.regions), len(hooks._injected),
            ])
        result = counts
    """)
    assert alive[0] == alive[1] == alive[2]
    assert alive[2][:3] == [0, 0, 0]


def test_tl_is_as_published_after_a_run_that_failed():
    assert (
        in_page(f"""
        import triton.language as tl
        from scripts.runner import session
        owners = tl, tl.core, tl.math, tl.tensor
        before = [{{name: getattr(owner, name) for name in dir(owner)}} for owner in owners]
        session.run({KERNEL.format(value="helper(v)")!r})
        session.run({KERNEL.format(value="v")!r} + "helper(torch)\\n")
        functions = [
            (owner, name) for owner, names in zip(owners, before) for name in names
            if callable(names[name]) and not name.startswith("__") or name in ("__bool__", "__index__")
        ]
        assert len(functions) > 300
        changed = [n for o, n in functions if getattr(o, n) is not before[owners.index(o)][n]]
        result = changed + [n for o, names in zip(owners, before) for n in dir(o) if n not in names]
    """)
        == []
    )


def test_arguments_are_checked():
    with pytest.raises(AssertionError, match="poison is 'on'; wanted one of"):
        runs("", poison="on")
