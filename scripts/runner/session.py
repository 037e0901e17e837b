"""Run a reader's program as __main__, on simulated memory; what comes back is plain JSON-able data.

    report = run(source, on_stdout=print)

    ok, stdout, ms
    error      null, or {kind, message, texts: {en, zh}, line, code, values, tensor, index, shape, program,
               op, unsupported}: what is not known is null
    warnings   [{line, code, message, texts, values}]: what a GPU's compiler would refuse (front_end.py)
    launches   [{kernel, grid, tensors: [{name, shape, dtype}]}]
    page_map   scripts/runner/page_map.py's, with trace=True
    steps      scripts/runner/steps.py's, of the program that `steps` names

Every run begins as if it were the first: memory, seeds, numpy's error state and the module are new.
"""

import contextlib
import linecache
import random
import sys
import time
import warnings
from types import ModuleType

import numpy as np
import torch
from triton.runtime import interpreter

from scripts.runner import compiling, front_end, hooks, launches
from scripts.runner.failures import failure
from scripts.runner.faults import Refused
from scripts.runner.memory import MEM
from scripts.runner.page_map import page_map
from scripts.runner.tables import Tables

SEED = 67280421310721  # PyTorch's own, in a fresh process
MOST_OUTPUT = 256 * 1024  # characters
POISON = ("error", "off")


class Output:
    """A text stream that keeps what is printed and hands it on."""

    encoding = "utf-8"

    def __init__(self, tell=None) -> None:
        self.parts, self.length, self.tell = [], 0, tell

    def write(self, text: str) -> int:
        kept = text[: max(0, MOST_OUTPUT - self.length)]
        if len(kept) < len(text) and self.length <= MOST_OUTPUT:
            kept += f"\n[the output is cut after {MOST_OUTPUT:,} characters]\n"
        self.length += len(text)
        if kept:
            self.parts.append(kept)
            if self.tell:
                self.tell(kept)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        return False

    def __str__(self) -> str:
        return "".join(self.parts)


def run(
    source: str, *, name: str = "kernel.py", trace: bool = True, steps: dict | None = None,
    poison: str = "error", on_stdout=None,
) -> dict:  # fmt: skip
    """Run the source.

    name: the file's, in tracebacks. trace: record accesses, for the page map. steps: {"kernel", "program":
    [x, y, z]} to record step by step. poison: "error" if reading what nothing wrote is a fault, or "off".
    on_stdout: called with each piece of text as it is printed.
    """
    if poison not in POISON:
        raise ValueError(f"poison is {poison!r}; wanted one of {POISON}")
    record = begin(name, source, trace=trace, poison=poison)
    output, error = Output(on_stdout), None
    recorder, tables = _recorder(steps), Tables() if trace else None
    started = time.perf_counter()
    with _fresh_main(name) as module, _quiet(), _printing_to(output):
        try:
            code = compile(source, name, "exec", dont_inherit=True)
            with tables or contextlib.nullcontext(), recorder or contextlib.nullcontext():
                exec(code, module.__dict__)
        except BaseException as raised:  # whatever it is, the page shows it
            error = failure(raised, name)
    report = {
        "ok": error is None,
        "stdout": str(output),
        "ms": (time.perf_counter() - started) * 1000,
        "error": error,
        "warnings": _not_said_already(front_end.warnings_of(record, name, source), error),
        "launches": described(record.trace.launches),
        "page_map": page_map(record.trace, tables) if trace else None,
        "steps": recorder.data() if recorder else None,
    }
    end(name)
    return report


def _not_said_already(warnings: list[dict], error: dict | None) -> list[dict]:
    """What the compiler refuses and the interpreter has refused in the same words is said once."""
    message = (error or {}).get("message")
    return [warning for warning in warnings if warning["values"].get("said") != message or not message]


def begin(name: str, source: str, *, trace: bool = False, poison: str = "error") -> launches.Launches:
    """Forget the last run, and let Triton and tracebacks find the source under the name of its file."""
    end(name)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    MEM.files = (name,)
    MEM.check_written = poison == "error"
    random.seed(0)
    torch.manual_seed(SEED)
    np.set_printoptions(formatter=None)  # device_print(hex=True) may leave it set
    return launches.begin(recording=trace, judge=lambda kernel: _refuse_endless(kernel, name, source))


def _refuse_endless(kernel: tuple, name: str, source: str) -> None:
    """A tile is always true to the interpreter: `while tile` would never end."""
    for warning in front_end.judged(kernel, name, source):
        if warning.get("endless"):
            raise Refused("endless", line=warning["line"])


def end(name: str) -> None:
    """Let go of what the last run made: kernels that Triton caches hold its module, and that its tensors."""
    cached = interpreter.InterpretedFunction.rewritten_fn
    for function in [f for f in cached if f.__code__.co_filename == name]:
        del cached[function]
    linecache.cache.pop(name, None)
    hooks.forget()
    compiling.forget(name)
    MEM.reset()
    launches.begin()


def described(all_launches) -> list[dict]:
    """Launches as plain data."""
    return [
        {
            "kernel": launch.kernel,
            "grid": [int(n) for n in launch.grid],
            "tensors": [
                {"name": view.name, "shape": list(view.shape), "dtype": str(view.tensor.dtype).split(".")[-1]}
                for view in launch.views
            ],
        }
        for launch in all_launches
    ]


@contextlib.contextmanager
def _fresh_main(name: str):
    """A new module in the place of __main__."""
    module, before = ModuleType("__main__"), sys.modules.get("__main__")
    module.__file__ = name
    sys.modules["__main__"] = module
    try:
        yield module
    finally:
        sys.modules["__main__"] = before


@contextlib.contextmanager
def _quiet():
    """A GPU warns of no overflow and no division by zero; neither do numpy nor its users here."""
    trace = sys.gettrace()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        finally:
            sys.settrace(trace)


def _show_warning(message, category, *_where) -> None:
    print(f"{category.__name__}: {message}", file=sys.stderr)


@contextlib.contextmanager
def _printing_to(output: Output):
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield


def _recorder(steps: dict | None):
    if steps is None:
        return None
    from scripts.runner.steps import Recorder

    return Recorder(steps["kernel"], tuple(steps["program"]), steps.get("launch"))
