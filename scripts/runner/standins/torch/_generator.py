"""torch.Generator: PyTorch's CPU generator, a Mersenne twister.

Python's own `random.Random` is one, too: only its state has to be filled as PyTorch fills it.
"""

import math
import random

import numpy as np

from torch import _dtypes
from torch._names import absent
from torch._normal import fill
from torch._storage import device as _device

_DEFAULT_SEED = 67280421310721  # of a generator that nobody seeded
_LARGE_RANGE = 2**28  # integers from a range as large take 64 bits each


class Generator:
    """torch.Generator: its own stream of numbers."""

    def __init__(self, device="cpu") -> None:
        self.device = _device(device)
        self.manual_seed(_DEFAULT_SEED)

    def manual_seed(self, seed: int) -> "Generator":
        """Start the stream that belongs to a seed."""
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: the seed {seed}")
        self._seed = seed % 2**64
        word = self._seed & 0xFFFFFFFF  # the twister of torch takes 32 bits
        state = [word]
        for i in range(1, 624):
            word = (1812433253 * (word ^ word >> 30) + i) & 0xFFFFFFFF
            state.append(word)
        self._twister = random.Random()
        self._twister.setstate((3, (*state, 624), None))
        self._second: float | None = None  # normal numbers come in pairs: the one that is left
        return self

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._seed

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(absent(f"Generator.{name}"))

    def words(self, count: int) -> np.ndarray:
        """The next numbers of 32 bits."""
        if not count:
            return np.empty(0, np.uint32)
        drawn = self._twister.getrandbits(32 * count)
        return np.frombuffer(drawn.to_bytes(4 * count, "little"), "<u4")

    def long_words(self, count: int) -> np.ndarray:
        """The next numbers of 64 bits: of two words the first is the upper half."""
        pairs = self.words(2 * count).reshape(-1, 2).astype(np.uint64)
        return pairs[:, 0] << np.uint64(32) | pairs[:, 1]

    def uniform(self, count: int, dtype: _dtypes.dtype) -> np.ndarray:
        """Numbers in [0, 1); those that a short dtype would round up to 1 are 0."""
        drawn = self.raw_uniform(count, dtype)
        return drawn if dtype.itemsize > 2 else np.where(_is_one(drawn, dtype), np.float32(0), drawn)

    def raw_uniform(self, count: int, dtype: _dtypes.dtype) -> np.ndarray:
        """Numbers in [0, 1): of 53 bits for float64, else of 24 bits, in float32."""
        if dtype is _dtypes.float64:
            return (self.long_words(count) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53
        return (self.words(count) & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)

    def below(self, count: int, limit: int) -> np.ndarray:
        """Integers in [0, limit)."""
        if limit >= _LARGE_RANGE:
            return (self.long_words(count) % np.uint64(limit)).astype(np.int64)
        return (self.words(count) % np.uint32(limit)).astype(np.int64)

    def normal(self, count: int, dtype: _dtypes.dtype, mean: float, std: float, filled: bool) -> np.ndarray:
        """Normal numbers; filled: 16 at a time, if they are so many, as for contiguous tensors."""
        if filled and count >= 16:
            return fill(self, count, dtype, mean, std)
        return self.normal_pairs(count) * std + mean

    def normal_pairs(self, count: int) -> np.ndarray:
        """Normal numbers one by one, in float64: what tensors of fewer than 16 elements get."""
        found = []
        for _ in range(count):
            if self._second is None:
                u1, u2 = self.uniform(2, _dtypes.float64).tolist()
                radius, angle = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
                self._second = radius * math.sin(angle)
                found.append(radius * math.cos(angle))
            else:
                found.append(self._second)
                self._second = None
        return np.array(found, np.float64)


Generator.__module__ = "torch"


def _is_one(drawn: np.ndarray, dtype: _dtypes.dtype) -> np.ndarray:
    return _dtypes.rounded(drawn, dtype) == _dtypes.rounded(np.float32(1), dtype)
