"""Run what parity is measured on, and give the tensors that come out: bit for bit, and as JSON.

    run(text, "arithmetic.py")           every feature of a file of tests/runner/features
    run_program(text, "l2.py")           the tensors that a program of a page leaves
    run_cases("l2_paged_decode")         what the drill's small cases give, by the lesson's own functions

    {name: {"tensors": [{"name", "dtype", "shape", "hex"}], "stdout"}}, or {name: {"error", and "texts"}}

The same functions run in the page and under real PyTorch and Triton: scripts/runner_parity.py compares.
"""

import contextlib
import importlib
import io
import linecache
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from scripts.runner.faults import Fault
from scripts.runner.words import LANGUAGES, text

_MOST = 1 << 16  # elements of a tensor that is kept
PARTS = ("l0_shapes", "l1_paged_cache")  # lessons whose drills are in parts
CASES = {  # the function that a lesson's problems are for
    "online_softmax": "online_softmax",
    "l2_paged_decode": "paged_decode",
    "l3_split_kv_decode": "split_kv_decode",
}


def run_jobs(jobs: list[dict]) -> list[dict]:
    """The jobs of scripts/runner_parity.py in the page: on memory that is checked, and new for each."""
    from scripts.runner import session

    found = []
    for job in jobs:
        session.begin(job["file"], job["source"])
        try:
            found.append(run_job(job))
        finally:
            session.end(job["file"])
    return found


def run_job(job: dict) -> dict[str, dict]:
    """One of the three, by the job's "group"."""
    if job["group"] == "case":
        return run_cases(job["file"])
    return (run if job["group"] == "feature" else run_program)(job["source"], job["file"])


def run(source: str, name: str) -> dict[str, dict]:
    """Every `feature_<name>` of the source, in the order of its lines."""
    module = _module(source, name, name.removesuffix(".py"))
    features = {n: f for n, f in vars(module).items() if n.startswith("feature_")}
    return {n.removeprefix("feature_"): _result(f) for n, f in features.items()}


def run_program(source: str, name: str) -> dict[str, dict]:
    """The program as __main__: every tensor that it leaves under a name of its own."""

    def tensors():
        left = vars(_module(source, name, "__main__"))
        return {n: t for n, t in left.items() if hasattr(t, "data_ptr") and t.numel() <= _MOST}

    return {name.removesuffix(".py"): _result(tensors)}


def run_cases(lesson: str) -> dict[str, dict]:
    """The lesson's own functions on each case of its drill."""
    if lesson not in CASES:
        from scripts.drill_cases import parts_of

        cases = {
            f"{Path(p).stem}.{c.__name__}": c for p, part in parts_of(lesson).items() for c in part.cases
        }
        return {name: _result(lambda c=case: _observed(c)) for name, case in cases.items()}
    from scripts.mutant_problems import problems_of

    function = getattr(importlib.import_module(f"kernels.{lesson}"), CASES[lesson])
    problems = problems_of(lesson)
    return {
        f"{lesson}[{i}]": _result(lambda p=problem: p.run(function)) for i, problem in enumerate(problems)
    }


def _observed(case: Callable) -> dict:
    from scripts.part_checks import observe

    return {f"{number} {what}": value for number, (what, value) in enumerate(observe(case))}


def _module(source: str, name: str, module_name: str) -> ModuleType:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = ModuleType(module_name)
    module.__file__ = name
    exec(compile(source, name, "exec", dont_inherit=True), vars(module))
    return module


def _result(made_by: Callable) -> dict:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            made = made_by()
    except Exception as raised:  # to be compared, whatever it is
        error = raised
        while error.__cause__ is not None:
            error = error.__cause__
        told = {"error": f"{type(error).__name__}: {error}"}
        if isinstance(error, Fault):
            told["texts"] = {lang: text("fault", error.code, error.values, lang) for lang in LANGUAGES}
        return told
    if not isinstance(made, dict):
        tensors = made if isinstance(made, tuple | list) else [made]
        made = {str(number): tensor for number, tensor in enumerate(tensors)}
    return {"tensors": [_encoded(n, t) for n, t in made.items()], "stdout": printed.getvalue()}


def _encoded(name: str, tensor) -> dict:
    """A tensor by its bytes, in row-major order; anything else by its words."""
    if not hasattr(tensor, "data_ptr"):
        return {"name": name, "plain": repr(tensor)}
    written = getattr(getattr(tensor.untyped_storage(), "buffer", None), "written", None)
    if written is not None and not written.all():
        return {"name": name, "unwritten": True}
    array = tensor.detach().numpy()
    return {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "hex": array.tobytes().hex()}
