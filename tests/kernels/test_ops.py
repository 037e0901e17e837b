"""The custom ops: registered right, whole under torch.compile, capturable in a CUDA graph."""

import pytest
import torch

from kernels import fast_decode, make_plan, paged_decode, split_kv_decode
from kernels.ops import fast_decode_op, paged_decode_op, split_kv_decode_op
from tests.helpers.cases import PLAIN, Shape, make_case
from tests.helpers.marks import gpu_only
from tests.helpers.mode import DEVICE, ON_GPU

OPS = {
    "packed": (paged_decode_op, paged_decode),
    "split": (split_kv_decode_op, split_kv_decode),
    "fast": (fast_decode_op, fast_decode),
}


@pytest.fixture(params=OPS)
def op_and_launcher(request):
    return OPS[request.param]


def test_opcheck(op_and_launcher):
    op, _ = op_and_launcher
    # Ordered pages, so that what opcheck makes up for symbolic shapes is a cache of the same kind.
    case = make_case([20, 3], PLAIN, torch.float32, beyond=0, unused=0.0)
    torch.library.opcheck(op, case.args)
    torch.library.opcheck(op, (*case.args, 0.5, "NHD"))


def test_an_op_gives_what_its_launcher_gives(op_and_launcher):
    op, launcher = op_and_launcher
    case = make_case([20, 0, 33], PLAIN, torch.float16, kv_layout="HND")
    o, lse = op(*case.args, None, "HND")
    wanted_o, wanted_lse = launcher(*case.args, kv_layout="HND", return_lse=True)
    assert torch.equal(o, wanted_o) and torch.equal(lse, wanted_lse)


def test_a_refusal_is_the_launchers(op_and_launcher):
    op, _ = op_and_launcher
    case = make_case([20], PLAIN, torch.float32)
    with pytest.raises(ValueError, match="kv_layout is 'DNH'"):
        op(*case.args, None, "DNH")


def test_fullgraph_compile(op_and_launcher):
    """One graph, no break, and the same bits; a second length does not compile again."""
    op, _ = op_and_launcher

    def step(q, *rest):
        o, _ = op(q * 2, *rest)
        return o + 1

    backend = "inductor" if ON_GPU else "aot_eager"  # inductor on a CPU would want a C++ compiler
    compiled = torch.compile(step, fullgraph=True, backend=backend)
    for lens in ([20, 3], [32, 17]):
        case = make_case(lens, PLAIN, torch.float32)
        assert torch.equal(compiled(*case.args), step(*case.args))


@gpu_only
@pytest.mark.parametrize("call", [call for pair in OPS.values() for call in pair])
def test_a_captured_step_follows_its_buffers(call):
    """Replays see new lengths, tables and queries that were written into the same tensors."""
    shape = Shape(4, 128, 16)
    first = make_case([100, 33], shape, torch.float16, seed=1)
    second = make_case([33, 97], shape, torch.float16, seed=2)  # the same buffers hold it
    buffers = [torch.empty_like(t) for t in first.args]

    def fill(case):
        for buffer, tensor in zip(buffers, case.args, strict=True):
            buffer.copy_(tensor)

    def run():
        result = call(*buffers)
        return result[0] if isinstance(result, tuple) else result

    fill(first)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()  # compile outside the capture
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = run()
    for case in (first, second, first):
        fill(case)
        o.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize(DEVICE)
        wanted = call(*case.args)
        assert torch.equal(o, wanted[0] if isinstance(wanted, tuple) else wanted)


def test_the_fast_op_takes_a_plan_and_scales():
    case = make_case([300, 0, 33], PLAIN, torch.float16, unused=0.0)
    k, v = (c.to(torch.float8_e4m3fn) for c in (case.k_cache, case.v_cache))
    args = (case.q, k, v, case.block_table, case.seq_lens)
    scale = torch.full((1,), 0.5, device=DEVICE)
    plan = make_plan(case.seq_lens, 2)
    o, lse = fast_decode_op(*args, None, "NHD", scale, scale, *plan)
    wanted_o, wanted_lse = fast_decode(*args, k_scale=0.5, v_scale=0.5, plan=plan, return_lse=True)
    assert torch.allclose(o, wanted_o, rtol=2e-3, atol=1e-3) and torch.allclose(lse, wanted_lse, rtol=1e-5)
