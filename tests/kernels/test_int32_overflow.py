"""Page id times stride needs int64: both sides of page 131072 at a stride of 16384 elements."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.helpers import big_cache
from tests.helpers.decoders import DECODERS
from tests.helpers.mode import gpu_only, interpreter_only

decoders = pytest.mark.parametrize("name", DECODERS)


def test_the_bound_is_where_the_lesson_says():
    assert big_cache.PAGE_STRIDE == 16384
    assert big_cache.FIRST_PAGE_OUT_OF_INT32 == 131072
    assert 131071 * 16384 + 16383 == 2**31 - 1  # the last element that int32 reaches
    assert 131072 * big_cache.PAGE_STRIDE * 2 == 4 * 2**30  # fp16 bytes of K before it: 4 GiB


@interpreter_only
@decoders
def test_pages_on_both_sides_of_the_bound(name):
    """In a process of its own, since a wrong address may kill it; 4 GiB of addresses, few of them touched."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.helpers.big_cache", name],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, f"exit status {run.returncode}\n{run.stderr[-3000:]}"


@gpu_only
@decoders
def test_pages_on_both_sides_of_the_bound_on_a_gpu(name):
    free, _ = torch.cuda.mem_get_info()
    if free < 1.5 * big_cache.CACHE_BYTES:
        pytest.skip(
            f"needs {1.5 * big_cache.CACHE_BYTES / 1e9:.1f} GB of free GPU memory, has {free / 1e9:.1f}"
        )
    big_cache.check(name)
    torch.cuda.empty_cache()
