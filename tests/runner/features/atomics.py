"""Atomics and random numbers."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


@triton.jit
def atomic_kernel(x_ptr, o_ptr, N: tl.constexpr, WHICH: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x, at = tl.load(x_ptr + i), o_ptr + i % 5  # several lanes an element
    if WHICH == "add":
        tl.atomic_add(at, x)
    elif WHICH == "max":
        tl.atomic_max(at, x)
    elif WHICH == "min":
        tl.atomic_min(at, x)
    elif WHICH == "and":
        tl.atomic_and(at, x)
    elif WHICH == "or":
        tl.atomic_or(at, x)
    elif WHICH == "xor":
        tl.atomic_xor(at, x)
    else:
        tl.static_assert(False)


def atomic(which, dtype):
    o = torch.zeros(5, dtype=dtype)
    if which == "and":
        o += 63
    atomic_kernel[(2,)](ramp(32, dtype=dtype), o, N=16, WHICH=which)
    return o


def feature_atomic_add_float32():
    return atomic("add", torch.float32)


def feature_atomic_add_float16():
    return atomic("add", torch.float16)


def feature_atomic_add_float64():
    return atomic("add", torch.float64)


def feature_atomic_add_int32():
    return atomic("add", torch.int32)


def feature_atomic_add_int64():
    return atomic("add", torch.int64)


def feature_atomic_max_float32():
    return atomic("max", torch.float32)


def feature_atomic_min_float32():
    return atomic("min", torch.float32)


def feature_atomic_max_int32():
    return atomic("max", torch.int32)


def feature_atomic_min_int32():
    return atomic("min", torch.int32)


def feature_atomic_and():
    return atomic("and", torch.int32)


def feature_atomic_or():
    return atomic("or", torch.int32)


def feature_atomic_xor():
    return atomic("xor", torch.int32)


@triton.jit
def counter_kernel(counter_ptr, o_ptr, BLOCK: tl.constexpr):
    place = tl.atomic_add(counter_ptr, 1)
    tl.store(o_ptr + place, tl.program_id(0))
    i = tl.arange(0, BLOCK)
    old = tl.atomic_xchg(o_ptr + 8 + i, i + 10, mask=i < 3)
    tl.store(o_ptr + 16 + i, old, mask=i < 3)


def feature_atomic_results():
    counter, o = torch.zeros(1, dtype=torch.int32), torch.zeros(24, dtype=torch.int32)
    counter_kernel[(5,)](counter, o, BLOCK=8)
    return counter, o


@triton.jit
def lock_kernel(lock_ptr, sum_ptr, o_ptr):
    pid = tl.program_id(0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr, tl.load(sum_ptr) + pid)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)
    tl.store(o_ptr + pid, tl.atomic_cas(o_ptr + 8 + pid % 2, 0, pid + 1, sem="relaxed", scope="cta"))


def feature_atomic_cas():
    lock, total, o = (torch.zeros(n, dtype=torch.int32) for n in (1, 1, 16))
    lock_kernel[(6,)](lock, total, o)
    return lock, total, o


@triton.jit
def random_kernel(o_ptr, i_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.rand(seed, i))
    tl.store(o_ptr + N + i, tl.randn(seed, i))
    tl.store(i_ptr + i, tl.randint(seed, i))
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(i_ptr + N + i, a ^ b ^ c ^ d)
    a, b, c, d = tl.philox(seed, i, i + 1, i + 2, i + 3)
    tl.store(i_ptr + 2 * N + i, (a ^ b ^ c ^ d).to(tl.int32))


def feature_random_numbers():
    o, i = torch.zeros(64), torch.zeros(96, dtype=torch.int32)
    random_kernel[(1,)](o, i, 1234, N=32)
    return o, i


@triton.jit
def dropout_kernel(x_ptr, o_ptr, p, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    keep = tl.rand(seed, i) > p
    tl.store(o_ptr + i, tl.where(keep, tl.load(x_ptr + i) / (1 - p), 0.0))


def feature_dropout():
    o = torch.zeros(64)
    dropout_kernel[(1,)](ramp(64), o, 0.25, 99, N=64)
    return o
