"""Simulated device memory: every tensor of a launch owns a window of addresses 2**44 bytes wide.

    buffer = MEM.alloc(nbytes, written=False)      what torch.empty does
    buffer.base, buffer.data, buffer.written       its address, its bytes, which of them are written

However far off the arithmetic of a kernel goes, an address tells which tensor it started from, so that a bad
access is told by tensor and index, and no memory of the process is touched. A launch gives each of its
tensors a window of its own (scripts/runner/launches.py), even where two of them share a buffer.
"""

import weakref
from dataclasses import dataclass, field

import numpy as np

from scripts.runner import access
from scripts.runner.faults import OutOfMemory

WINDOW_BITS = 44  # 16 TiB: an int32 overflow stays inside the window, and is seen as out of bounds
MIDDLE = 1 << WINDOW_BITS - 1
WINDOWS = 1 << 64 - WINDOW_BITS
LARGEST = 64 * 2**20  # bytes an allocation
ALIGNMENT = 64
POISON = 0xFF  # unwritten bytes: NaN in every float type, -1 in every integer type


class Buffer:
    """Bytes of the simulated device; freed when the last tensor on it is gone."""

    __slots__ = ("__weakref__", "_base", "data", "nbytes", "written")

    def __init__(self, nbytes: int, written: bool) -> None:
        whole = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -whole.ctypes.data % ALIGNMENT
        self.data = whole[start : start + nbytes]
        self.data.fill(0 if written else POISON)
        self.written = None if written else np.zeros(nbytes, bool)
        self.nbytes = nbytes
        self._base = (0, 0)  # the run that it was given in, and the address

    @property
    def base(self) -> int:
        """The address of its first byte, in the middle of its window; another one in every run."""
        if self._base[0] != MEM.run:
            self._base = (MEM.run, MEM.open_window(Region(self)) + MIDDLE)
        return self._base[1]


@dataclass(eq=False, slots=True)
class Region:
    """What the addresses of one window may touch: a view of a buffer, or all of it."""

    buffer: Buffer | None
    view: object = None  # trace_record.View: the tensor and the kernel's name for it
    launch: object = None
    begin: int = 0  # the byte of the buffer where the view's first element is
    end: int = 0  # past the last byte of a contiguous view, or of the buffer
    itemsize: int = 1
    contiguous: bool = True
    watch: object = None  # called with (element indices in the view, values) after a load
    reference: object = field(default=None)  # in place of `buffer`, for a buffer's own window

    def __post_init__(self) -> None:
        if self.view is None and self.buffer is not None:
            self.end = self.buffer.nbytes
            self.buffer, self.reference = None, weakref.ref(self.buffer)

    def alive(self) -> Buffer | None:
        """The buffer, or None where the last tensor on it is gone."""
        return self.buffer if self.reference is None else self.reference()


class Memory:
    """The allocations and windows of one run."""

    def __init__(self) -> None:
        self.run = 0
        self.reset()

    def reset(self) -> None:
        """Forget every window: addresses of an earlier run belong to no tensor."""
        self.run += 1
        self.regions: dict[int, Region] = {}
        self.last_window = 0
        self.check_written = True  # a read of unwritten memory is a fault
        self.guard = None  # of the launch under way: scripts/runner/table_guard.py
        self.record = None  # called with (op, region, byte offsets) at each access
        self.files: tuple[str, ...] = ()  # of the reader: a fault's line is in one of them
        self.program = lambda: None  # (x, y, z) of the program that runs

    def alloc(self, nbytes: int, *, written: bool) -> Buffer:
        """A new buffer of zeros, or of poison that counts as unwritten. Raises OutOfMemory past 64 MiB."""
        if nbytes > LARGEST:
            raise OutOfMemory("out_of_memory", nbytes=int(nbytes), largest=LARGEST)
        return Buffer(int(nbytes), written)

    def open_window(self, region: Region) -> int:
        """The first address of a window for it."""
        for _ in range(WINDOWS):
            self.last_window = self.last_window % (WINDOWS - 2) + 1
            taken = self.regions.get(self.last_window)
            if taken is None or taken.alive() is None:
                self.regions[self.last_window] = region
                return self.last_window << WINDOW_BITS
        raise OutOfMemory("out_of_windows", windows=WINDOWS)

    def region_at(self, address: int) -> Region | None:
        """Whose window the address is in."""
        return self.regions.get(address >> WINDOW_BITS)

    # What triton._C.libtriton.interpreter offers, on simulated memory.

    def load(self, ptrs, mask, other, dtype) -> np.ndarray:
        return access.load(self, ptrs, mask, other, dtype)

    def store(self, ptrs, value, mask) -> None:
        access.store(self, ptrs, value, mask)

    def atomic_rmw(self, op, ptrs, value, mask, _semantic) -> np.ndarray:
        return access.atomic_rmw(self, op.name, ptrs, value, mask)

    def atomic_cas(self, ptrs, compare, value, _semantic) -> np.ndarray:
        return access.atomic_cas(self, ptrs, compare, value)


MEM = Memory()
