"""The checks of a drill that is one file of a lesson, and what its mistakes are.

The functions and classes of a reader's file stand in for those of the lesson's, wherever kernels and helpers
have them. Small cases (scripts/drill_cases_*.py) run with the solution and with the file, and the first
difference is told. A known mistake is named if its mutant gives the same as the file in every case. A library
for scripts/drill_parts.py, which runs it in a child process, and for the page.
"""

import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from scripts import mutant_files
from scripts.drill_child import load_file
from scripts.mutant_files import ROOT
from scripts.mutant_findings import raised
from scripts.trace_record import TraceError


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


def read(file: Path, part: Part) -> tuple[ModuleType | None, dict | None]:
    """A reader's file as a module, or the report of what keeps it from being one."""
    failure = {"ok": False, "check": "import", "mistakes": []}
    try:
        other = load_file(file)
    except (Exception, SystemExit) as error:
        message = f"{file.name} cannot be imported: {raised(error).removeprefix('raised ')}"
        return None, failure | {"message": message}
    if lacks := [name for name in part.names if not callable(vars(other).get(name))]:
        return None, failure | {"message": f"{file.name} has no {', '.join(lacks)}"}
    return other, None


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


def check(
    lesson: str, path: str, part: Part, solution: ModuleType, other: ModuleType, say: Callable[..., None],
    far: Callable[[Callable[[], None]], None] = lambda run: run(),
) -> dict:  # fmt: skip
    """The report of the first case that differs, or of the check past 2**31 elements, or of success.

    say: called with the report that it would be if the process died now. far: what runs the check past 2**31.
    """
    wanted = [observe(case) for case in part.cases]
    found = _all(part, solution, other, say)
    for case, expected, seen in zip(part.cases, wanted, found, strict=True):
        if failure := difference(expected, seen):
            names = [
                mutant.id
                for mutant in map(mutant_files.load, mutant_files.all_ids(lesson))
                if mutant.file == path and _is(mutant, part, solution, wanted, found)
            ]
            return {"ok": False, "check": "cases", "case": title(case), "mistakes": names} | failure
    if part.far:
        run_far, known = part.far
        report = {"check": "big_cache", "case": title(run_far)}
        say(known=[known], **report)
        try:
            with in_place_of(solution, other):
                far(run_far)
        except Exception as error:
            named = [known] if isinstance(error, AssertionError) else []
            message = str(error) if isinstance(error, TraceError) else raised(error)
            return report | {"ok": False, "mistakes": named, "message": message}
    return {"ok": True}


def title(case: Callable) -> str:
    """What a case is, as a report names it."""
    return inspect.getdoc(case).removesuffix(".")


def _all(part: Part, solution: ModuleType, other: ModuleType, say: Callable[..., None]) -> list[list]:
    seen = []
    with in_place_of(solution, other):
        for case in part.cases:
            say(check="cases", case=title(case))
            seen.append(observe(case))
    return seen


def _is(mutant, part: Part, solution: ModuleType, wanted: list, found: list) -> bool:
    """Whether a mutant gives what was found, and not what is right."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"known_{mutant.id.rpartition('/')[2]}.py"
        file.write_text(mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8")), encoding="utf-8")
        gives = _all(part, solution, load_file(file, file.stem), lambda **step: None)
    return all(map(alike, gives, found)) and not all(map(alike, gives, wanted))
