"""The checks of a drill that is one file of a lesson, what its mistakes are, and its tests: run in a child.

    python -m scripts.drill_parts l1_paged_cache --part kernels/l1_write_kv.py --out report.json \\
        --file mine/l1_paged_cache.py [--tests]

The functions and classes of --file stand in for those of --part, wherever kernels and tests have them. Small
cases (scripts/drill_cases_*.py) run with the solution and with the file, and the first difference is told. A
known mistake is named if its mutant gives the same as the file in every case. With --tests, the lesson's test
file runs instead.
"""

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import tests.conftest  # noqa: F401, where triton runs, and no deadlines: before anything is decorated
from scripts import mutants
from scripts.drill_tests import ROOT, run
from scripts.mutant_checks import load_file, write
from scripts.mutant_findings import raised


@dataclass(frozen=True)
class Part:
    """What is checked of one file of a lesson.

    names: what a reader's file must have. cases: functions without arguments that yield (what, value), value
    a tensor or plain; their docstrings name them. tests: a test file, without those that `without` chooses.
    far: a check past 2**31 elements, which may end the process, and the mistake that it then is.
    """

    names: tuple[str, ...]
    cases: tuple[Callable[[], Iterator[tuple[str, object]]], ...]
    tests: str
    without: str = ""
    far: tuple[Callable[[], None], str] | None = None


@dataclass(frozen=True)
class Raised:
    """A case that ended early."""

    kind: str
    message: str


@contextmanager
def in_place_of(part: ModuleType, other: ModuleType) -> Iterator[None]:
    """Wherever kernels and tests have a function or class of `part`: the one of that name of `other`."""
    pairs = {}
    for name, value in vars(part).items():
        if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == part.__name__:
            pairs[value] = getattr(other, name, value)
    modules = [m for n, m in list(sys.modules.items()) if n.startswith(("kernels", "tests."))]
    places = [
        (module, name, value)
        for module in modules
        for name, value in list(vars(module).items())
        if (inspect.isfunction(value) or inspect.isclass(value)) and value in pairs
    ]
    for module, name, value in places:
        setattr(module, name, pairs[value])
    try:
        yield
    finally:
        for module, name, value in places:
            setattr(module, name, value)


def observe(case: Callable) -> list[tuple[str, object]]:
    """All that a case gives, up to what it raises."""
    import torch

    seen: list[tuple[str, object]] = []
    try:
        for what, value in case():
            seen.append((what, value.cpu().clone() if isinstance(value, torch.Tensor) else value))
    except Exception as error:  # of a reader's code: a finding, not our failure
        seen.append(("", Raised(type(error).__name__, raised(error))))
    return seen


def is_same(a: object, b: object) -> bool:
    """Whether two values are the same: data bit by bit, float64 as what was computed, roundings apart."""
    import torch

    if isinstance(a, Raised) and isinstance(b, Raised):
        return a.kind == b.kind
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return type(a) is type(b) and a == b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return not bool(_wrong(a, b).any())


def _wrong(a, b):
    """Which elements of two tensors of one shape and dtype differ."""
    import torch

    if a.dtype == torch.float64:
        return ~torch.isclose(a, b, 1e-9, 1e-9, equal_nan=True)
    bits = torch.int32 if a.dtype == torch.float32 else a.dtype
    return a.contiguous().view(bits) != b.contiguous().view(bits)


def alike(some: list, others: list) -> bool:
    """Whether two observations of one case are the same."""
    same = zip(some, others, strict=False)
    return len(some) == len(others) and all(a[0] == b[0] and is_same(a[1], b[1]) for a, b in same)


def difference(wanted: list, found: list) -> dict | None:
    """The first thing that differs, in words."""
    import torch

    if alike(wanted, found):
        return None
    what, expected, got = "", "nothing more", "nothing more"
    for (what, expected), (_, got) in zip(wanted, found, strict=False):  # noqa: B007
        if not is_same(expected, got):
            break
    if isinstance(got, Raised):
        return {"message": got.message}
    if not (isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor)):
        shown = [
            f"a tensor {list(v.shape)}" if isinstance(v, torch.Tensor) else str(v) for v in (expected, got)
        ]
        return {"message": f"{what} differs", "expected": shown[0], "got": shown[1]}
    if got.shape != expected.shape or got.dtype != expected.dtype:
        shown = [f"{list(t.shape)} {t.dtype}".replace("torch.", "") for t in (expected, got)]
        return {"message": f"{what} is of another shape or type", "expected": shown[0], "got": shown[1]}
    wrong = _wrong(got, expected)
    index = [int(i) for i in wrong.nonzero()[0]]
    values = [f"{t[tuple(index)].item():.6g}" for t in (expected, got)]
    message = f"{what}: {int(wrong.sum())} of {wrong.numel()} elements differ"
    return {"message": message, "index": index, "expected": values[0], "got": values[1]}


def check(lesson: str, path: str, part: Part, solution: ModuleType, other: ModuleType, out: Path) -> dict:
    """The report of the first case that differs, or of the check past 2**31 elements, or of success."""
    wanted = [observe(case) for case in part.cases]
    write(out, check="cases")
    found = _all(part, solution, other)
    for case, expected, seen in zip(part.cases, wanted, found, strict=True):
        if failure := difference(expected, seen):
            names = [
                mutant.id
                for mutant in map(mutants.load, mutants.all_ids(lesson))
                if mutant.file == path and _is(mutant, part, solution, wanted, found)
            ]
            where = inspect.getdoc(case).removesuffix(".")
            return {"ok": False, "check": "cases", "case": where, "mistakes": names} | failure
    if part.far:
        run_far, known = part.far
        report = {"check": "big_cache", "case": inspect.getdoc(run_far).removesuffix(".")}
        write(out, known=[known], **report)
        try:
            with in_place_of(solution, other):
                run_far()
        except Exception as error:
            named = [known] if isinstance(error, AssertionError) else []
            return report | {"ok": False, "mistakes": named, "message": raised(error)}
    return {"ok": True}


def _all(part: Part, solution: ModuleType, other: ModuleType) -> list[list]:
    with in_place_of(solution, other):
        return [observe(case) for case in part.cases]


def _is(mutant, part: Part, solution: ModuleType, wanted: list, found: list) -> bool:
    """Whether a mutant gives what was found, and not what is right."""
    file = Path(f"known_{mutant.id.rpartition('/')[2]}.py").resolve()
    file.write_text(mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8")), encoding="utf-8")
    gives = _all(part, solution, load_file(file, file.stem))
    return all(map(alike, gives, found)) and not all(map(alike, gives, wanted))


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever the checks find, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=mutants.PARTS)
    parser.add_argument("--part", required=True, help="the file of kernels/ that the other stands in for")
    parser.add_argument("--file", type=Path, required=True, help="the reader's file, or a mutant")
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--tests", action="store_true", help="run the lesson's test file")
    parser.add_argument("--gpu", action="store_true", help="wants a GPU")
    args = parser.parse_args(arguments)
    from tests.helpers.mode import ON_GPU

    if args.gpu and not ON_GPU:
        message = "torch finds no CUDA GPU here; without --gpu the check runs in the interpreter"
        write(args.out, ok=False, check="gpu", mistakes=[], message=message)
        return 0
    cases = importlib.import_module(f"scripts.drill_cases_{args.lesson.partition('_')[0]}")
    part = cases.PARTS[args.part]
    solution = importlib.import_module(args.part.removesuffix(".py").replace("/", "."))
    failure = {"ok": False, "check": "import", "mistakes": []}
    try:
        other = load_file(args.file)
    except (Exception, SystemExit) as error:
        message = f"{args.file.name} cannot be imported: {raised(error).removeprefix('raised ')}"
        write(args.out, **failure, message=message)
        return 0
    if lacks := [name for name in part.names if not callable(vars(other).get(name))]:
        write(args.out, **failure, message=f"{args.file.name} has no {', '.join(lacks)}")
    elif args.tests:
        write(args.out, check="tests", mistakes=[])
        with in_place_of(solution, other):
            choice = ["-k", f"not ({part.without})"] if part.without else []
            report = run(str(ROOT / part.tests), choice)
        write(args.out, **({"ok": True} if report["ok"] else report | {"check": "tests", "mistakes": []}))
    else:
        write(args.out, **check(args.lesson, args.part, part, solution, other, args.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
