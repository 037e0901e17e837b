"""The page's torch lies in simulated memory: addresses, aliases, what is written and what is not."""

from tests.runner.helpers import in_page


def check(program: str):
    """The `result` of a program that has torch, MEM and numpy."""
    start = "import math\nimport numpy as np\nimport torch\nfrom scripts.runner.memory import MEM\n"
    return in_page(start + program)


def test_an_address_is_buffer_and_offset():
    assert check("""
x = torch.zeros(4, 6, dtype=torch.float16)
buffer = x.untyped_storage().buffer
row = x[1:, 2:]
result = [
    x.data_ptr() == buffer.base, x.data_ptr() % 64 == 0, row.data_ptr() - x.data_ptr(),
    row.storage_offset(), MEM.region_at(row.data_ptr()).alive() is buffer, buffer.nbytes,
    x.T.data_ptr() == x.data_ptr(), torch.zeros(3).data_ptr() != torch.zeros(3).data_ptr(),
]
""") == [True, True, 16, 8, True, 48, True, True]  # fmt: skip


def test_views_share_their_buffer_and_numpy_sees_it():
    assert check("""
x = torch.zeros(2, 3)
x[0].add_(1)
x.T[2, 1] = 5
x.numpy()[1, 0] = 7
x.view(torch.int32)[0, 1] = 0
seen = x.untyped_storage().buffer.data.view(np.float32).tolist()
result = [x.tolist(), seen]
""") == [[[1.0, 0.0, 1.0], [7.0, 0.0, 5.0]], [1.0, 0.0, 1.0, 7.0, 0.0, 5.0]]  # fmt: skip


def test_a_buffer_is_freed_with_its_last_tensor():
    assert check("""
import gc, weakref
x = torch.zeros(100)
known, part = weakref.ref(x.untyped_storage().buffer), x[3:]
del x
gc.collect()
before = known() is not None
del part
gc.collect()
result = [before, known() is None]
""") == [True, True]  # fmt: skip


def test_unwritten_memory_is_poison_until_it_is_written():
    assert check("""
def flags(x):
    known = x.flags()
    return None if known is None else known.all(-1).tolist()
x, i = torch.empty(2, 3), torch.empty(2, dtype=torch.int32)
x[:, 1] = 4
x[0][torch.tensor([2])] = 5
gathered = x[torch.tensor([1, 0])]
result = {
    "poison": [x.isnan().tolist(), (i + 0).tolist(), torch.empty(1, dtype=torch.float16).item() != 0],
    "written": flags(x),
    "clone": flags(x.clone()), "half": flags(x.half()), "gathered": flags(gathered),
    "cat": flags(torch.cat([x, torch.zeros(1, 3)])), "contiguous": flags(x.T.contiguous()),
    "sum": flags(x + 1), "like": flags(torch.empty_like(x)), "new": flags(x.new_empty(1)),
    "zeros": flags(torch.zeros(2)), "full": flags(torch.full((2,), 3.0)),
}
x.copy_(torch.ones(3))
result["copied"] = flags(x)
y = torch.empty(2)
y.numpy()
result["numpy"] = flags(y)
y = torch.empty(2, 2)
y.copy_(torch.empty(2, 2))
result["unwritten copied"] = flags(y)
y.T.fill_(1)
result["filled"] = flags(y)
y = torch.empty(3)
y[torch.tensor([True, False, True])] = 1
result["mask"] = flags(y)
y = torch.empty(2); y += 1
result["in place"] = flags(y)
""") == {
        "poison": [[[True, False, False], [True, False, True]], [-1, -1], True],
        "written": [[False, True, True], [False, True, False]],
        "clone": [[False, True, True], [False, True, False]],
        "half": [[False, True, True], [False, True, False]],
        "gathered": [[False, True, False], [False, True, True]],
        "cat": [[False, True, True], [False, True, False], [True, True, True]],
        "contiguous": [[False, False], [True, True], [True, False]],
        "sum": None, "like": [[False] * 3] * 2, "new": [False], "zeros": None, "full": None,
        "copied": [[True] * 3] * 2, "numpy": [True, True], "unwritten copied": [[False] * 2] * 2,
        "filled": [[True] * 2] * 2, "mask": [True, False, True], "in place": [True, True],
    }  # fmt: skip


def test_a_kernel_is_told_of_what_the_host_left_unwritten():
    """A copy of unwritten memory is no more written than the original; a written one is."""
    assert check("""
import sys, types, linecache
import triton
from scripts.runner import launches, session
source = '''import torch, triton
import triton.language as tl

@triton.jit
def copy(o_ptr, x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i))

if __name__ == "__main__":
    x = torch.empty(2, 4)
    x[0] = torch.arange(4.0)
    half = x.clone()
    o = torch.empty(4)
    copy[(1,)](o, half[0], N=4)
    print(o.tolist())
    copy[(1,)](o, half[1], N=4)
'''
report = session.run(source)
result = [report["stdout"], report["error"]["kind"], report["error"]["tensor"], report["error"]["index"]]
""") == ["[0.0, 1.0, 2.0, 3.0]\n", "UnwrittenRead", "x_ptr", [0]]  # fmt: skip


def test_meta_tensors_have_shapes_and_no_memory():
    assert check("""
x = torch.empty(3000, 4000, device="meta")
y = torch.einsum("ij,kj->ik", x[:2], x[:3]).softmax(-1)
def said(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__
result = [
    list((x[:5] + 1).shape), y.device.type, list(y.shape), str(y.dtype), x.data_ptr(),
    said(x[0, 0].item), said(x[0].tolist), said(lambda: x.cpu()), said(lambda: x.numpy()),
]
""") == [
        [5, 4000], "meta", [2, 3], "torch.float32", 0, "RuntimeError", "RuntimeError",
        "NotImplementedError", "RuntimeError",
    ]  # fmt: skip


def test_storage_as_the_interpreter_and_lesson_l7_use_it():
    assert check("""
x = torch.arange(12.0).view(3, 4)[1:, :2]
y = x.new_empty(0, device="cpu")
y.set_(x.untyped_storage().cpu(), x.storage_offset(), x.size(), x.stride())
y[0, 0] = 99
bare = torch.zeros(5)
bare.untyped_storage().resize_(0)
def said(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__
result = [
    x.tolist(), y.data_ptr() == x.data_ptr(), y.untyped_storage().copy_(x.untyped_storage()).nbytes(),
    list(torch.empty_like(bare).shape), said(bare.tolist), said(lambda: torch.zeros(2**25)),
    said(lambda: x.as_strided((2,), (100,))),
]
""") == [
        [[99.0, 5.0], [8.0, 9.0]], True, 48, [5], "RuntimeError", "OutOfMemory", "RuntimeError",
    ]  # fmt: skip
