"""What a tensor can do, by name: the functions of the other files as methods and operators."""

import numpy as np

from torch import (
    _copies,
    _create,
    _dtypes,
    _elementwise,
    _index,
    _join,
    _linalg,
    _math,
    _order,
    _parts,
    _print,
    _reduce,
    _views,
)
from torch import random as _random
from torch._names import absent, offered, refuse
from torch._tensor import Tensor

_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}
_IN_PLACE = (
    "add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "exp", "exp2", "log", "sqrt", "rsqrt",
    "reciprocal", "neg", "abs", "floor", "ceil", "round", "sigmoid", "tanh", "relu", "clamp", "nan_to_num",
    "addcmul", "bitwise_and", "bitwise_or",
)  # fmt: skip
_CONVERSIONS = {
    "half": _dtypes.float16, "float": _dtypes.float32, "double": _dtypes.float64,
    "bfloat16": _dtypes.bfloat16, "short": _dtypes.int16, "int": _dtypes.int32, "long": _dtypes.int64,
    "bool": _dtypes.bool_, "byte": _dtypes.uint8, "char": _dtypes.int8,
}  # fmt: skip
_NO_GPU = "there is no GPU in a page"


def _cpu(self: Tensor) -> Tensor:
    return _join.to(self, "cpu")


def _detach(self: Tensor) -> Tensor:
    return self.data


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    if requires_grad:
        raise NotImplementedError(absent("Tensor.requires_grad_", "there are no gradients"))
    return self


def _where(self: Tensor, condition: Tensor, other) -> Tensor:
    return _math.where(condition, self, other)


def _converting(dtype: _dtypes.dtype):
    def call(self: Tensor) -> Tensor:
        return _join.to(self, dtype)

    call.__doc__ = f"As {dtype}."
    return call


def methods() -> dict:
    """name -> function of a tensor and its arguments."""
    modules = (_copies, _create, _index, _join, _parts, _views)
    found = {function.__name__: function for module in modules for function in module.METHODS}
    found |= _math.FUNCTIONS | _reduce.FUNCTIONS | _order.FUNCTIONS | _linalg.FUNCTIONS | _random.METHODS
    del found["einsum"]
    found |= {f"{name}_": _elementwise.in_place(name, _math.FUNCTIONS[name]) for name in _IN_PLACE}
    found |= {name: _converting(dtype) for name, dtype in _CONVERSIONS.items()}
    return found | {
        "cpu": _cpu, "detach": _detach, "requires_grad_": _requires_grad_, "where": _where,
        "masked_fill_": _math.masked_fill_,
    }  # fmt: skip


def _operator(function):
    """It leaves to Python what is neither a tensor nor a number."""

    def call(self, other):
        if isinstance(other, np.generic):
            other = other.item()
        return function(self, other) if isinstance(other, (Tensor, int, float)) else NotImplemented

    return call


def _turned(function):
    def call(self, other):
        return function(other, self)

    return call


def operators() -> dict:
    """__name__ -> function."""
    every, found = _math.FUNCTIONS | _linalg.FUNCTIONS, {}
    for name, of in _OPERATORS.items():
        found[f"__{name}__"] = _operator(every[of])
        found[f"__r{name}__"] = _operator(_turned(every[of]))
        found[f"__i{name}__"] = _operator(_elementwise.in_place(of, every[of]))
    found |= {f"__{name}__": _operator(every[name]) for name in _COMPARISONS}
    return found | {f"__{name}__": every[of] for name, of in _UNARY.items()}


def _iterate(self: Tensor):
    return iter(_parts.unbind(self))


def _same(self: Tensor) -> Tensor:
    return self


def _deep_copy(self: Tensor, memo) -> Tensor:
    return _copies.clone(self)


def install() -> None:
    """Give Tensor all of it."""
    for name, function in methods().items():
        setattr(Tensor, name, offered(function, f"Tensor.{name}"))
    for name, function in operators().items():
        setattr(Tensor, name, offered(function, name))
    Tensor.__getitem__, Tensor.__setitem__ = _index.getitem, _index.setitem
    Tensor.__iter__, Tensor.__contains__ = _iterate, _join.contains
    Tensor.__repr__ = Tensor.__str__ = _print.show
    Tensor.__deepcopy__, Tensor.__pos__ = _deep_copy, _same
    Tensor.T = property(lambda self: _views.permute(self, *reversed(range(len(self.shape)))))
    Tensor.mT = property(lambda self: _views.transpose(self, -1, -2))
    Tensor.cuda, Tensor.pin_memory = refuse("Tensor.cuda", _NO_GPU), refuse("Tensor.pin_memory", _NO_GPU)
