"""A lesson's checks on one function, in the interpreter, small ones first; the first kind that fails ends it.

A library: scripts/drill_kernel.py runs it in a child process, and the page in its own.
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

from kernels import checks
from scripts.diagnose import diagnose
from scripts.drill_child import load_function
from scripts.mutant_findings import is_pair, kind_of, raised, shortened, violations, worst
from scripts.mutant_problems import PagedProblem, problems_of
from scripts.patching import patched
from scripts.trace_record import TraceError
from scripts.tracer import trace
from tests.helpers import big_cache
from tests.helpers.cases import make_case
from tests.helpers.mode import ON_GPU
from tests.helpers.poison import PoisonError, poisoned

PRINTED_ROWS = 20  # of what a reader's file prints, at most so many are shown


class Output(Protocol):
    """What has been printed so far."""

    def size(self) -> int:
        """How much there is."""

    def rows(self, begin: int, end: int) -> list[str]:
        """The first lines between two sizes."""


def read(lesson: str, file: Path | None) -> tuple[Callable | None, dict | None]:
    """The lesson's function, of a reader's file or of `kernels`, or the report of why there is none."""
    failure = {"ok": False, "check": "import", "mistakes": []}
    try:
        function = load_function(lesson, file)
    except (Exception, SystemExit) as error:
        name = file.name if file else "kernels"
        return None, failure | {
            "message": f"{name} cannot be imported: {raised(error).removeprefix('raised ')}"
        }
    if "kernels.ops" in sys.modules:
        message = f"{file.name} imports kernels.ops; an op is registered once, and that is the solution"
        return None, failure | {"message": message}
    return function, None


class Checks:
    """The checks of one lesson on one function, and what they saw.

    say: called with the report that it would be if the process died now. far: runs the check past 2**31
    elements, where a wrong address may end the process.
    """

    def __init__(
        self, lesson: str, function: Callable, say: Callable[..., None], output: Output,
        far: Callable[[Callable[[], None]], None] = lambda run: run(),
    ) -> None:  # fmt: skip
        self.lesson, self.function, self.say, self.output, self.far = lesson, function, say, output, far
        self.traced = not ON_GPU
        self.signs: set[str] = set()
        self.access: dict | None = None  # the first that breaks a rule
        self.printed: tuple[int, int] | None = None  # from and to: what was printed in the case that fails
        self.observed: list[tuple] = []

    def run(self) -> dict:
        """All checks; the report of the first that fails, with the mistakes that explain it."""
        failure = self.problems() or self.without_lse()
        if failure is None and self.traced and self.lesson != "online_softmax":
            failure = self.bad_table() or self.big_cache()
        if not failure:
            return {"ok": True}
        mistakes = diagnose(self.lesson, self.observed, self.signs)
        if not mistakes and self.access and failure["check"] != "tracer":
            failure |= {"also": self.access["message"]}  # often the reason
        if self.printed and failure["check"] in ("values", "poison", "tracer"):
            rows = self.output.rows(*self.printed)
            failure |= {"printed": rows} if rows else {}
        return {"ok": False, "mistakes": mistakes} | failure

    def problems(self) -> dict | None:
        """Every problem, outputs and scratch poisoned, every access traced; the first failure, of values
        before one of accesses. All are run, even after a failure: the diagnosis wants them."""
        values = accesses = None
        for problem in problems_of(self.lesson):
            self.say(check="values", case=str(problem))
            begin = self.output.size()
            value, access = self._run(problem)
            if values is None and (value or (access and accesses is None)):
                self.printed = begin, self.output.size()
            values = values or (value and value | {"case": str(problem)})
            accesses = accesses or (access and access | {"case": str(problem)})
        self.access = accesses
        return values or accesses

    def _run(self, problem) -> tuple[dict | None, dict | None]:
        """What is wrong with the result of one problem, and with its accesses."""
        result = wrong = None
        try:
            # The tracer does not carry out what falls outside a tensor, so that it harms nobody.
            with poisoned(), trace() if self.traced else nullcontext() as t:
                result = problem.run(self.function)
        except PoisonError as error:
            self.signs.add("unwritten" if "never written" in str(error) else "padding")
            wrong = {"check": "poison", "message": str(error)}
        except TraceError as error:
            wrong = {"check": "tracer", "message": str(error)}
        except Exception as error:  # whatever a kernel under check raises is a finding, not our failure
            wrong = {"check": "values", "message": raised(error)}
        if not is_pair(result):
            if result is not None or wrong is None:
                message = f"returned {kind_of(result)}; wanted two tensors (o, lse): return_lse is True"
                wrong = {"check": "values", "message": message}
            self.observed.append((problem.on_cpu(), None))
            return wrong, None
        found = violations(t, problem) if self.traced and t.launches else []
        self.signs |= {sign for sign, _ in found if sign}
        if wrong is None:
            try:
                problem.judge(*result)
            except AssertionError as error:
                wrong = {"check": "values", "message": shortened(str(error))} | worst(problem, result)
        self.observed.append((problem.on_cpu(), tuple(t.cpu() for t in result)))
        return wrong, {"check": "tracer", "message": found[0][1]} if found else None

    def without_lse(self) -> dict | None:
        """o alone where return_lse is not asked for."""
        problem, (_, (o, _)) = problems_of(self.lesson)[0], self.observed[0]
        try:
            alone = problem.run(self.function, return_lse=False)
        except Exception as error:
            message = raised(error)
        else:
            if isinstance(alone, torch.Tensor) and torch.equal(alone.cpu(), o):
                return None
            found = "another o" if isinstance(alone, torch.Tensor) else kind_of(alone)
            message = f"returned {found}; wanted the same o alone: return_lse is False"
        return {"check": "values", "case": str(problem), "message": message}

    def bad_table(self) -> dict | None:
        """A page id of -1 inside a sequence, past the host's check: the kernel must not make it page 0."""
        case = make_case([37], num_kv_heads=1, spare_pages=9)
        case.block_table[0, :3] = case.block_table.new_tensor([9, -1, 7])
        problem = PagedProblem(case, 3 if self.lesson == "l3_split_kv_decode" else None)
        self.say(check="bad_table", case=str(problem))
        try:
            with patched(checks, "check_ids", lambda *args: None), trace() as t:
                problem.run(self.function)
        except (ValueError, AssertionError):
            return None  # refused, or an address of nowhere: not another page
        keys = case.k_cache.data_ptr()
        reads = [a for a in t.accesses if a.op == "load" and a.view.tensor.data_ptr() == keys]
        if not any((read.coordinates[0] == 0).any() for read in reads):
            return None
        self.signs.add("page_0")
        message = "page 0 was read for a block_table entry of -1: another sequence's keys, without an error"
        return {"check": "bad_table", "case": str(problem), "message": message}

    def big_cache(self) -> dict | None:
        """Pages on both sides of 2**31 elements."""
        what = {"check": "big_cache", "case": f"page {big_cache.FIRST_PAGE_OUT_OF_INT32} of the cache"}
        self.say(known=["l2_paged_decode/int32_page_offset"], **what)
        try:
            # Left to choose, the interpreter would not split.
            splits = {"num_splits": 2} if self.lesson == "l3_split_kv_decode" else {}
            decode = partial(self.function, **splits)
            with patched(big_cache, "DECODERS", big_cache.DECODERS | {"checked": decode}):
                self.far(partial(big_cache.check, "checked"))
        except AssertionError as error:
            self.signs.add("far_page")
            return what | {"message": str(error)}
        except Exception as error:  # no memory for it, say: as above, but no sign of anything
            return what | {"message": raised(error)}
        return None


def first_rows(text: str) -> list[str]:
    """What a report shows of what a reader's file prints."""
    return text.splitlines()[:PRINTED_ROWS]


def guarded(run: Callable[[], None]) -> None:
    """Run what may compute a wrong address, so that it harms nobody: what fails is told by its access."""
    with trace() as t:
        try:
            run()
        except AssertionError:
            t.assert_in_bounds()
            raise
