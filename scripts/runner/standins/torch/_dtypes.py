"""Element types and how they combine: torch.dtype, finfo, iinfo and the promotion of torch, not numpy's.

bfloat16 and the two float8 types have a name and a size, so that signatures and launchers that mention them
can be imported and tensors of them allocated, moved and reinterpreted; nothing is computed in them.
"""

import numpy as np

from torch._names import absent


class dtype:  # noqa: N801, its name in torch
    """An element type. Triton knows it by the names of its class and module."""

    __slots__ = ("computed", "is_floating_point", "is_signed", "itemsize", "name", "numpy")
    is_complex = False

    def __init__(self, name: str, stored: str, kind: str = "") -> None:
        self.name, self.numpy = name, np.dtype(stored)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = (kind or self.numpy.kind) == "f"
        self.is_signed = self.is_floating_point or self.numpy.kind == "i"
        self.computed = not kind  # with a kind of its own, numpy holds its bits alone

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # copies are the same object, as in torch


dtype.__module__, dtype.__qualname__ = "torch", "dtype"

bool_ = dtype("bool", "bool")
uint8 = dtype("uint8", "uint8")
int8, int16, int32, int64 = (dtype(f"int{bits}", f"int{bits}") for bits in (8, 16, 32, 64))
float16, float32, float64 = (dtype(f"float{bits}", f"float{bits}") for bits in (16, 32, 64))
bfloat16 = dtype("bfloat16", "uint16", "f")
float8_e4m3fn, float8_e5m2 = dtype("float8_e4m3fn", "uint8", "f"), dtype("float8_e5m2", "uint8", "f")

INTEGERS = (uint8, int8, int16, int32, int64)
FLOATS = (float16, bfloat16, float32, float64)
ALL = (bool_, *INTEGERS, *FLOATS, float8_e4m3fn, float8_e5m2)
ALIASES = {
    "half": float16, "float": float32, "double": float64,
    "short": int16, "int": int32, "long": int64,
}  # fmt: skip
OF_NUMPY = {d.numpy: d for d in (bool_, *INTEGERS, float16, float32, float64)}


def from_numpy_dtype(found: np.dtype) -> dtype:
    """The dtype that numpy's is in torch."""
    if found not in OF_NUMPY:
        raise NotImplementedError(absent(f"the dtype {found}"))
    return OF_NUMPY[found]


def require_computed(found: dtype, what: str) -> dtype:
    """Refuse arithmetic in a type of which only the bits are held."""
    if not found.computed:
        short = {"bfloat16": "bf16"}.get(found.name, "float8")
        hint = "use float16 or float32" + ("; .float() converts" if short == "bf16" else "")
        missing = absent(f"{what} in torch.{found.name}", hint)
        raise NotImplementedError(f"{short} is not computed here: {missing}")
    return found


def promote(a: dtype, b: dtype) -> dtype:
    """The type that holds both, as torch.promote_types."""
    if a is b:
        return a
    if a.is_floating_point or b.is_floating_point:
        floats = [d for d in (a, b) if d.is_floating_point]
        if any(d.itemsize == 1 for d in floats):
            raise RuntimeError(
                f"Promotion for Float8 Types is not supported, attempted to promote {a} and {b}"
            )
        if {float16, bfloat16} == {a, b}:
            return float32
        return max(floats, key=FLOATS.index)
    if bool_ in (a, b):
        return b if a is bool_ else a
    small, large = sorted((a, b), key=INTEGERS.index)
    return int16 if (small, large) == (uint8, int8) else large


def of_scalar(value) -> dtype:
    """What a Python number counts as: bool, int64, or the default float32."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return float32
    if isinstance(value, complex):
        raise NotImplementedError(absent("complex numbers"))
    raise TypeError(f"{type(value).__name__} is no number; wanted a tensor, a bool, an int or a float")


def combine(operands) -> dtype:
    """torch.result_type: `operands` are (dtype, rank) of tensors and (dtype, None) of Python numbers.

    Tensors with dims come first, then those without, then numbers: a lower one counts only if it is of
    a higher kind (a float beside integers, an integer beside bools).
    """
    levels: list[dtype | None] = [None, None, None]
    for found, rank in operands:
        level = 2 if rank is None else 1 if rank == 0 else 0
        levels[level] = found if levels[level] is None else promote(levels[level], found)
    result = None
    for higher in reversed(levels):
        result = _above(higher, result)
    return result


def _above(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if higher.is_floating_point:
        return higher
    return promote(higher, lower) if higher is bool_ or lower.is_floating_point else higher


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place operation may store `source` in `target`: a kind never falls."""
    if source.is_floating_point:
        return target.is_floating_point
    return source is bool_ or target is not bool_


def rounded(array: np.ndarray, target: dtype) -> np.ndarray:
    """`array`, of a computed dtype, in the storage of `target`; bf16 is rounded to nearest, ties to even."""
    if target is bfloat16:
        with np.errstate(all="ignore"):
            bits = array.astype(np.float32).view(np.uint32)
        even = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
        nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
        return np.where(nan, np.uint32(0x7FC0), even >> np.uint32(16)).astype(np.uint16)
    require_computed(target, "a conversion")
    with np.errstate(all="ignore"):
        if target is float16 and array.dtype == np.float64:  # by way of float32, as torch does
            array = array.astype(np.float32)
        if target in INTEGERS and array.dtype.kind == "f":
            array = _truncated(array, np.iinfo(np.int32 if target is int32 else np.int64))
        return array.astype(target.numpy, copy=False)


def _truncated(array: np.ndarray, limits: np.iinfo) -> np.ndarray:
    """Floats as whole numbers; what is not in range is the lowest, as on the CPUs that PyTorch runs on.

    WebAssembly would make other numbers of it.
    """
    known = (array >= limits.min) & (array < -float(limits.min))  # the largest itself is no float
    whole = np.where(known, array, array.dtype.type(0)).astype(limits.dtype)
    return np.where(known, whole, limits.dtype.type(limits.min))


def widened(array: np.ndarray, source: dtype, what: str) -> np.ndarray:
    """The numbers of an array in storage: bf16 as float32, which holds every one of them."""
    if source is bfloat16 and what == "a conversion":
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    require_computed(source, what)
    return array


class finfo:  # noqa: N801
    """Limits of a floating-point type."""

    def __init__(self, type: dtype = float32) -> None:
        if not (type.is_floating_point and type.itemsize > 1):
            raise TypeError(f"torch.finfo() requires a floating point input type, got {type}")
        self.dtype, self.bits = type.name, 8 * type.itemsize
        if type is bfloat16:
            self.eps, self.tiny, self.max = 2.0**-7, 2.0**-126, float((2 - 2.0**-7) * 2.0**127)
            self.resolution = 0.01
        else:
            found = np.finfo(type.numpy)
            self.eps, self.tiny, self.max = float(found.eps), float(found.tiny), float(found.max)
            self.resolution = float(found.resolution)
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({shown}, dtype={self.dtype})"


class iinfo:  # noqa: N801
    """Limits of an integer type."""

    def __init__(self, type: dtype) -> None:
        if type not in INTEGERS:
            raise TypeError(f"torch.iinfo() requires an integer input type, got {type}")
        found = np.iinfo(type.numpy)
        self.dtype, self.bits, self.min, self.max = type.name, found.bits, int(found.min), int(found.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
