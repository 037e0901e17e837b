"""A cache whose offsets pass 2**31 elements, in a page: 4 GiB of addresses, and memory for the pages touched.

    with caches():
        big_cache.check("packed")

WebAssembly has 4 GiB of addresses for everything, so the page's tensors are 64 MiB at most. This one keeps
the chunks of its memory that are touched, and gives views of one chunk as any tensor does.
"""

import contextlib
from pathlib import Path

import numpy as np
import torch

from scripts.patching import patched
from scripts.runner.memory import Buffer
from tests.helpers import big_cache

CHUNK = big_cache.PAGE_STRIDE * 2  # bytes: a page


class Chunks:
    """Bytes, zero where nothing was written; what scripts/runner/access.py asks of a buffer's data."""

    def __init__(self, nbytes: int) -> None:
        self.size, self._chunks = nbytes, {}

    def chunk(self, number: int) -> np.ndarray:
        """[CHUNK] uint8, in place."""
        return self._chunks.setdefault(number, np.zeros(CHUNK, np.uint8))

    def __getitem__(self, _whole: slice) -> "Chunks":
        return self

    def view(self, dtype: np.dtype) -> "Elements":
        """The same as elements of a type."""
        return Elements(self, np.dtype(dtype))


class Elements:
    """Chunks as elements of one type, read and written by arrays of indices."""

    def __init__(self, chunks: Chunks, dtype: np.dtype) -> None:
        self.chunks, self.dtype, self.per_chunk = chunks, dtype, CHUNK // dtype.itemsize

    def _parts(self, index: np.ndarray):
        """(lanes, a chunk's elements, indices in it), chunk by chunk."""
        numbers, inner = np.divmod(index, self.per_chunk)
        for number in np.unique(numbers).tolist():
            lanes = numbers == number
            yield lanes, self.chunks.chunk(number).view(self.dtype), inner[lanes]

    def __getitem__(self, index: np.ndarray) -> np.ndarray:
        found = np.empty(index.shape, self.dtype)
        for lanes, elements, inner in self._parts(index):
            found[lanes] = elements[inner]
        return found

    def __setitem__(self, index: np.ndarray, values: np.ndarray) -> None:
        values = np.broadcast_to(values, index.shape)
        for lanes, elements, inner in self._parts(index):
            elements[inner] = values[lanes]


class FarBuffer(Buffer):
    """A buffer of the simulated device with chunks for data."""

    def __init__(self, nbytes: int) -> None:
        super().__init__(0, written=True)
        self.data, self.nbytes = Chunks(nbytes), nbytes


class FarTensor(torch.Tensor):
    """A view of chunks: one chunk gives its array; of more, rows can be asked for."""

    __slots__ = ()

    @property
    def array(self):
        size = self.dtype.itemsize
        begin = self._offset * size
        end = begin + size * (
            1 + sum((n - 1) * step for n, step in zip(self.shape, self._strides, strict=True))
        )
        number, inner = divmod(begin, CHUNK)
        if end > (number + 1) * CHUNK:
            return _Rows(self)
        steps = tuple(step * size for step in self._strides)
        chunk = self._storage.buffer.data.chunk(number)
        return np.ndarray(tuple(self.shape), self.dtype.numpy, chunk, inner, steps)

    def flags(self) -> None:
        """All of it is written."""

    def alias(self, shape, strides, offset=None, dtype=None) -> "FarTensor":
        """Another view of the same chunks."""
        offset = self._offset if offset is None else offset
        return FarTensor(self._storage, dtype or self.dtype, shape, strides, offset, self.device)


class _Rows:
    """What a tensor of many chunks can be asked for: rows of its first dim, gathered."""

    def __init__(self, tensor: FarTensor) -> None:
        self.tensor, self.size, self.shape = tensor, tensor.numel(), tensor.shape

    def __getitem__(self, index: tuple[np.ndarray]) -> np.ndarray:
        (rows,) = index
        found = np.empty((*rows.shape, *self.shape[1:]), self.tensor.dtype.numpy)
        for place, row in np.ndenumerate(rows):
            found[place] = self.tensor[int(row)].array
        return found


def new_cache() -> torch.Tensor:
    """What tests/helpers/big_cache.py makes: fp16 [131073, 16, 8, 128]."""
    shape = (-1, big_cache.PAGE_SIZE, big_cache.NUM_KV_HEADS, big_cache.HEAD_DIM)
    storage = type(torch.empty(1).untyped_storage())(FarBuffer(big_cache.CACHE_BYTES))
    return FarTensor(storage, torch.float16, (big_cache.CACHE_BYTES // 2,), (1,)).view(shape)


def caches() -> contextlib.AbstractContextManager:
    """Inside, the large caches of tests/helpers are such tensors, if torch is the page's."""
    if not Path(torch.__file__).resolve().is_relative_to(Path(__file__).resolve().parent):
        return contextlib.nullcontext()
    return patched(big_cache, "new_cache", new_cache)
