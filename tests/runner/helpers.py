"""Python as the page has it, in a child process under CPython: no torch, no compiled part of Triton.

    report = in_page('''
        import torch
        result = torch.zeros(2).tolist()
    ''')

The child's sys.path is the stand-ins, the repository and a folder with numpy and Triton's .py files alone.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What the page leaves out of Triton: compiled parts, and the backends, which look for a driver.
LEFT_OUT = ("_C", "__pycache__", "amd", "nvidia", "profiler", "include", "lib", "*.so", "*.h", "*.pyi")
_START = """
import sys
from scripts.runner import boot
boot.boot()
"""
_END = """
import json as _json
_json.dump(result, open(sys.argv[1], "w"))
"""
_staged: list[tempfile.TemporaryDirectory] = []  # removed when this process ends


@cache
def staged() -> Path:
    """A folder with numpy and Triton's .py files, in place of site-packages."""
    _staged.append(tempfile.TemporaryDirectory(prefix="runner-"))
    folder = Path(_staged[-1].name)
    source = Path(importlib.util.find_spec("triton").origin).parent
    shutil.copytree(source, folder / "triton", ignore=shutil.ignore_patterns(*LEFT_OUT))
    for package in source.parent.glob("numpy*"):  # numpy, numpy.libs
        (folder / package.name).symlink_to(package)
    return folder


def page_environment() -> dict[str, str]:
    """The environment of a child that has the page's modules."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TRITON"))}
    return kept | {"PYTHONPATH": f"{ROOT}{os.pathsep}{staged()}", "PYTHONHASHSEED": "0"}


def in_page(program: str, *, boot: bool = True, arguments: tuple[str, ...] = (), timeout: float = 120):
    """The `result` (JSON) that a program leaves. Fails with the child's own words if it ends badly."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "result.json"
        text = (_START if boot else "import sys\n") + textwrap.dedent(program) + _END
        run = subprocess.run(
            [sys.executable, "-S", "-c", text, str(out), *arguments],
            cwd=ROOT, env=page_environment(), capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        assert run.returncode == 0, f"the child ended with {run.returncode}:\n{run.stderr}\n{run.stdout}"
        return json.loads(out.read_text(encoding="utf-8"))
