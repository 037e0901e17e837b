"""A lesson's checks in the interpreter, small ones first: what scripts/drill_run.py runs in a child process.

    python -m scripts.mutant_checks l2_paged_decode --out report.json [--file mine/l2_paged_decode.py]

Where `kernels` is imported from decides what is checked; --file names a file whose function is taken in its
place. The report is written after every step, so that a process that dies leaves the last. Stops at the
first kind that fails.
"""

import argparse
import importlib.util
import json
import os
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from unittest import mock

FUNCTIONS = {
    "online_softmax": "online_softmax",
    "l2_paged_decode": "paged_decode",
    "l3_split_kv_decode": "split_kv_decode",
}


def load_function(lesson: str, file: Path | None):
    """The lesson's function: of `kernels`, or of a reader's file."""
    if file is None:
        return getattr(importlib.import_module(f"kernels.{lesson}"), FUNCTIONS[lesson])
    function = getattr(load_file(file), FUNCTIONS[lesson], None)
    if not callable(function):
        raise ImportError(f"it has no function {FUNCTIONS[lesson]}")
    return function


def load_file(file: Path, name: str = "readers_kernel"):
    """A module from a path, of a name of its own."""
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Checks:
    """The checks of one lesson on one function, and what they saw."""

    def __init__(self, lesson: str, function, out: Path):
        from tests.helpers.mode import ON_GPU

        self.lesson, self.function, self.out, self.traced = lesson, function, out, not ON_GPU
        self.signs: set[str] = set()
        self.access: dict | None = None  # the first that breaks a rule
        self.printed: tuple[int, int] | None = None  # from and to: what was printed in the case that fails
        self.observed: list[tuple] = []

    def run(self) -> None:
        """All checks; the report of the first that fails, with the mistakes that explain it."""
        from scripts.diagnose import diagnose
        from scripts.mutant_compile import recorded_launches

        failure = self.problems() or self.without_lse()
        if failure is None and self.traced and self.lesson != "online_softmax":
            failure = self.bad_table() or self.big_cache()
        if failure:
            mistakes = diagnose(self.lesson, self.observed, self.signs)
            if not mistakes and self.access and failure["check"] != "tracer":
                failure |= {"also": self.access["message"]}  # often the reason
            if self.printed and failure["check"] in ("values", "poison", "tracer"):
                failure |= printed(self.out.with_name("stdout"), *self.printed)
            write(self.out, ok=False, mistakes=mistakes, **failure)
        elif self.traced:
            write(self.out, ok=True, launches=recorded_launches(self.lesson, self.function))
        else:
            write(self.out, ok=True)

    def problems(self) -> dict | None:
        """Every problem, outputs and scratch poisoned, every access traced; the first failure, of values
        before one of accesses. All are run, even after a failure: the diagnosis wants them."""
        from scripts.mutant_problems import problems_of

        values = accesses = None
        for problem in problems_of(self.lesson):
            write(self.out, check="values", case=str(problem))
            begin = printed_bytes()
            value, access = self._run(problem)
            if values is None and (value or (access and accesses is None)):
                self.printed = begin, printed_bytes()
            values = values or (value and value | {"case": str(problem)})
            accesses = accesses or (access and access | {"case": str(problem)})
        self.access = accesses
        return values or accesses

    def _run(self, problem) -> tuple[dict | None, dict | None]:
        """What is wrong with the result of one problem, and with its accesses."""
        from scripts.mutant_findings import is_pair, kind_of, raised, shortened, violations, worst
        from scripts.trace_record import TraceError
        from scripts.tracer import trace
        from tests.helpers.poison import PoisonError, poisoned

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
        import torch

        from scripts.mutant_findings import kind_of, raised
        from scripts.mutant_problems import problems_of

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
        from scripts.mutant_problems import PagedProblem
        from scripts.tracer import trace
        from tests.helpers.cases import make_case

        case = make_case([37], num_kv_heads=1, spare_pages=9)
        case.block_table[0, :3] = case.block_table.new_tensor([9, -1, 7])
        problem = PagedProblem(case, 3 if self.lesson == "l3_split_kv_decode" else None)
        write(self.out, check="bad_table", case=str(problem))
        try:
            with mock.patch("kernels.checks.check_ids"), trace() as t:
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
        """Pages on both sides of 2**31 elements; a wrong address may end this process."""
        from scripts.mutant_findings import raised
        from tests.helpers import big_cache

        what = {"check": "big_cache", "case": f"page {big_cache.FIRST_PAGE_OUT_OF_INT32} of the cache"}
        write(self.out, known=["l2_paged_decode/int32_page_offset"], **what)
        try:
            # Left to choose, the interpreter would not split.
            splits = {"num_splits": 2} if self.lesson == "l3_split_kv_decode" else {}
            decode = partial(self.function, **splits)
            with mock.patch.dict(big_cache.DECODERS, {"checked": decode}):
                big_cache.check("checked")
        except AssertionError as error:
            self.signs.add("far_page")
            return what | {"message": str(error)}
        except Exception as error:  # no memory for it, say: as above, but no sign of anything
            return what | {"message": raised(error)}
        return None


def printed_bytes() -> int:
    """How much has been written to stdout, which is a file here (scripts/sandbox.py)."""
    sys.stdout.flush()
    return os.fstat(sys.__stdout__.fileno()).st_size


def printed(stdout: Path, begin: int, end: int, most: int = 20) -> dict:
    """{"printed": the first lines of a reader's own print between these bytes}, if there are any."""
    if end <= begin or not stdout.is_file():
        return {}
    with stdout.open("rb") as file:
        file.seek(begin)
        rows = file.read(min(end - begin, 100 * most)).decode(errors="replace").splitlines()
    return {"printed": rows[:most]}


def write(out: Path, **report) -> None:
    """Write what is known now."""
    part = out.with_suffix(".part")
    part.write_text(json.dumps(report), encoding="utf-8")
    part.replace(out)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever the checks find, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=FUNCTIONS)
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--file", type=Path, help="a reader's file with the lesson's function")
    parser.add_argument("--gpu", action="store_true", help="wants a GPU, and looks at results alone")
    args = parser.parse_args(arguments)
    # It says where triton runs, before anything is decorated.
    from tests.helpers.mode import ON_GPU  # isort: skip
    from scripts.mutant_findings import raised

    if args.gpu and not ON_GPU:
        message = "torch finds no CUDA GPU here; without --gpu the check runs in the interpreter"
        write(args.out, ok=False, check="gpu", mistakes=[], message=message)
        return 0
    try:
        function = load_function(args.lesson, args.file)
    except (Exception, SystemExit) as error:
        name = args.file.name if args.file else "kernels"
        message = f"{name} cannot be imported: {raised(error).removeprefix('raised ')}"
        write(args.out, ok=False, check="import", mistakes=[], message=message)
        return 0
    if "kernels.ops" in sys.modules:
        message = f"{args.file.name} imports kernels.ops; an op is registered once, and that is the solution"
        write(args.out, ok=False, check="import", mistakes=[], message=message)
        return 0
    Checks(args.lesson, function, args.out).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
