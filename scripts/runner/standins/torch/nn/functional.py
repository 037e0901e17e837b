"""torch.nn.functional: activations, the RMS norm and attention as PyTorch has it."""

import math

import numpy as np

from torch import _dtypes, _math, _reduce
from torch._einsum import require_same
from torch._elementwise import made_of, operand, unary
from torch._linalg import matmul
from torch._names import absent, offered
from torch._new import new
from torch._views import transpose


def silu(input, inplace=False):
    """x * sigmoid(x)."""
    _refuse_inplace("silu", inplace)
    return unary("silu", lambda a: a / (1 + np.exp(-a)), input)


def relu(input, inplace=False):
    """x, or 0 where it is negative."""
    _refuse_inplace("relu", inplace)
    return _math.FUNCTIONS["relu"](input)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """torch.softmax."""
    if dim is None:
        raise NotImplementedError(absent("softmax(dim=None)"))
    return _reduce.softmax(input, dim, dtype)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise NotImplementedError(absent(f"torch.nn.functional.{name}(inplace=True)"))


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input ** 2) + eps) over the last dims; eps is the dtype's own if None."""
    dtype = _dtypes.require_computed(input.dtype, "rms_norm")
    axes = tuple(range(len(input.shape) - len(tuple(normalized_shape)), len(input.shape)))
    if tuple(input.shape[axes[0] :]) != tuple(normalized_shape):
        raise RuntimeError(f"rms_norm: wanted {list(normalized_shape)} last, got {list(input.shape)}")
    array = operand(input, dtype, "rms_norm")
    eps = np.finfo(array.dtype).eps if eps is None else eps
    scale = 1 / np.sqrt(np.mean(array * array, axis=axes, keepdims=True) + array.dtype.type(eps))
    found = array * scale if weight is None else array * scale * operand(weight, dtype, "rms_norm")
    return made_of(found, dtype, input)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query @ key^T * scale + mask) @ value, over [..., heads, tokens, D]."""

    if dropout_p:
        raise NotImplementedError(absent("scaled_dot_product_attention(dropout_p=...)"))
    dtype = require_same("scaled_dot_product_attention", query, key, value)
    if enable_gqa:
        group = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(group, dim=-3) for x in (key, value))
    wide = [new(operand(x, dtype, "attention")) for x in (query, key, value)]
    scores = matmul(wide[0], transpose(wide[1], -1, -2)) * (
        1 / math.sqrt(query.shape[-1]) if scale is None else scale
    )
    if is_causal:
        seen = np.tril(np.ones(scores.shape[-2:], bool))
        scores = scores.masked_fill(new(~seen), -math.inf)
    if attn_mask is not None and attn_mask.dtype is _dtypes.bool_:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return matmul(_reduce.softmax(scores, -1), wide[2]).to(dtype)


_FUNCTIONS = {
    "silu": silu, "relu": relu, "softmax": softmax, "log_softmax": _reduce.log_softmax,
    "rms_norm": rms_norm, "scaled_dot_product_attention": scaled_dot_product_attention,
}  # fmt: skip
globals().update({name: offered(f, f"torch.nn.functional.{name}") for name, f in _FUNCTIONS.items()})


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(absent(f"torch.nn.functional.{name}"))
