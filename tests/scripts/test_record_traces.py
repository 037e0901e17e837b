"""The committed traces are what the kernels do today."""

import subprocess
import sys

from scripts.generated import ROOT


def test_committed_traces_are_what_the_kernels_do():
    """In a process of its own: the kernels run in the interpreter there, also where there is a GPU."""
    command = [sys.executable, "scripts/record_traces.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
