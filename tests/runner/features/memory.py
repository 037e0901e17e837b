"""Loads and stores: masks, scalars, strides, views, types of pointers, block pointers, descriptors."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def feature_load_store_masked():
    x, o = ramp(50), torch.zeros(50)
    copy_kernel[(4,)](x, o, 50, BLOCK=16)
    return o


def feature_grid_function():
    x, o = ramp(50), torch.zeros(50)
    copy_kernel[lambda meta: (triton.cdiv(50, meta["BLOCK"]),)](x, o, 50, BLOCK=32)
    return o


def copied(dtype):
    x = ramp(32, dtype=dtype)
    o = torch.zeros_like(x)
    copy_kernel[(2,)](x, o, 32, BLOCK=16)
    return o


def feature_load_store_float16():
    return copied(torch.float16)


def feature_load_store_float64():
    return copied(torch.float64)


def feature_load_store_int8():
    return copied(torch.int8)


def feature_load_store_int16():
    return copied(torch.int16)


def feature_load_store_int64():
    return copied(torch.int64)


def feature_load_store_uint8():
    x = (torch.arange(32) * 7 % 256).to(torch.uint8)
    o = torch.zeros_like(x)
    copy_kernel[(2,)](x, o, 32, BLOCK=16)
    return o


def feature_load_store_bool():
    x = ramp(32) > 0
    o = torch.zeros_like(x)
    copy_kernel[(2,)](x, o, 32, BLOCK=16)
    return o


@triton.jit
def other_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=-7.5))
    tl.store(o_ptr + BLOCK + i, tl.load(x_ptr + i, mask=i < n, other=i))


def feature_load_other():
    o = torch.zeros(32)
    other_kernel[(1,)](ramp(9), o, 9, BLOCK=16)
    return o


@triton.jit
def scalar_kernel(x_ptr, o_ptr):
    i = tl.program_id(0)
    v = tl.load(x_ptr + i)
    tl.store(o_ptr + i, v * 2, mask=v > 0)


def feature_scalar_load_store():
    o = torch.zeros(8)
    scalar_kernel[(8,)](ramp(8), o)
    return o


@triton.jit
def hints_kernel(x_ptr, o_ptr, BLOCK: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    v = tl.load(x_ptr + i, cache_modifier=".cg") + tl.load(x_ptr + i, eviction_policy="evict_first")
    tl.store(o_ptr + i, v + tl.load(x_ptr + i, volatile=True), cache_modifier=".cs")


def feature_cache_hints():
    o = torch.zeros(16)
    hints_kernel[(1,)](ramp(16), o, BLOCK=16)
    return o


@triton.jit
def strided_kernel(x_ptr, o_ptr, stride_m, stride_n, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x_ptr + m[:, None] * stride_m + n[None, :] * stride_n)
    tl.store(o_ptr + m[:, None] * N + n[None, :], tile)


def feature_strided_views():
    x = ramp(16, 32)
    turned, sliced = torch.zeros(32, 16), torch.zeros(8, 16)
    strided_kernel[(1,)](x.t(), turned, x.t().stride(0), x.t().stride(1), M=32, N=16)
    part = x[::2, 1::2]
    strided_kernel[(1,)](part, sliced, part.stride(0), part.stride(1), M=8, N=16)
    return turned, sliced


@triton.jit
def gather_rows_kernel(x_ptr, rows_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    rows = tl.load(rows_ptr + m).to(tl.int64)
    tl.store(o_ptr + m[:, None] * N + n[None, :], tl.load(x_ptr + rows[:, None] * N + n[None, :]))


def feature_gather_by_table():
    o = torch.zeros(4, 16)
    gather_rows_kernel[(1,)](ramp(9, 16), torch.tensor([7, 0, 8, 3], dtype=torch.int32), o, M=4, N=16)
    return o


@triton.jit
def reversed_kernel(x_ptr, o_ptr, BLOCK: tl.constexpr):
    end = x_ptr + BLOCK - 1
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(end - i))


def feature_pointer_arithmetic():
    o = torch.zeros(16)
    reversed_kernel[(1,)](ramp(16), o, BLOCK=16)
    return o


@triton.jit
def block_pointer_kernel(x_ptr, o_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    src = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
    dst = tl.make_block_ptr(o_ptr, (M, 2 * N), (2 * N, 1), (0, 0), (M, N), (1, 0))
    for _ in range(2):
        tl.store(dst, tl.load(src, boundary_check=(0, 1), padding_option="zero"))
        src = tl.advance(src, (0, N))
        dst = tl.advance(dst, (0, N))


def feature_block_pointers():
    o = torch.zeros(8, 32)
    block_pointer_kernel[(1,)](ramp(5, 20), o, 5, 20, M=8, N=16)
    return o


@triton.jit
def descriptor_kernel(x_ptr, o_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    src = tl.make_tensor_descriptor(x_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N])
    dst = tl.make_tensor_descriptor(o_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N])
    for k in range(2):
        dst.store([4, k * N], src.load([4, k * N]) * 2)


def feature_tensor_descriptors():
    o = torch.zeros(9, 32)
    descriptor_kernel[(1,)](ramp(9, 32), o, 9, 32, M=8, N=16)
    return o


@triton.jit
def bitcast_kernel(x_ptr, o_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    bits = tl.load(x_ptr.to(tl.pointer_type(tl.int32)) + i)
    tl.store(o_ptr + i, bits)


def feature_pointer_cast():
    o = torch.zeros(16, dtype=torch.int32)
    bitcast_kernel[(1,)](ramp(16), o, BLOCK=16)
    return o
