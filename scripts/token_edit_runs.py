"""Child processes for scripts/token_edits.py: the judge, and the tests, on a copy with an edited kernel.

Each child (scripts/token_edit_child.py) has a limit of time and of memory (scripts/sandbox.py); one that dies
has found something, too.
"""

import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.sandbox import Limits, Sandbox

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


@dataclass(frozen=True)
class Project:
    """A copy of the project, in which children run the judge and the tests on its own kernels/."""

    folder: Path
    box: Sandbox

    @contextmanager
    def edited(self, file: str, text: str) -> Iterator[None]:
        """The copy with this text in a file of kernels/; afterwards it is again as it was."""
        path, before = self.folder / file, (self.folder / file).read_text(encoding="utf-8")
        # Compiled files go by size and second: an edit can leave both as they were.
        compiled = self.folder / "kernels/__pycache__"
        try:
            shutil.rmtree(compiled, ignore_errors=True)
            path.write_text(text, encoding="utf-8")
            yield
        finally:
            shutil.rmtree(compiled, ignore_errors=True)
            path.write_text(before, encoding="utf-8")

    def judge(self, kernel: str) -> tuple[int, str] | None:
        """(number of the first of the judge's cases that differs, how), or None."""
        outcome = self._run(["judge", kernel], JUDGE_LIMIT_S)
        if outcome.died:
            return outcome.last, outcome.died
        return tuple(outcome.result) if outcome.result else None

    def caught_by(self, lesson: str, kernel: str | None = None) -> str | None:
        """The first test of a lesson's that fails, or that ends the process; None: all pass."""
        first = FIRST.get(kernel)
        files = [f"tests/kernels/{name}.py" for name in SUITES.get(kernel, SUITES[lesson])]
        files.sort(key=lambda file: first is None or first not in file)
        outcome = self._run(["tests", *files, *([f"--first={first}"] if first else [])], SUITE_LIMIT_S)
        return f"{outcome.last} ({outcome.died})" if outcome.died else outcome.result

    def failing(self, test: str) -> bool:
        """Whether this one test fails, or ends the process."""
        outcome = self._run(["tests", test.partition(" (")[0]], SUITE_LIMIT_S)
        return bool(outcome.died or outcome.result)

    def _run(self, arguments: list[str], limit_s: int) -> Outcome:
        """The outcome of a child; it runs in the copy, and imports all of the project from there."""
        out = self.folder / "report.json"
        out.unlink(missing_ok=True)
        limits = Limits(limit_s, of_a_core=True, memory_bytes=MEMORY_LIMIT, project=True)
        arguments = [*arguments, f"--out={out}"]
        ended = self.box.run("interpreter", "scripts.token_edit_child", arguments, self.folder, limits)
        report = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        if ended.status == 0 and "result" in report:
            return Outcome(report["result"], None, report["last"])
        if "last" not in report:  # it died before it began: that is our failure, not the kernel's
            raise RuntimeError(f"a child ended before it began: {ended}\n{ended.stderr[-1000:]}")
        late = ended.status == -signal.SIGXCPU
        return Outcome(None, f"not done after {limit_s} s" if late else str(ended), report["last"])


@contextmanager
def copy_of_the_project() -> Iterator[Project]:
    """A folder in which the tests run, on its own kernels/."""
    with tempfile.TemporaryDirectory() as name, Sandbox() as box:
        folder, ignore = Path(name), shutil.ignore_patterns("__pycache__", "*.pyc")
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, ignore=ignore)
            else:
                shutil.copy(ROOT / part, folder / part)
        for part in LINKED:
            (folder / part).symlink_to(ROOT / part)
        yield Project(folder, box)
