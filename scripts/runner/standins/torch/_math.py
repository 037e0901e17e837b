"""Arithmetic, element by element, with torch's promotion; float16 is computed in float32 and rounded once."""

import math

import numpy as np

from torch import _dtypes
from torch._data import require_fits
from torch._dtypes import bool_
from torch._elementwise import binary, held, kinds, made_of, operand, require_shapes, spoken, unary
from torch._tensor import Tensor


def _two(name: str, function, tensors: bool = False, **options):
    def call(input, other):
        if tensors and not (isinstance(input, Tensor) and isinstance(other, Tensor)):
            raise TypeError(f"{name}(): argument 'other' (position 2) must be Tensor")
        return binary(name, function, input, other, **options)

    return call


def _one(name: str, function, **options):
    def call(input):
        return unary(name, function, input, **options)

    return call


def _scaled(name: str, function):
    def call(input, other, alpha=1):
        if alpha != 1:
            other = other * alpha
        if _dtypes.combine(kinds(input, other)) is bool_ and name == "sub":
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                "`logical_xor()` operator instead."
            )
        return binary(name, function, input, other)

    return call


def _no_zero(function):
    """Integers divided by zero are refused, as in torch."""

    def call(a, b):
        if a.dtype.kind in "iub" and not np.all(b):
            raise RuntimeError("ZeroDivisionError")
        return function(a, b)

    return call


def div(input, other, rounding_mode=None) -> Tensor:
    """The quotient; of integers in float32."""
    if rounding_mode is None:
        return binary("div", np.true_divide, input, other, floats=True)
    if rounding_mode == "floor":
        return FUNCTIONS["floor_divide"](input, other)
    if rounding_mode == "trunc":
        return binary("div", _no_zero(_truncated), input, other)
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
    )


def _truncated(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def pow_(input, exponent) -> Tensor:
    """input ** exponent."""
    dtype = _dtypes.combine(kinds(input, exponent))
    if not dtype.is_floating_point and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return binary("pow", np.power, input, exponent)


def where(condition, input=None, other=None):
    """input where the condition holds, other elsewhere; alone, the indices where it holds."""
    from torch._order import nonzero  # which needs this module

    if input is None:
        return nonzero(condition, as_tuple=True)
    if condition.dtype not in (bool_, _dtypes.uint8):
        found = spoken(condition.dtype)
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {found}"
        )
    require_shapes(condition, *(x for x in (input, other) if isinstance(x, Tensor)))
    dtype = _dtypes.require_computed(_dtypes.combine(kinds(input, other)), "where")
    a, b = (operand(x, dtype, "where").astype(dtype.numpy, copy=False) for x in (input, other))
    return made_of(np.where(condition.array, a, b), dtype, condition, input, other)


def clamp(input, min=None, max=None) -> Tensor:
    """Not below min, not above max."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    limits = [x for x in (min, max) if x is not None]
    require_shapes(input, *limits)
    dtype = _dtypes.require_computed(_dtypes.combine(kinds(input, *limits)), "clamp")
    for limit in limits:
        if not isinstance(limit, Tensor):
            require_fits(limit, dtype)
    array = operand(input, dtype, "clamp")
    if min is not None:
        array = np.maximum(array, operand(min, dtype, "clamp"))
    if max is not None:
        array = np.minimum(array, operand(max, dtype, "clamp"))
    return made_of(array, dtype, input, *limits)


def nan_to_num(input, nan=0.0, posinf=None, neginf=None) -> Tensor:
    """Numbers in place of NaN and the infinities."""
    if not input.dtype.is_floating_point:
        return input.clone()
    limits = _dtypes.finfo(input.dtype)
    top = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    return unary("nan_to_num", lambda a: np.nan_to_num(a, nan=nan or 0.0, posinf=top, neginf=low), input)


def masked_fill(input, mask, value) -> Tensor:
    """A copy with `value` where the mask holds."""
    made = input.expand(np.broadcast_shapes(input.shape, mask.shape)).clone()
    return masked_fill_(made, mask, value)


def masked_fill_(self, mask, value) -> Tensor:
    """`value` where the mask holds."""
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if not isinstance(value, Tensor):
        require_fits(value, self.dtype)
    self[mask.expand(self.shape)] = value
    return self


def addcmul(input, tensor1, tensor2, value=1) -> Tensor:
    """input + value * tensor1 * tensor2."""
    require_shapes(input, tensor1, tensor2)
    dtype = _dtypes.combine(kinds(input, tensor1, tensor2))
    a, b, c = (operand(x, dtype, "addcmul") for x in (input, tensor1, tensor2))
    product = b * c if value == 1 else held(dtype).type(value) * b * c
    return made_of(a + product, dtype, input, tensor1, tensor2)


def neg(input) -> Tensor:
    """-input."""
    if input.dtype is bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead."
        )
    return unary("neg", np.negative, input)


def _sigmoid(a):
    return 1 / (1 + np.exp(-a))


def _round(a):
    return np.rint(a) if a.dtype.kind == "f" else a


def _only_floats(function):
    """Integers are whole already."""
    return lambda a: function(a) if a.dtype.kind == "f" else a


def _sign(a):
    return np.where(np.isnan(a), a.dtype.type(0), np.sign(a)) if a.dtype.kind == "f" else np.sign(a)


_FLOATS = {"floats": True}
FUNCTIONS = {
    "add": _scaled("add", np.add),
    "sub": _scaled("sub", np.subtract),
    "mul": _two("mul", np.multiply),
    "floor_divide": _two("floor_divide", _no_zero(np.floor_divide)),
    "remainder": _two("remainder", _no_zero(np.remainder)),
    "fmod": _two("fmod", _no_zero(np.fmod)),
    "maximum": _two("maximum", np.maximum, tensors=True),
    "minimum": _two("minimum", np.minimum, tensors=True),
    "fmax": _two("fmax", np.fmax, tensors=True),
    "fmin": _two("fmin", np.fmin, tensors=True),
    "atan2": _two("atan2", np.arctan2, tensors=True, **_FLOATS),
    "logaddexp": _two("logaddexp", np.logaddexp, tensors=True),
    **{name: _two(name, getattr(np, numpy), into=bool_) for name, numpy in (
        ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"),
        ("ge", "greater_equal"), ("logical_and", "logical_and"), ("logical_or", "logical_or"),
        ("logical_xor", "logical_xor"),
    )},
    **{name: _two(name, getattr(np, name)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "bitwise_left_shift": _two("bitwise_left_shift", np.left_shift),
    "bitwise_right_shift": _two("bitwise_right_shift", np.right_shift),
    **{name: _one(name, getattr(np, name), **_FLOATS) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "tanh",
    )},
    "sigmoid": _one("sigmoid", _sigmoid, **_FLOATS),
    "rsqrt": _one("rsqrt", lambda a: 1 / np.sqrt(a), **_FLOATS),
    "reciprocal": _one("reciprocal", lambda a: 1 / a, **_FLOATS),
    "abs": _one("abs", np.abs),
    "square": _one("square", np.square),
    "sign": _one("sign", _sign),
    "floor": _one("floor", _only_floats(np.floor)),
    "ceil": _one("ceil", _only_floats(np.ceil)),
    "trunc": _one("trunc", _only_floats(np.trunc)),
    "round": _one("round", _round),
    "relu": _one("relu", lambda a: np.maximum(a, a.dtype.type(0))),
    "bitwise_not": _one("bitwise_not", np.invert),
    "logical_not": _one("logical_not", np.logical_not, into=bool_),
    **{name: _one(name, getattr(np, name), into=bool_) for name in ("isnan", "isinf", "isfinite")},
    "isneginf": _one("isneginf", lambda a: a == -math.inf, into=bool_),
    "isposinf": _one("isposinf", lambda a: a == math.inf, into=bool_),
    "neg": neg, "div": div, "pow": pow_, "where": where, "clamp": clamp, "nan_to_num": nan_to_num,
    "masked_fill": masked_fill, "addcmul": addcmul,
}  # fmt: skip
ALIASES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg",
    "absolute": "abs", "clip": "clamp", "greater": "gt", "less": "lt", "greater_equal": "ge",
    "less_equal": "le", "not_equal": "ne",
}  # fmt: skip
FUNCTIONS |= {alias: FUNCTIONS[name] for alias, name in ALIASES.items()}
