"""Sequence times stride needs int64, too, wherever a stride is the caller's: q, the states of merge_states.

Traced: an access that misses its tensor is seen and not carried out, so that it kills no process."""

import mmap
from dataclasses import replace

import pytest
import torch

from kernels import merge_states
from scripts.tracer import trace
from tests.helpers.cases import PLAIN, make_case
from tests.helpers.decoders import DECODERS
from tests.helpers.marks import interpreter_only
from tests.helpers.traced import run_traced

STRIDE = 2**30  # elements: the third row begins at 2**31, which int32 does not reach

pytestmark = interpreter_only


@pytest.fixture(scope="module")
def memory():
    """fp16, 4 GiB and a bit of addresses; what is never touched takes no memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return torch.frombuffer(mmap.mmap(-1, (2 * STRIDE + 2**16) * 2, flags=flags), dtype=torch.float16)


def _far_apart(memory, tensor, axis=0):
    """A copy whose elements along one axis of length 3 are STRIDE apart, the others as they were."""
    strides = list(tensor.stride())
    strides[axis] = STRIDE
    return memory.as_strided(tensor.shape, strides).copy_(tensor)


@pytest.mark.parametrize("name", DECODERS)
def test_sequences_of_q(name, memory):
    case = make_case([5, 1, 17], PLAIN, torch.float16, num_kv_heads=1)
    far = replace(case, q=_far_apart(memory, case.q))
    run_traced(DECODERS[name], far).assert_in_bounds()
    assert torch.equal(DECODERS[name](*far.args), DECODERS[name](*case.args))


@pytest.mark.parametrize("axis", [0, 1], ids=["splits", "sequences"])
def test_states(axis, memory):
    rng = torch.Generator().manual_seed(0)
    o, lse = torch.randn(3, 3, 2, 8, generator=rng).half(), torch.randn(3, 3, 2, generator=rng)
    far = _far_apart(memory, o, axis)
    with trace() as t:
        merge_states(far, lse)
    t.assert_in_bounds()
    assert torch.equal(merge_states(far, lse)[0], merge_states(o, lse)[0])
