"""Runs of a module of these helpers in a process of its own: a wrong address may kill it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.helpers import big_cache
from tests.helpers.mode import ON_GPU


def assert_survives(module: str, argument: str) -> None:
    """`python -m tests.helpers.<module> <argument>` ends well; on a CPU few of its 4 GiB are touched."""
    run = subprocess.run(
        [sys.executable, "-m", f"tests.helpers.{module}", argument],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, f"exit status {run.returncode}\n{run.stderr[-3000:]}"


def skip_without_memory() -> None:
    """Skip where the GPU has no room for the cache."""
    if ON_GPU and (free := torch.cuda.mem_get_info()[0]) < (wanted := 1.5 * big_cache.CACHE_BYTES):
        pytest.skip(f"needs {wanted / 1e9:.1f} GB of free GPU memory, has {free / 1e9:.1f}")
