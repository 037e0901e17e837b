"""The child process that scripts/mutants.py starts: a lesson's checks in the interpreter, small ones first.

    python -m scripts.mutant_checks l2_paged_decode --out report.json [--file mine/l2_paged_decode.py]

Where `kernels` is imported from (PYTHONPATH) decides what is checked; --file names a file whose function is
taken in its place. The report is written after every step, so that a process that dies leaves the last.
Stops at the first kind that fails. Needs TRITON_INTERPRET=1.
"""

import argparse
import importlib.util
import json
import resource
import sys
from pathlib import Path
from unittest import mock

MEMORY_LIMIT = 10 * 2**30  # of addresses: torch takes several GiB of them, the large cache 4
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


def load_file(file: Path):
    """A module from a path, of a name of its own."""
    spec = importlib.util.spec_from_file_location("readers_kernel", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Checks:
    """The checks of one lesson on one function, and what they saw."""

    def __init__(self, lesson: str, function, out: Path):
        self.lesson, self.function, self.out = lesson, function, out
        self.signs: set[str] = set()
        self.observed: list[tuple] = []

    def report(self, **what) -> None:
        """Write what is known now."""
        part = self.out.with_suffix(".part")
        part.write_text(json.dumps(what), encoding="utf-8")
        part.replace(self.out)

    def run(self) -> None:
        """All checks; the report of the first that fails, with the mistakes that explain it."""
        from scripts.diagnose import diagnose

        failure = self.problems()
        if failure is None and self.lesson != "online_softmax":
            failure = self.bad_table() or self.big_cache()
        if failure is None:
            return self.report(ok=True)
        mistakes = diagnose(self.lesson, self.observed, self.signs)
        return self.report(ok=False, mistakes=mistakes, **failure)

    def problems(self) -> dict | None:
        """Every problem, outputs and scratch poisoned, every access traced; the first failure, of values
        before one of accesses. All are run, even after a failure: the diagnosis wants them."""
        from scripts.mutant_problems import problems_of

        values = accesses = None
        for problem in problems_of(self.lesson):
            self.report(check="values", case=str(problem))
            value, access = self._run(problem)
            values = values or (value and value | {"case": str(problem)})
            accesses = accesses or (access and access | {"case": str(problem)})
        return values or accesses

    def _run(self, problem) -> tuple[dict | None, dict | None]:
        """What is wrong with the result of one problem, and with its accesses."""
        from scripts.trace_record import TraceError
        from scripts.tracer import trace
        from tests.helpers.poison import PoisonError, poisoned

        result = wrong = None
        try:
            # The tracer does not carry out what falls outside a tensor, so that it harms nobody.
            with poisoned(), trace() as t:
                result = problem.run(self.function)
        except PoisonError as error:
            self.signs.add("unwritten" if "never written" in str(error) else "padding")
            wrong = {"check": "poison", "message": str(error)}
        except TraceError as error:
            wrong = {"check": "tracer", "message": str(error)}
        except Exception as error:  # whatever a kernel under check raises is a finding, not our failure
            wrong = {"check": "values", "message": f"raised {type(error).__name__}: {error}"}
        if wrong is None and not _is_pair(result):
            wanted = "a pair of tensors (o, lse), as return_lse=True asks for"
            result, wrong = None, {"check": "values", "message": f"wanted {wanted}, not {type(result)}"}
        self.observed.append((problem, result))
        if result is None:
            return wrong, None
        found = _violations(t, problem) if t.launches else []
        self.signs |= {sign for sign, _ in found if sign}
        if wrong is None:
            try:
                problem.judge(*result)
            except AssertionError as error:
                wrong = {"check": "values", "message": str(error)} | _worst(problem, result)
        return wrong, {"check": "tracer", "message": found[0][1]} if found else None

    def bad_table(self) -> dict | None:
        """A page id of -1 inside a sequence, past the host's check: the kernel must not make it page 0."""
        from scripts.mutant_problems import PagedProblem
        from scripts.tracer import trace
        from tests.helpers.cases import make_case

        case = make_case([37], num_kv_heads=1, spare_pages=9)
        case.block_table[0, :3] = case.block_table.new_tensor([9, -1, 7])
        problem = PagedProblem(case, 3 if self.lesson == "l3_split_kv_decode" else None)
        self.report(check="bad_table", case=str(problem))
        try:
            with mock.patch("kernels.checks.check_ids"), trace() as t:
                problem.run(self.function)
        except (ValueError, AssertionError):
            return None  # refused, or an address of nowhere: not another page
        if not t.launches or not t.read_counts("k_ptr")[0].any():
            return None
        self.signs.add("page_0")
        message = "page 0 was read for a block_table entry of -1: another sequence's keys, without an error"
        return {"check": "bad_table", "case": str(problem), "message": message}

    def big_cache(self) -> dict | None:
        """Pages on both sides of 2**31 elements; a wrong address may end this process."""
        from tests.helpers import big_cache

        what = {"check": "big_cache", "case": f"page {big_cache.FIRST_PAGE_OUT_OF_INT32} of the cache"}
        self.report(**what)
        try:
            with mock.patch.dict(big_cache.DECODERS, {"checked": self.function}):
                big_cache.check("checked")
        except AssertionError as error:
            self.signs.add("far_page")
            return what | {"message": str(error)}
        except Exception as error:  # no memory for it, say: as above, but no sign of anything
            return what | {"message": f"raised {type(error).__name__}: {error}"}
        return None


def _is_pair(result) -> bool:
    import torch

    return isinstance(result, tuple) and len(result) == 2 and all(isinstance(t, torch.Tensor) for t in result)


def _worst(problem, result) -> dict:
    """Where a result is farthest from the reference: the tensor's name, index, expected, got."""
    import torch

    for what, got, expected in zip(("o", "lse"), result, problem.expected(), strict=True):
        if got.shape != expected.shape:
            return {"what": what, "expected": f"shape {list(expected.shape)}", "got": f"{list(got.shape)}"}
        if got.numel() and not (what == "o" and torch.allclose(got.double(), expected, 1e-6, 1e-6)):
            same = got.double() == expected
            error = torch.where(same, 0.0, (got.double() - expected).abs()).nan_to_num(nan=torch.inf)
            index = tuple(i.item() for i in torch.unravel_index(error.argmax(), error.shape))
            values = {"expected": f"{expected[index].item():.6g}", "got": f"{got[index].item():.6g}"}
            return {"what": what, "index": list(index)} | values
    return {}


def _violations(t, problem) -> list[tuple[str | None, str]]:
    """(sign, message) of each rule of memory access that a trace breaks."""
    from scripts.trace_record import TraceError

    stored = sorted({access.name for access in t.accesses if access.op == "store"})
    rules = [(None, t.assert_in_bounds)]
    rules += [("padding", lambda name=name: t.assert_written_once(name)) for name in stored]
    if hasattr(problem, "case"):
        case, tokens = problem.case, problem.case.used.numpy()[:, :, None, None]  # caches as NHD views
        table = (case.block_table, case.seq_lens, case.page_size)
        rules.append(("table", lambda: t.assert_table_reads(*table)))
        rules += [(None, lambda n=n: t.assert_reads_within(n, tokens)) for n in ("k_ptr", "v_ptr")]
    found = []
    for sign, rule in rules:
        try:
            rule()
        except TraceError as error:
            # Written more than once, by rows that are another program's; a hole is the poison's to tell.
            found.append((sign if sign != "padding" or "more than once" in str(error) else None, str(error)))
    return found


def main() -> int:
    """The command line; 0 whatever the checks find, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=FUNCTIONS)
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--file", type=Path, help="a reader's file with the lesson's function")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        function = load_function(args.lesson, args.file)
    except (Exception, SystemExit) as error:
        checks = Checks(args.lesson, None, args.out)
        message = f"{args.file or 'kernels'} cannot be imported: {type(error).__name__}: {error}"
        checks.report(ok=False, check="import", mistakes=[], message=message)
        return 0
    import torch

    torch.set_num_threads(1)  # the tensors are small
    Checks(args.lesson, function, args.out).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
