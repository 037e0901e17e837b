"""scripts/compiled_view.py: the records are what the compiler makes, and what cannot be compared."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess:
    """The script in a process of its own, since the suite itself may run in the interpreter."""
    command = [sys.executable, "scripts/compiled_view.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_records_are_what_the_compiler_makes() -> None:
    check = run("--check")
    assert check.returncode == 0, check.stderr


def test_one_kernel_is_what_the_compiler_makes() -> None:
    check = run("--check", "--only", "l3_combine")
    assert check.returncode == 0, check.stderr


def test_another_triton_is_not_compared() -> None:
    code = (
        "from scripts import compiled_view as view; import sys; view.triton.__version__ = '0.0.0';"
        "sys.argv = ['compiled_view.py', '--check']; sys.exit(view.main())"
    )
    check = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert check.returncode == 0
    assert "not compared: compiled by Triton 3." in check.stdout and "this is 0.0.0" in check.stdout
