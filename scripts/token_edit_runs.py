"""Child processes for scripts/token_edits.py: the judge, and the tests, on a copy with an edited kernel.

Children are forked from one process that has imported torch and Triton, which saves each of them seconds.
Each has a limit of time and of memory; a child that dies has found something, too.
"""

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEMORY_LIMIT = 16 * 2**30  # of addresses: torch takes several GiB of them, a cache with far pages 4
JUDGE_LIMIT_S, SUITE_LIMIT_S = 200, 300  # of a core: a busy machine changes no verdict
COPIED, LINKED = ("kernels", "scripts", "tests", "pyproject.toml"), ("snippets", "docs")

# Lesson, or kernel, -> its tests, those of its own first. What no value shows is in the last ones.
OF_ALL = ("test_rows_far_apart", "test_worked_examples", "test_agreement", "test_int32_overflow")
SUITES = {
    "online_softmax": ("test_online_softmax", "test_merge_states", "test_lesson_numbers_softmax"),
    "l2_paged_decode": ("test_l2_paged_decode", *OF_ALL),
    "l3_split_kv_decode": ("test_l3_split_kv_decode", "test_merge_states", *OF_ALL),
}
LESSONS = tuple(SUITES)
SUITES["l2_paged"] = (*SUITES["l2_paged_decode"], *SUITES["l3_split_kv_decode"][:1])  # it has the same loop
# Tests whose file or id has this go first: they are the kernel's own.
FIRST = {
    "l2_naive": "[naive", "l2_paged": "[packed", "l3_split": "group_size=1,",
    "l3_combine": "test_merge_states", "l3_combine_unnormalized": "unnormalized",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a child ended: its result, or None and how it died; and the last thing that it said before."""

    result: object
    died: str | None
    last: object


@contextmanager
def copy_of_the_project() -> Iterator[Path]:
    """A folder in which the tests run, on its own kernels/."""
    with tempfile.TemporaryDirectory() as name:
        folder, ignore = Path(name), shutil.ignore_patterns("__pycache__", "*.pyc")
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, ignore=ignore)
            else:
                shutil.copy(ROOT / part, folder / part)
        for part in LINKED:
            (folder / part).symlink_to(ROOT / part)
        yield folder


@contextmanager
def edited(folder: Path, file: str, text: str) -> Iterator[None]:
    """The copy with this text in a file of kernels/; afterwards it is again as it was."""
    path, before = folder / file, (folder / file).read_text(encoding="utf-8")
    # Compiled files go by size and second: an edit can leave both as they were.
    try:
        shutil.rmtree(folder / "kernels/__pycache__", ignore_errors=True)
        path.write_text(text, encoding="utf-8")
        yield
    finally:
        shutil.rmtree(folder / "kernels/__pycache__", ignore_errors=True)
        path.write_text(before, encoding="utf-8")


def judge(folder: Path, kernel: str) -> tuple[int, str] | None:
    """(number of the first of the judge's cases that differs, how), or None."""
    outcome = _run(_judge, folder, (kernel,), JUDGE_LIMIT_S)
    return (outcome.last, outcome.died) if outcome.died else outcome.result


def caught_by(folder: Path, lesson: str, kernel: str | None = None) -> str | None:
    """The first test of a lesson's that fails, or that ends the process; None: all pass."""
    first = FIRST.get(kernel)
    files = [f"tests/kernels/{name}.py" for name in SUITES.get(kernel, SUITES[lesson])]
    files.sort(key=lambda file: first is None or first not in file)
    outcome = _run(_suite, folder, (files, first), SUITE_LIMIT_S)
    return f"{outcome.last} ({outcome.died})" if outcome.died else outcome.result


def failing(folder: Path, test: str) -> bool:
    """Whether this one test fails, or ends the process."""
    outcome = _run(_suite, folder, ([test.partition(" (")[0]], None), SUITE_LIMIT_S)
    return bool(outcome.died or outcome.result)


def _run(function: Callable, folder: Path, arguments: tuple, limit_s: int) -> Outcome:
    """function(say, *arguments) in a child, `folder` its current folder and first in its path."""
    context = _context()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(function, folder, there, limit_s, arguments), daemon=True)
    child.start()
    there.close()
    last = None
    try:
        while True:
            kind, what = here.recv()
            if kind == "done":
                return Outcome(what, None, last)
            last = what
    except EOFError:  # it died
        child.join()
        if last is None:  # before it began: that is our failure, not the kernel's
            raise RuntimeError(f"a child ended before it began: exit status {child.exitcode}") from None
        code = child.exitcode
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return Outcome(None, f"not done after {limit_s} s" if code == -signal.SIGXCPU else how, last)
    finally:
        child.join()


def _context() -> multiprocessing.context.BaseContext:
    """Children of one process with torch and Triton in it; the first call starts that process."""
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["torch", "triton.language", "triton.runtime.interpreter", "hypothesis", "pytest"]
    )
    return context


def _child(function: Callable, folder: Path, pipe, limit_s: int, arguments: tuple) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.chdir(folder)
    # From here on the project is the copy.
    sys.path[:] = [str(folder), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("kernels", "scripts", "tests")]:
        del sys.modules[name]
    result = function(lambda what: pipe.send(("said", what)), *arguments)
    pipe.send(("done", result))


def _judge(say: Callable, kernel: str) -> tuple[int, str] | None:
    try:
        import kernels  # noqa: F401  an edit may make it impossible
        from scripts.token_edit_judge import judge
    except Exception as error:
        return 0, f"import raised {type(error).__name__}"
    return judge(kernel, say)


def _suite(say: Callable, files: list[str], first: str | None) -> str | None:
    import pytest

    class Plugin:
        """Puts the kernel's own tests first, and notes the first that fails."""

        failed: str | None = None

        def pytest_collection_modifyitems(self, items):
            items.sort(key=lambda item: first is not None and first not in item.nodeid)

        def pytest_runtest_logstart(self, nodeid):
            say(nodeid)

        def pytest_runtest_logreport(self, report):
            if report.failed:
                self.failed = self.failed or report.nodeid

        def pytest_collectreport(self, report):
            if report.failed:
                self.failed = self.failed or report.nodeid

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none of them is needed here, and they take long
    unwanted = ("-p", "no:cacheprovider", "-p", "no:unraisableexception", "--tb=no")
    for file in files:  # most edits do not get past the first one
        plugin = Plugin()
        status = pytest.main(["-x", "-q", "-m", "not slow", *unwanted, file], [plugin])
        if plugin.failed or status:
            return plugin.failed or f"pytest ended with status {int(status)}"
    return None
