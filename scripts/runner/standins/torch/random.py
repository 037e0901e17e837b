"""Random numbers: for a seed the same as those of PyTorch's CPU generator, a Mersenne twister.

_generator.py has the twister, _normal.py how normal numbers are made of its words.
"""

import functools
import math

import numpy as np

from torch import _dtypes
from torch._copies import refuse_overlap, store
from torch._create import empty_like
from torch._elementwise import spoken
from torch._generator import Generator
from torch._names import absent
from torch._new import new, uninitialised
from torch._storage import META, dense_strides
from torch._storage import device as _device
from torch._tensor import Tensor
from torch._views import permute, sizes_of

_FLOATS = (_dtypes.float16, _dtypes.bfloat16, _dtypes.float32, _dtypes.float64)
default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the generator of all calls that name none."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed of the generator of all calls that name none."""
    return default_generator.initial_seed()


def _options(dtype, device, generator, requires_grad) -> tuple[_dtypes.dtype, Generator, bool]:
    if requires_grad:
        raise NotImplementedError(absent("requires_grad=True", "there are no gradients"))
    dtype = dtype or _dtypes.float32
    return dtype, generator or default_generator, _device(device or "cpu").type == "meta"


def _require_float(name: str, dtype: _dtypes.dtype) -> None:
    if dtype not in _FLOATS:
        raise NotImplementedError(f"\"{name}\" not implemented for '{spoken(dtype)}'")


def _drawn(name: str, shape, dtype: _dtypes.dtype, meta: bool, draw) -> Tensor:
    """A new tensor of what `draw` gives for its number of elements."""
    _require_float(name, dtype)
    if meta:
        return uninitialised(shape, dtype, META)
    return new(_dtypes.rounded(draw(math.prod(shape)), dtype).reshape(shape), dtype)


def randn(*size, dtype=None, device=None, generator=None, requires_grad=False) -> Tensor:
    """Normal numbers: mean 0, standard deviation 1."""
    dtype, generator, meta = _options(dtype, device, generator, requires_grad)
    draw = functools.partial(generator.normal, dtype=dtype, mean=0.0, std=1.0, filled=True)
    return _drawn("normal_kernel_cpu", sizes_of(size), dtype, meta, draw)


def rand(*size, dtype=None, device=None, generator=None, requires_grad=False) -> Tensor:
    """Uniform numbers in [0, 1)."""
    dtype, generator, meta = _options(dtype, device, generator, requires_grad)
    draw = functools.partial(generator.uniform, dtype=dtype)
    return _drawn("check_uniform_bounds", sizes_of(size), dtype, meta, draw)


def randint(*bounds, dtype=None, device=None, generator=None, requires_grad=False, **named) -> Tensor:
    """Integers: randint(high, size), randint(low, high, size)."""
    unknown = set(named) - {"low", "high", "size"}
    if unknown:
        raise NotImplementedError(absent(f"torch.randint({unknown.pop()}=...)"))
    bounds = list(bounds)
    size = named["size"] if "size" in named else bounds.pop()
    high = named["high"] if "high" in named else bounds.pop()
    low = named["low"] if "low" in named else bounds.pop() if bounds else 0
    if bounds:
        raise TypeError("randint(): wanted (high, size) or (low, high, size)")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    dtype, generator, _ = _options(dtype or _dtypes.int64, device, generator, requires_grad)
    shape = tuple(size)
    drawn = generator.below(math.prod(shape), high - low) + low
    return new(_dtypes.rounded(drawn, dtype).reshape(shape), dtype)


def randperm(n: int, dtype=None, device=None, generator=None, requires_grad=False) -> Tensor:
    """0 to n - 1 in a random order."""
    dtype, generator, _ = _options(dtype or _dtypes.int64, device, generator, requires_grad)
    order = list(range(n))
    draws = generator.words(max(0, n - 1)).tolist()
    for i, word in enumerate(draws):
        j = i + word % (n - i)
        order[i], order[j] = order[j], order[i]
    return new(_dtypes.rounded(np.array(order, np.int64), dtype), dtype)


def randn_like(input, dtype=None, device=None) -> Tensor:
    """Normal numbers in the shape, dtype and layout of another tensor."""
    return normal_(empty_like(input, dtype, device))


def rand_like(input, dtype=None, device=None) -> Tensor:
    """Uniform numbers in the shape, dtype and layout of another tensor."""
    return uniform_(empty_like(input, dtype, device))


def _into(self: Tensor, drawn: np.ndarray) -> Tensor:
    """Numbers into a tensor, in the order in which its elements lie in memory."""
    refuse_overlap(self)
    steps = dense_strides(self.shape, self.stride())
    by_memory = permute(self, sorted(range(len(steps)), key=steps.__getitem__, reverse=True))
    store(by_memory, new(_dtypes.rounded(drawn, self.dtype).reshape(by_memory.shape), self.dtype))
    return self


def normal_(self, mean=0.0, std=1.0, generator=None) -> Tensor:
    """Normal numbers into this tensor."""
    _require_float("normal_kernel_cpu", self.dtype)
    generator = generator or default_generator
    return _into(self, generator.normal(self.numel(), self.dtype, mean, std, self.is_contiguous()))


def uniform_(self, from_=0.0, to=1.0, generator=None) -> Tensor:
    """Uniform numbers into this tensor."""
    _require_float("check_uniform_bounds", self.dtype)
    drawn = (generator or default_generator).uniform(self.numel(), self.dtype)
    kind = drawn.dtype.type
    return _into(self, drawn * kind(to - from_) + kind(from_))


FUNCTIONS = {
    "manual_seed": manual_seed, "initial_seed": initial_seed, "randn": randn, "rand": rand,
    "randint": randint, "randperm": randperm, "randn_like": randn_like, "rand_like": rand_like,
}  # fmt: skip
METHODS = {"normal_": normal_, "uniform_": uniform_}
