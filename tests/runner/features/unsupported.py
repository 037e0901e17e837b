"""What Triton's interpreter has not, or gets wrong: it is said by name."""

import torch
import triton
import triton.language as tl


def ramp(*shape, dtype=torch.float32, step=37):
    """Multiples of 1/16 from -3 to 3 in a scattered order; of an integer type, from -48 to 48."""
    whole = torch.arange(torch.Size(shape).numel()) * step % 97 - 48
    return (whole / 16 if dtype.is_floating_point else whole).to(dtype).reshape(shape)


from triton.language.extra import libdevice  # noqa: E402


@triton.jit
def bfloat16_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, (tl.load(x_ptr + i).to(tl.bfloat16) * 1.5).to(tl.float32))


def feature_bfloat16():
    o = torch.zeros(16)
    bfloat16_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.jit
def float8_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i).to(tl.float8e5).to(tl.float32))


def feature_float8():
    o = torch.zeros(16)
    float8_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.jit
def assembly_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    y = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [tl.load(x_ptr + i)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(o_ptr + i, y)


def feature_inline_assembly():
    o = torch.zeros(16)
    assembly_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.jit
def libdevice_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, libdevice.tanh(tl.load(x_ptr + i)))


def feature_libdevice():
    o = torch.zeros(16)
    libdevice_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.jit
def scaled_kernel(a_ptr, o_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + at)
    tl.store(o_ptr + at, tl.dot_scaled(a, None, "e5m2", a, None, "e5m2"))


def feature_dot_scaled():
    o = torch.zeros(32, 32)
    scaled_kernel[(1,)](torch.zeros(32, 32, dtype=torch.uint8), o, N=32)
    return o


@triton.jit
def map_kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.map_elementwise(doubled, tl.load(x_ptr + i)))


@triton.jit
def doubled(x):
    return x * 2


def feature_map_elementwise():
    o = torch.zeros(16)
    map_kernel[(1,)](ramp(16), o, N=16)
    return o


@triton.autotune(configs=[triton.Config({"N": 16}), triton.Config({"N": 32})], key=["n"])
@triton.jit
def tuned_kernel(o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o_ptr + i, i * 2, mask=i < n)


def feature_autotune_with_two_configs():
    o = torch.zeros(40)
    tuned_kernel[lambda meta: (triton.cdiv(40, meta["N"]),)](o, 40)
    return o
