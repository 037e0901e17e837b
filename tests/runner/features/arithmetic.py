"""Arithmetic, comparisons, bits, choices, casts."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


@triton.jit
def float_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, x + y)
    tl.store(o_ptr + N + i, x - y)
    tl.store(o_ptr + 2 * N + i, x * y)
    tl.store(o_ptr + 3 * N + i, x / y)
    tl.store(o_ptr + 4 * N + i, -x)
    tl.store(o_ptr + 5 * N + i, x % y)
    tl.store(o_ptr + 6 * N + i, 1.0 - 2 * x / 3)


def floats(dtype):
    x, y, o = ramp(32, dtype=dtype), ramp(32, dtype=dtype, step=11) + 4, torch.zeros(7 * 32, dtype=dtype)
    float_kernel[(1,)](x, y, o, N=32)
    return o


def feature_float32_arithmetic():
    return floats(torch.float32)


def feature_float16_arithmetic():
    return floats(torch.float16)


def feature_float64_arithmetic():
    return floats(torch.float64)


@triton.jit
def int_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, x + y)
    tl.store(o_ptr + N + i, x - y)
    tl.store(o_ptr + 2 * N + i, x * y)
    tl.store(o_ptr + 3 * N + i, x // y)
    tl.store(o_ptr + 4 * N + i, x % y)
    tl.store(o_ptr + 5 * N + i, -x)


def ints(dtype):
    x, y = ramp(32, dtype=dtype), ramp(32, dtype=dtype, step=11)
    y = torch.where(y == 0, torch.ones_like(y), y)
    o = torch.zeros(6 * 32, dtype=dtype)
    int_kernel[(1,)](x, y, o, N=32)
    return o


def feature_int32_arithmetic():
    return ints(torch.int32)


def feature_int64_arithmetic():
    return ints(torch.int64)


def feature_int8_arithmetic():
    return ints(torch.int8)


@triton.jit
def bits_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, x & y)
    tl.store(o_ptr + N + i, x | y)
    tl.store(o_ptr + 2 * N + i, x ^ y)
    tl.store(o_ptr + 3 * N + i, ~x)
    tl.store(o_ptr + 4 * N + i, x << 3)
    tl.store(o_ptr + 5 * N + i, x >> 2)
    tl.store(o_ptr + 6 * N + i, tl.umulhi(x.to(tl.uint32), y.to(tl.uint32)).to(tl.int32))


def feature_bits_and_shifts():
    o = torch.zeros(7 * 32, dtype=torch.int32)
    bits_kernel[(1,)](ramp(32, dtype=torch.int32), ramp(32, dtype=torch.int32, step=11), o, N=32)
    return o


@triton.jit
def compare_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, x < y)
    tl.store(o_ptr + N + i, x <= y)
    tl.store(o_ptr + 2 * N + i, x > y)
    tl.store(o_ptr + 3 * N + i, x >= y)
    tl.store(o_ptr + 4 * N + i, x == y)
    tl.store(o_ptr + 5 * N + i, x != y)
    tl.store(o_ptr + 6 * N + i, ((x < 1) & (y > 0)) | ~(x == 2))


def feature_comparisons():
    x, y = ramp(32), ramp(32, step=11)
    x[3] = y[3] = float("nan")
    x[4] = y[4]
    o = torch.zeros(7 * 32, dtype=torch.bool)
    compare_kernel[(1,)](x, y, o, N=32)
    return o


@triton.jit
def choose_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, tl.where(x > y, x, 0.0))
    tl.store(o_ptr + N + i, tl.minimum(x, y))
    tl.store(o_ptr + 2 * N + i, tl.maximum(x, 0.5))
    tl.store(o_ptr + 3 * N + i, tl.clamp(x, -1.0, 1.5))
    tl.store(o_ptr + 4 * N + i, tl.where(i % 2 == 0, x, y))


def feature_where_minimum_maximum_clamp():
    o = torch.zeros(5 * 32)
    choose_kernel[(1,)](ramp(32), ramp(32, step=11), o, N=32)
    return o


@triton.jit
def nan_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o_ptr + N + i, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))


def feature_nan_in_maximum():
    x, y, o = ramp(16), ramp(16, step=11), torch.zeros(32)
    x[2], y[5] = float("nan"), float("nan")
    nan_kernel[(1,)](x, y, o, N=16)
    return o


@triton.jit
def cast_kernel(x_ptr, half_ptr, double_ptr, int_ptr, byte_ptr, wide_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(half_ptr + i, x.to(tl.float16))
    tl.store(double_ptr + i, tl.cast(x, tl.float64) / 3)
    tl.store(int_ptr + i, (x * 7).to(tl.int32))
    tl.store(byte_ptr + i, (x * 7).to(tl.int32).to(tl.int8))
    tl.store(wide_ptr + i, x.to(tl.int32).to(tl.int64) * 5_000_000_000)


def feature_casts():
    kinds = torch.float16, torch.float64, torch.int32, torch.int8, torch.int64
    outs = [torch.zeros(32, dtype=kind) for kind in kinds]
    cast_kernel[(1,)](ramp(32), *outs, N=32)
    return outs


@triton.jit
def bits_of_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    bits = tl.load(x_ptr + i).to(tl.int32, bitcast=True)
    tl.store(o_ptr + i, (bits + (1 << 23)).to(tl.float32, bitcast=True))


def feature_bitcast():
    o = torch.zeros(32)
    bits_of_kernel[(1,)](ramp(32), o, N=32)
    return o


@triton.jit
def mixed_kernel(x_ptr, h_ptr, k_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i) * tl.load(h_ptr + i) + tl.load(k_ptr + i) / 4)


def feature_mixed_types():
    o = torch.zeros(32)
    mixed_kernel[(1,)](ramp(32), ramp(32, dtype=torch.float16), ramp(32, dtype=torch.int32), o, N=32)
    return o


@triton.jit
def division_kernel(o_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.cdiv(n + i, 5) * 1000 + (n + i) // 5 * 10 + (n + i) % 5)
    tl.store(o_ptr + N + i, tl.div_rn(1.0 + i, 3.0).to(tl.int32) + tl.fdiv(8.0 + i, 2.0).to(tl.int32))


def feature_cdiv_and_division():
    o = torch.zeros(32, dtype=torch.int32)
    division_kernel[(1,)](o, 3, N=16)
    return o


@triton.jit
def wrap_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i) * 65536 * 3 + 2147483647 * i)


def feature_int32_wraps():
    o = torch.zeros(16, dtype=torch.int32)
    wrap_kernel[(1,)](ramp(16, dtype=torch.int32) * 4096, o, N=16)
    return o
