"""Normal numbers from uniform ones, 16 at a time, as PyTorch fills a tensor of at least 16 elements.

Box and Muller: of 16 uniform numbers the first 8 give radii, the last 8 angles. If the size is no multiple
of 16, the last 16 elements are drawn anew. In float32 PyTorch's AVX2 code has a logarithm, a sine and a
cosine of its own: the polynomials of the Cephes library (Moshier), with fused multiply-adds. Here they are
again, step by step, so that the numbers are the same to the last bit.
"""

import numpy as np

from torch import _dtypes

_F = np.float32
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LOG_2 = (-2.12194440e-4, 0.693359375)  # log(2) in two parts
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_QUARTER = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # -pi / 4 in three parts


def fill(generator, count: int, dtype: _dtypes.dtype, mean: float, std: float) -> np.ndarray:
    """`count` normal numbers, at least 16, in float32 or float64."""
    transform = _wide if dtype is _dtypes.float64 else _narrow
    whole = count // 16 * 16
    # Types of 16 bits draw 16 at a time; the others draw the whole tensor first.
    uniform = generator.raw_uniform(count if dtype.itemsize > 2 else whole, dtype)
    kind = uniform.dtype.type
    normal = np.empty(count, kind)
    normal[:whole] = transform(uniform[:whole].reshape(-1, 2, 8)).reshape(-1)
    if count % 16:
        normal[-16:] = transform(generator.raw_uniform(16, dtype).reshape(1, 2, 8)).reshape(-1)
    if (mean, std) == (0.0, 1.0):
        return normal
    return _fma(normal, kind(std), kind(mean)) if kind is _F else normal * std + mean


def _wide(u: np.ndarray) -> np.ndarray:
    radius = np.sqrt(-2.0 * np.log(1.0 - u[:, 0]))
    angle = 2.0 * np.pi * u[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def _narrow(u: np.ndarray) -> np.ndarray:
    radius = np.sqrt(_F(-2) * _log(_F(1) - u[:, 0]))
    sin, cos = _sin_cos(_F(2 * np.pi) * u[:, 1])
    return np.stack([radius * cos, radius * sin], 1)


def _fma(a, b, c) -> np.ndarray:
    """a * b + c with one rounding: float64 holds the product of two float32."""
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(_F)


def _polynomial(x: np.ndarray, coefficients) -> np.ndarray:
    y = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        y = _fma(y, x, _F(coefficient))
    return y


def _log(x: np.ndarray) -> np.ndarray:
    """log of numbers in (0, 1]."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 0x7F).astype(_F) + _F(1)
    x = (bits & ~0x7F800000 | np.array(0.5, _F).view(np.int32)).view(_F)  # in [0.5, 1)
    small = x < _F(0.707106781186547524)
    x, exponent = x - _F(1) + np.where(small, x, _F(0)), exponent - small.astype(_F)
    square = x * x
    y = _fma(_polynomial(x, _LOG) * x, square, exponent * _F(_LOG_2[0]))
    return _fma(exponent, _F(_LOG_2[1]), x + _fma(-square, _F(0.5), y))


def _sin_cos(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sin and cos of angles in [0, 2 pi)."""
    octant = (x * _F(1.27323954473516)).astype(np.int32) + 1 & ~1  # 4 / pi
    turned = octant.astype(_F)
    for part in _QUARTER:
        x = _fma(turned, _F(part), x)
    square = x * x
    cos = _polynomial(square, _COS) * square
    cos = _fma(cos, square, -(square * _F(0.5))) + _F(1)
    sin = _fma(_polynomial(square, _SIN) * square, x, x)
    swapped = octant & 2 != 0
    sin, cos = np.where(swapped, cos, sin), np.where(swapped, sin, cos)
    return np.where(octant & 4 != 0, -sin, sin), np.where(octant - 2 & 4 == 0, -cos, cos)
