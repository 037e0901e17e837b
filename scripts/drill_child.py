"""What the child processes of a check share: a module from a reader's file, and the report.

A library for the modules that scripts/drill_run.py runs.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

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


def write(out: Path, **report) -> None:
    """Write what is known now."""
    part = out.with_suffix(".part")
    part.write_text(json.dumps(report), encoding="utf-8")
    part.replace(out)
