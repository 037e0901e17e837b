"""NOT PyTorch: a small stand-in of that name, for the kernels that run in a page of the site.

A browser has no PyTorch. What it has is Python and numpy in WebAssembly, and lessons' files begin with
`import torch`; so that they run unchanged, this package has what they use of it: tensors with torch's
views, strides and promotion, in simulated memory (scripts/runner/memory.py) that tells a kernel's bad
accesses, and random numbers equal to PyTorch's. There are no gradients and no GPU. A name, an argument or a
dtype that is not here raises AttributeError or NotImplementedError saying so; nothing gives another result
than PyTorch, roundings apart. tests/runner/test_torch_*.py hold it to that.
"""
# ruff: noqa: F401 - what is imported is what this package offers

import math

from torch import (
    _copies,
    _create,
    _data,
    _dtypes,
    _elementwise,
    _index,
    _join,
    _linalg,
    _math,
    _methods,
    _order,
    _parts,
    _reduce,
    _views,
    cuda,
    library,
    nn,
    random,
    testing,
    version,
)
from torch._dtypes import (
    bfloat16,
    dtype,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from torch._names import absent as _absent
from torch._names import offered as _offered
from torch._names import refuse as _refuse
from torch._names import watch_imports as _watch_imports
from torch._print import set_printoptions
from torch._storage import Size, device
from torch._tensor import Tensor
from torch.random import Generator, default_generator

__version__ = "2.13.0+page"
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
bool = _dtypes.bool_
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64


def is_tensor(obj):
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """Whether its dtype has fractions."""
    return input.dtype.is_floating_point


def numel(input):
    """How many elements it has."""
    return input.numel()


def get_default_dtype():
    """float32."""
    return float32


class no_grad:  # noqa: N801
    """Nothing has gradients here: does nothing, as a decorator and in a `with`."""

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function


def _functions():
    modules = (_copies, _create, _data, _index, _join, _parts, _views)
    found = {function.__name__: function for module in modules for function in module.FUNCTIONS}
    found |= {"concat": _join.cat, "concatenate": _join.cat, "result_type": _elementwise.result_type}
    found |= {"promote_types": _dtypes.promote, "can_cast": _dtypes.can_cast}
    found |= _math.FUNCTIONS | _reduce.FUNCTIONS | _order.FUNCTIONS | _linalg.FUNCTIONS
    return found | random.FUNCTIONS


globals().update({name: _offered(function, f"torch.{name}") for name, function in _functions().items()})
inference_mode = no_grad
compile = _refuse("torch.compile", "there is no compiler in a page")
from_numpy = _refuse("torch.from_numpy", "memory is simulated; torch.tensor(array) copies it")
frombuffer = _refuse("torch.frombuffer", "memory is simulated; torch.tensor copies")
_methods.install()
_watch_imports()


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(_absent(f"torch.{name}"))
