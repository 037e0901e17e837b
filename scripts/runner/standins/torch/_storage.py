"""What a tensor lies in: simulated memory (scripts/runner/memory.py), a device, a shape."""

import math

from scripts.runner.memory import MEM
from torch._names import absent


class Size(tuple):
    """A shape."""

    __slots__ = ()

    def numel(self) -> int:
        """Elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))


class device:  # noqa: N801, its name in torch
    """Where a tensor lies: "cpu", or "meta" for a shape without memory. There is no GPU in a page."""

    __slots__ = ("index", "type")

    def __init__(self, type="cpu", index=None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, str):
            type, _, number = type.partition(":")
            index = int(number) if number else index
        if type not in ("cpu", "meta"):
            what = f"the device {type!r}" if isinstance(type, str) else f"the device number {type}"
            raise NotImplementedError(absent(what, "there is no GPU in a page, leave `device` out"))
        self.type, self.index = type, index

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})"
            if self.index is None
            else (f"device(type={self.type!r}, index={self.index})")
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


device.__module__ = Size.__module__ = "torch"
CPU, META = device("cpu"), device("meta")


class Storage:
    """A buffer that tensors share."""

    __slots__ = ("__weakref__", "buffer")

    def __init__(self, buffer) -> None:
        self.buffer = buffer

    def data_ptr(self) -> int:
        """The simulated address of its first byte."""
        return self.buffer.base if self.buffer is not None else 0

    def nbytes(self) -> int:
        """Its size."""
        return self.buffer.nbytes if self.buffer is not None else 0

    size = __len__ = nbytes

    def cpu(self) -> "Storage":
        """Itself: Triton's interpreter asks before a launch, and nothing has to be copied."""
        return self

    def copy_(self, other: "Storage", non_blocking: bool = False) -> "Storage":
        """Its bytes from another, as Triton's interpreter does after a launch."""
        if other.buffer is not self.buffer:
            raise NotImplementedError(absent("UntypedStorage.copy_ from another storage"))
        return self

    def resize_(self, nbytes: int) -> "Storage":
        """Give its memory back: only 0 is possible."""
        if nbytes != 0:
            raise NotImplementedError(absent(f"UntypedStorage.resize_({nbytes})", "only 0 is"))
        self.buffer = None
        return self

    def __getattr__(self, name: str):
        raise AttributeError(absent(f"UntypedStorage.{name}"))


def allocate(nbytes: int, written: bool = True) -> Storage:
    """New memory; what is not written holds poison: NaN as a float, -1 as an integer."""
    return Storage(MEM.alloc(nbytes, written=written))


def contiguous_strides(shape) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def dense_strides(shape, *known) -> tuple[int, ...]:
    """Strides without gaps, with the dims in the order in which they lie in other tensors of this shape.

    known: their strides, 0 where they are broadcast. The rule is that of PyTorch's TensorIterator: the last
    dim is the fastest unless strides say otherwise, the first tensor that knows decides.
    """

    def compare(d0: int, d1: int) -> int:
        for strides in known:
            a, b = strides[d0], strides[d1]
            if a == 0 or b == 0:
                continue
            if a != b:
                return 1 if a > b else -1
            if shape[d0] > shape[d1]:
                return 1
        return 0

    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for before in reversed(range(i)):
            found = compare(order[before], order[at])
            if found < 0:
                break
            if found > 0:
                order[before], order[at] = order[at], order[before]
                at = before
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d], step = step, step * max(1, shape[d])
    return tuple(strides)


def is_dense(shape, strides) -> bool:
    """Whether every element has a place of its own and there are no gaps."""
    step = 1
    dims = [(stride, size) for size, stride in zip(shape, strides, strict=True) if size != 1]
    for stride, size in sorted(dims):
        if stride != step:
            return False
        step *= size
    return True
