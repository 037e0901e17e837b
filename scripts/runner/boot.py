"""Start Triton's interpreter without its compiled module: the first thing that runs in the page.

from scripts.runner import boot
boot.boot()
import torch, triton      # torch is scripts/runner/standins/torch, triton is the real one
"""

import gc
import os
import sys
from pathlib import Path

STANDINS = Path(__file__).resolve().parent / "standins"
ENVIRONMENT = {
    "TRITON_INTERPRET": "1",
    "TRITON_HOME": "/tmp",
}


def boot() -> None:
    """Put the stand-ins in the place of torch and triton._C, and hook the interpreter.

    Raises RuntimeError where torch or triton is imported already.
    """
    early = [name for name in ("torch", "triton") if name in sys.modules]
    if early:
        raise RuntimeError(f"{early[0]} is imported already; wanted boot() before it")
    os.environ |= ENVIRONMENT
    if str(STANDINS) not in sys.path[:1]:
        sys.path.insert(0, str(STANDINS))
    from scripts.runner.standins import libtriton

    libtriton.install()
    import torch
    import triton

    triton._C = sys.modules["triton._C"]
    if Path(torch.__file__).parent.parent != STANDINS:
        raise RuntimeError(f"torch is {torch.__file__}; wanted the stand-in in {STANDINS}")
    from triton.runtime import interpreter

    from scripts.runner import compiling, hooks, speed

    # With debug off, as it is, Triton computes every sum and product of integers a second time, in int64, and
    # then throws the finding away: a third of a run.
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)
    hooks.install()
    compiling.install()
    speed.install()
    gc.freeze()  # what stays for ever is not looked at again
