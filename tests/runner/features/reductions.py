"""Reductions, scans, sorting, counting, dots."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def larger_first(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def rows_kernel(x_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr, WHICH: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    if WHICH == "sum":
        y = tl.sum(x, AXIS)
    elif WHICH == "max":
        y = tl.max(x, axis=AXIS)
    elif WHICH == "min":
        y = x.min(AXIS)
    elif WHICH == "argmax":
        y = tl.argmax(x, AXIS)
    elif WHICH == "argmin":
        y = tl.argmin(x, AXIS)
    elif WHICH == "reduce":
        y = tl.reduce(x, AXIS, add)
    elif WHICH == "sum_keep_dims":
        y = tl.reshape(tl.sum(x, AXIS, keep_dims=True), (M if AXIS == 1 else N,))
    elif WHICH == "xor_sum":
        y = tl.xor_sum(x.to(tl.int32), AXIS)
    else:
        tl.static_assert(False)
    tl.store(o_ptr + tl.arange(0, M if AXIS == 1 else N), y)


def rows(which, dtype=torch.float32):
    x = ramp(16, 8, dtype=dtype)
    whole = which.startswith(("arg", "xor"))
    outs = [torch.zeros(n, dtype=torch.int32 if whole else dtype) for n in (16, 8)]
    for axis, o in ((1, outs[0]), (0, outs[1])):
        rows_kernel[(1,)](x, o, M=16, N=8, WHICH=which, AXIS=axis)
    return outs


def feature_sum():
    return rows("sum")


def feature_sum_of_float16():
    return rows("sum", torch.float16)


def feature_sum_of_int32():
    return rows("sum", torch.int32)


def feature_sum_keep_dims():
    return rows("sum_keep_dims")


def feature_max():
    return rows("max")


def feature_min():
    return rows("min")


def feature_argmax():
    return rows("argmax")


def feature_argmin():
    return rows("argmin")


def feature_xor_sum():
    return rows("xor_sum")


def feature_reduce_with_own_function():
    return rows("reduce")


@triton.jit
def whole_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(o_ptr, tl.sum(x))
    tl.store(o_ptr + 1, tl.max(x, 0))
    value, index = tl.max(x, 0, return_indices=True)
    tl.store(o_ptr + 2, value)
    tl.store(o_ptr + 3, index)
    value, index = tl.reduce((x, i), 0, larger_first)
    tl.store(o_ptr + 4, value)
    tl.store(o_ptr + 5, index)


def feature_reduce_to_a_scalar():
    o = torch.zeros(6)
    whole_kernel[(1,)](ramp(64), o, N=64)
    return o


@triton.jit
def scan_kernel(x_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, tl.cumsum(x, 1))
    tl.store(o_ptr + M * N + at, tl.cumsum(x, 0, reverse=True))
    tl.store(o_ptr + 2 * M * N + at, tl.cumprod(x / 2, 1))
    tl.store(o_ptr + 3 * M * N + at, tl.associative_scan(x, 1, add))


def feature_scans():
    o = torch.zeros(4, 4, 8)
    scan_kernel[(1,)](ramp(4, 8), o, M=4, N=8)
    return o


@triton.jit
def sort_kernel(x_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, tl.sort(x))
    tl.store(o_ptr + M * N + at, tl.sort(x, descending=True))


def feature_sort():
    o = torch.zeros(2, 4, 16)
    sort_kernel[(1,)](ramp(4, 16), o, M=4, N=16)
    return o


@triton.jit
def topk_kernel(x_ptr, o_ptr, N: tl.constexpr, K: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, K), tl.topk(tl.load(x_ptr + tl.arange(0, N)), K))


def feature_topk():
    o = torch.zeros(4)
    topk_kernel[(1,)](ramp(16), o, N=16, K=4)
    return o


@triton.jit
def histogram_kernel(x_ptr, o_ptr, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, BINS), tl.histogram(tl.load(x_ptr + tl.arange(0, N)), BINS))


def feature_histogram():
    o = torch.zeros(8, dtype=torch.int32)
    histogram_kernel[(1,)](ramp(64, dtype=torch.int32) % 8, o, N=64, BINS=8)
    return o


@triton.jit
def dot_kernel(a_ptr, b_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, IN: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    acc = tl.full([M, N], 0.5, tl.float32)
    acc = tl.dot(a, b, acc, input_precision=IN)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


def dotted(dtype, precision=None):
    o = torch.zeros(16, 32)
    a, b = ramp(16, 64, dtype=dtype), ramp(64, 32, dtype=dtype, step=11)
    dot_kernel[(1,)](a, b, o, M=16, N=32, K=64, IN=precision)
    return o


def feature_dot_float16():
    return dotted(torch.float16)


def feature_dot_float32_ieee():
    return dotted(torch.float32, "ieee")


def feature_dot_float32_tf32():
    return dotted(torch.float32, "tf32")


@triton.jit
def int_dot_kernel(a_ptr, b_ptr, o_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def feature_dot_int8():
    o = torch.zeros(32, 32, dtype=torch.int32)
    a, b = ramp(32, 32, dtype=torch.int8), ramp(32, 32, dtype=torch.int8, step=11)
    int_dot_kernel[(1,)](a, b, o, N=32)
    return o


@triton.jit
def batched_dot_kernel(a_ptr, b_ptr, o_ptr, B: tl.constexpr, N: tl.constexpr):
    b = tl.arange(0, B)[:, None, None] * N * N
    at = b + tl.arange(0, N)[None, :, None] * N + tl.arange(0, N)[None, None, :]
    tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision="ieee"))


def feature_dot_of_batches():
    o = torch.zeros(2, 16, 16)
    batched_dot_kernel[(1,)](ramp(2, 16, 16), ramp(2, 16, 16, step=11), o, B=2, N=16)
    return o


@triton.jit
def matmul_kernel(a_ptr, b_ptr, o_ptr, K, BLOCK: tl.constexpr):
    i, k = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for first in range(0, K, BLOCK):
        inside = first + k < K
        a = tl.load(a_ptr + i[:, None] * K + first + k[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (first + k)[:, None] * BLOCK + i[None, :], mask=inside[:, None], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(o_ptr + i[:, None] * BLOCK + i[None, :], acc)


def feature_matmul_loop():
    o = torch.zeros(16, 16)
    matmul_kernel[(1,)](ramp(16, 40), ramp(40, 16, step=11), o, 40, BLOCK=16)
    return o
