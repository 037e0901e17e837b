"""The tensor: a view (dtype, shape, strides, offset) of simulated memory, computed by numpy.

Views share their storage, so a write through a slice lands in the tensor it was cut from, and an address
tells the element. What else a tensor can do is in the other files of this package; _methods.py adds it.
"""

import numpy as np

from torch import _dtypes
from torch._names import absent
from torch._storage import CPU, Size, Storage, contiguous_strides


class Tensor:
    """NOT PyTorch's: no gradients, no GPU, and only the methods that lessons use."""

    __slots__ = ("__weakref__", "_offset", "_storage", "_strides", "device", "dtype", "shape")
    __array_ufunc__ = None  # numpy leaves `array * tensor` to this class
    is_cuda = requires_grad = is_sparse = is_quantized = False
    is_cpu = property(lambda self: self.device.type == "cpu")
    grad = None

    def __init__(
        self, storage: Storage | None, dtype=None, shape=(), strides=(), offset: int = 0, device=CPU
    ) -> None:
        if not isinstance(dtype, _dtypes.dtype):
            raise NotImplementedError(absent("torch.Tensor(...)", "torch.tensor makes one"))
        self._storage, self.dtype, self.shape = storage, dtype, Size(shape)
        self._strides, self._offset, self.device = tuple(strides), offset, device

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(absent(f"Tensor.{name}"))

    # What it lies in.

    @property
    def array(self) -> np.ndarray:
        """Its elements as numpy sees them, in the same memory; of bf16 and float8 the bits."""
        kind = self.dtype.numpy
        if self.device.type == "meta":
            return np.broadcast_to(np.zeros((), kind), self.shape)
        if 0 in self.shape:
            return np.empty(self.shape, kind)
        return self._over(self._storage.buffer, "data", kind, ())

    def flags(self) -> np.ndarray | None:
        """[*shape, bytes] bool, in place: which bytes of it are written; None if all are."""
        buffer = self._storage.buffer if self._storage is not None else None
        if buffer is None or buffer.written is None or 0 in self.shape:
            return None
        return self._over(buffer, "written", np.dtype(bool), (self.dtype.itemsize,))

    def _over(self, buffer, part: str, kind: np.dtype, inner: tuple[int, ...]) -> np.ndarray:
        if buffer is None:
            raise RuntimeError("the storage of this tensor was given back (UntypedStorage.resize_(0))")
        size = self.dtype.itemsize
        strides = (*(step * size for step in self._strides), *(1 for _ in inner))
        return np.ndarray((*self.shape, *inner), kind, getattr(buffer, part), self._offset * size, strides)

    def mark_written(self, index=...) -> None:
        """All of it, or what `index` chooses, is written from now on."""
        flags = self.flags()
        if flags is not None:
            flags[index] = True

    def alias(self, shape, strides, offset: int | None = None, dtype=None) -> "Tensor":
        """Another view of the same storage."""
        offset = self._offset if offset is None else offset
        return Tensor(self._storage, dtype or self.dtype, shape, strides, offset, self.device)

    def data_ptr(self) -> int:
        """The simulated address of its first element."""
        if self.device.type == "meta":
            return 0
        return self._storage.data_ptr() + self._offset * self.dtype.itemsize

    def untyped_storage(self) -> Storage:
        """What it shares with its views."""
        return self._storage

    def storage_offset(self) -> int:
        """Elements of the storage before its first."""
        return self._offset

    def set_(self, source: Storage, storage_offset: int = 0, size=(), stride=()) -> "Tensor":
        """Become this view of a storage."""
        if not isinstance(source, Storage):
            raise NotImplementedError(absent("Tensor.set_ from a tensor"))
        require_inside(source, self.dtype, size, stride, storage_offset)
        self._storage, self._offset, self.device = source, storage_offset, CPU
        self.shape, self._strides = Size(size), tuple(stride)
        return self

    # What it is.

    def stride(self, dim: int | None = None):
        """Strides in elements, or that of one dim."""
        return self._strides if dim is None else self._strides[wrap(dim, len(self.shape))]

    def size(self, dim: int | None = None):
        """Its shape, or the size of one dim."""
        return self.shape if dim is None else self.shape[wrap(dim, len(self.shape))]

    def dim(self) -> int:
        """How many dims."""
        return len(self.shape)

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """How many elements."""
        return self.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        """Bytes an element."""
        return self.dtype.itemsize

    itemsize = property(element_size)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)
    data = property(lambda self: self.alias(self.shape, self._strides))
    is_meta = property(lambda self: self.device.type == "meta")

    def is_contiguous(self) -> bool:
        """Whether its elements lie in row-major order without gaps."""
        wanted = contiguous_strides(self.shape)
        sizes = zip(self.shape, self._strides, wanted, strict=True)
        return 0 in self.shape or all(n == 1 or have == want for n, have, want in sizes)

    def is_floating_point(self) -> bool:
        """Whether its dtype has fractions."""
        return self.dtype.is_floating_point

    def get_device(self) -> int:
        """-1: no GPU."""
        return -1

    def is_pinned(self) -> bool:
        """No memory is pinned here."""
        return False

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    # What it holds.

    def item(self):
        """Its only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return numbers(self, "item()").item()

    def tolist(self):
        """Its elements as nested lists of Python numbers."""
        return numbers(self, "tolist()").tolist()

    def numpy(self) -> np.ndarray:
        """The same memory as a numpy array; it counts as written from then on, since nobody watches it."""
        require_real(self, "numpy()")
        _dtypes.require_computed(self.dtype, "numpy()")
        self.mark_written()
        return self.array

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        found = numbers(self, "a numpy array of it")
        return np.array(found, dtype, copy=True if copy is None else copy)

    def __bool__(self) -> bool:
        if self.numel() != 1:
            what = "no values" if self.numel() == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item() if not self.shape else str(self), spec)


Tensor.__module__ = "torch"


def wrap(dim: int, rank: int) -> int:
    """A dim counted from the front."""
    low, high = -max(1, rank), max(1, rank) - 1
    if not low <= dim <= high:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim % max(1, rank)


def require_real(tensor: Tensor, what: str) -> None:
    """Refuse to look into a tensor without memory."""
    if tensor.device.type == "meta":
        raise RuntimeError(f"{what}: a tensor on the meta device has a shape and no data")


def require_inside(storage: Storage, dtype, shape, strides, offset: int) -> None:
    """Refuse a view that reaches past its storage."""
    if 0 in shape:
        return
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if offset < 0 or min(strides, default=0) < 0 or (last + 1) * dtype.itemsize > storage.nbytes():
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and "
            f"itemsize {dtype.itemsize} requiring a storage size of {(last + 1) * dtype.itemsize} are out of "
            f"bounds for storage of size {storage.nbytes()}"
        )


def numbers(tensor: Tensor, what: str) -> np.ndarray:
    """Its elements, to be looked at: refused for meta tensors, and for types that are not computed."""
    require_real(tensor, what)
    return _dtypes.widened(tensor.array, tensor.dtype, "a conversion" if tensor.dtype.itemsize > 1 else what)
