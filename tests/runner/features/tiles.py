"""Making tiles and changing their shape."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


@triton.jit
def make_kernel(o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.zeros([N], tl.float32) + tl.full([N], 2.5, tl.float32) + tl.arange(N, 2 * N))
    tl.store(o_ptr + N + i, tl.zeros_like(i) + tl.full((N,), float("inf"), tl.float32))


def feature_arange_zeros_full():
    o = torch.zeros(32)
    make_kernel[(1,)](o, N=16)
    return o


@triton.jit
def broadcast_kernel(x_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    column = tl.load(x_ptr + m)
    a = tl.broadcast_to(column[:, None], (M, N))
    b, c = tl.broadcast(tl.expand_dims(column, 1), tl.expand_dims(n, 0).to(tl.float32))
    at = m[:, None] * N + n[None, :]
    tl.store(o_ptr + at, a + b * c + tl.full((M, N), 3.0, tl.float32))


def feature_broadcast_expand_dims():
    o = torch.zeros(8, 16)
    broadcast_kernel[(1,)](ramp(8), o, M=8, N=16)
    return o


@triton.jit
def reshape_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N * N)
    t = tl.reshape(tl.load(x_ptr + i), (N, N // 2, 2))
    tl.store(o_ptr + i, tl.reshape(tl.permute(t, (2, 0, 1)), (N * N,)))
    tl.store(o_ptr + N * N + i, tl.ravel(t.reshape(N, N).trans()))
    tl.store(o_ptr + 2 * N * N + i, tl.trans(tl.view(t, [N, N])).reshape(N * N))


def feature_reshape_permute_trans():
    o = torch.zeros(3 * 64)
    reshape_kernel[(1,)](ramp(64), o, N=8)
    return o


@triton.jit
def join_kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, 2 * N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    both = tl.join(x, y)
    first, second = tl.split(both)
    tl.store(o_ptr + j, tl.reshape(both, (2 * N,)))
    tl.store(o_ptr + 2 * N + j, tl.interleave(second, first))
    tl.store(o_ptr + 4 * N + j, tl.cat(x, y, can_reorder=True))


def feature_join_split_interleave_cat():
    o = torch.zeros(6 * 16)
    join_kernel[(1,)](ramp(16), ramp(16, step=11), o, N=16)
    return o


@triton.jit
def flip_kernel(x_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(o_ptr + at, tl.flip(tl.load(x_ptr + at), 1))


def feature_flip():
    o = torch.zeros(4, 8)
    flip_kernel[(1,)](ramp(4, 8), o, M=4, N=8)
    return o


@triton.jit
def gather_kernel(x_ptr, i_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.gather(tl.load(x_ptr + i), tl.load(i_ptr + i), axis=0))


def feature_gather():
    o = torch.zeros(16)
    index = (torch.arange(16) * 5 % 16).to(torch.int32)
    gather_kernel[(1,)](ramp(16), index, o, N=16)
    return o


@triton.jit
def squeeze_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    t = tl.expand_dims(tl.load(x_ptr + i), [0, 2])
    tl.static_assert(t.shape[0] == 1)
    tl.store(o_ptr + i, tl.reshape(t, (N,)) * len(t.shape))


def feature_shape_of_a_tile():
    o = torch.zeros(16)
    squeeze_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.jit
def swizzle_kernel(o_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.program_id(0), tl.program_id(1)
    a, b = tl.swizzle2d(m, n, M, N, 2)
    tl.store(o_ptr + m * N + n, a * 100 + b)


def feature_swizzle2d():
    o = torch.zeros(4, 4, dtype=torch.int32)
    swizzle_kernel[(4, 4)](o, M=4, N=4)
    return o
