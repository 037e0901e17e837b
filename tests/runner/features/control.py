"""Control flow, functions, constants, tuples, assertions, prints."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


SCALE = tl.constexpr(3)


@triton.jit
def loops_kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros([N], tl.float32)
    for k in range(n):
        acc += tl.load(x_ptr + k * N + i)
    for k in tl.range(0, n, 2, num_stages=2):
        acc += k
    for k in tl.static_range(3):
        acc *= 1 + k
    for k in range(n - 1, -1, -1):
        acc -= k
    k = 0
    while k < n:
        acc += 0.5
        k += 2
    tl.store(o_ptr + i, acc)


def feature_loops():
    o = torch.zeros(16)
    loops_kernel[(1,)](ramp(5, 16), o, 5, N=16)
    return o


@triton.jit
def branch_kernel(x_ptr, o_ptr, n, FLAG: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    v = tl.load(x_ptr + pid)
    if v > 0:
        y = v * 2
    elif v < -1:
        y = -v
    else:
        y = 0.0
    if FLAG and n > 2:
        y += 100
    y += 10 if pid % 2 == 0 else 20
    if not (pid > 3 or v > 1):
        y += 1000
    tl.store(o_ptr + pid, y)


def feature_branches_and_early_return():
    o = torch.zeros(8)
    branch_kernel[(8,)](ramp(8), o, 6, FLAG=True)
    return o


@triton.jit
def split_in_two(x, N: tl.constexpr):
    """Two results and a default."""
    return x - N, x * SCALE


@triton.jit
def power(x, K: tl.constexpr = 2):
    if K == 0:
        return x * 0 + 1
    else:  # noqa: RET505, the compiler goes on after a branch that returns
        return x * power(x, K - 1)


@triton.jit
def apply(x, function: tl.constexpr):
    return function(x, 3)


@triton.jit
def functions_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = split_in_two(tl.load(x_ptr + i), N)
    tl.store(o_ptr + i, a + power(b) + power(a, K=3) + apply(b, power))


def feature_functions():
    o = torch.zeros(16)
    functions_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.jit
def tuple_kernel(pointers, shape, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    pair = (tl.load(pointers[0] + i), tl.load(pointers[1] + i))
    first, second = pair
    tl.store(o_ptr + i, first * shape[0] + second * shape[1] + len(pair))


def feature_tuples():
    o = torch.zeros(16)
    tuple_kernel[(1,)]((ramp(16), ramp(16, step=11)), (3, 5), o, N=16)
    return o


@triton.jit
def constants_kernel(o_ptr, maybe_ptr, N: tl.constexpr, NAME: tl.constexpr, HALF: tl.constexpr = 0.5):
    LOCAL: tl.constexpr = N // 2
    i = tl.arange(0, LOCAL)
    y = i * HALF + SCALE
    if maybe_ptr is not None:
        y += tl.load(maybe_ptr + i)
    if NAME == "double":
        y *= 2
    tl.store(o_ptr + i, y)


def feature_constants_and_none():
    a, b = torch.zeros(8), torch.zeros(8)
    constants_kernel[(1,)](a, None, N=16, NAME="double")
    constants_kernel[(1,)](b, ramp(8), N=16, NAME="plain", HALF=0.25)
    return a, b


@triton.jit
def assert_kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    tl.static_assert(N == 16, "N is 16")
    i = tl.arange(0, N)
    tl.device_assert(i < n, "too far")
    tl.assume(n > 0)
    tl.store(o_ptr + i, tl.load(x_ptr + i))


def feature_asserts_that_hold():
    o = torch.zeros(16)
    assert_kernel[(1,)](ramp(16), o, 16, N=16)
    return o


@triton.jit
def static_assert_kernel(N: tl.constexpr):
    tl.static_assert(N == 16, "N is 16")


def feature_static_assert_that_fails():
    static_assert_kernel[(1,)](N=8)


@triton.jit
def print_kernel(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.static_print("N is", N)
    tl.device_print("x", tl.load(x_ptr + i))
    tl.device_print("bits", i, hex=True)
    print("pid", tl.program_id(0))


def feature_prints():
    print_kernel[(2,)](ramp(4), N=4)
    return torch.zeros(1)


@triton.jit
def grid_kernel(o_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(axis=2)
    at = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    tl.store(o_ptr + at, x * 100 + y * 10 + z)


def feature_grid_of_three():
    o = torch.zeros(2, 3, 4, dtype=torch.int32)
    grid_kernel[(2, 3, 4)](o)
    return o


@triton.heuristics({"EVEN": lambda args: args["n"] % args["N"] == 0})
@triton.jit
def heuristics_kernel(o_ptr, n, N: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, i * 2 if EVEN else i)


def feature_heuristics():
    a, b = torch.zeros(16), torch.zeros(16)
    heuristics_kernel[(1,)](a, 32, N=16)
    heuristics_kernel[(1,)](b, 33, N=16)
    return a, b


@triton.autotune(configs=[triton.Config({"N": 16}, num_warps=2)], key=["n"])
@triton.jit
def one_config_kernel(o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o_ptr + i, i * 2, mask=i < n)


def feature_autotune_with_one_config():
    o = torch.zeros(40)
    one_config_kernel[lambda meta: (triton.cdiv(40, meta["N"]),)](o, 40)
    return o


@triton.jit
def types_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    kind: tl.constexpr = x_ptr.dtype.element_ty
    if kind == tl.float16:
        tl.store(o_ptr + i, tl.load(x_ptr + i).to(tl.float32) + 1)
    else:
        tl.store(o_ptr + i, tl.load(x_ptr + i).to(o_ptr.dtype.element_ty) + 2)


def feature_types_as_values():
    a, b = torch.zeros(16), torch.zeros(16)
    types_kernel[(1,)](ramp(16, dtype=torch.float16), a, N=16)
    types_kernel[(1,)](ramp(16, dtype=torch.int32), b, N=16)
    return a, b
