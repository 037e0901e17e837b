"""Functions of numbers."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


@triton.jit
def unary_kernel(x_ptr, o_ptr, N: tl.constexpr, WHICH: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if WHICH == "exp":
        y = tl.exp(x)
    elif WHICH == "exp2":
        y = tl.exp2(x)
    elif WHICH == "log":
        y = tl.log(tl.abs(x) + 0.5)
    elif WHICH == "log2":
        y = tl.log2(tl.abs(x) + 0.5)
    elif WHICH == "sqrt":
        y = tl.sqrt(tl.abs(x))
    elif WHICH == "sqrt_rn":
        y = tl.sqrt_rn(tl.abs(x))
    elif WHICH == "rsqrt":
        y = tl.rsqrt(tl.abs(x) + 0.25)
    elif WHICH == "sin_cos":
        y = tl.sin(x) * 2 + tl.cos(x)
    elif WHICH == "sigmoid":
        y = tl.sigmoid(x)
    elif WHICH == "softmax":
        y = tl.softmax(x)
    elif WHICH == "erf":
        y = tl.erf(x)
    elif WHICH == "abs":
        y = tl.abs(x)
    elif WHICH == "floor_ceil":
        y = tl.floor(x) * 8 + tl.ceil(x)
    elif WHICH == "fma":
        y = tl.fma(x, x + 1.0, x)
    elif WHICH == "math_module":
        y = tl.math.exp(x) + tl.math.log2(tl.math.abs(x) + 1.0)
    elif WHICH == "logs_of_zero":
        y = tl.log(tl.maximum(x, 0.0)) - float("inf")
    elif WHICH == "gelu":
        y = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    else:
        tl.static_assert(False)
    tl.store(o_ptr + i, y)


def unary(which, dtype=torch.float32):
    x = ramp(64, dtype=dtype)
    o = torch.zeros_like(x)
    unary_kernel[(1,)](x, o, N=64, WHICH=which)
    return o


def feature_exp():
    return unary("exp")


def feature_exp2():
    return unary("exp2")


def feature_log():
    return unary("log")


def feature_log2():
    return unary("log2")


def feature_sqrt():
    return unary("sqrt")


def feature_sqrt_rn():
    return unary("sqrt_rn")


def feature_rsqrt():
    return unary("rsqrt")


def feature_sin_cos():
    return unary("sin_cos")


def feature_sigmoid():
    return unary("sigmoid")


def feature_softmax():
    return unary("softmax")


def feature_erf():
    return unary("erf")


def feature_abs():
    return unary("abs")


def feature_floor_ceil():
    return unary("floor_ceil")


def feature_fma():
    return unary("fma")


def feature_math_module():
    return unary("math_module")


def feature_logs_of_zero():
    return unary("logs_of_zero")


def feature_gelu():
    return unary("gelu")


def feature_exp_of_float64():
    return unary("exp", torch.float64)


def feature_sqrt_of_float64():
    return unary("sqrt", torch.float64)


@triton.jit
def fma_kernel(x_ptr, y_ptr, z_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.fma(tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)))


def feature_fma_of_thirds():
    x, y, z, o = ramp(64) / 3, ramp(64, step=11) / 7, ramp(64, step=5) / 11, torch.zeros(64)
    fma_kernel[(1,)](x, y, z, o, N=64)
    return o
