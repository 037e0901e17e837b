"""What the tracer recorded (scripts/tracer.py): launches, accesses, and the rules they are held to."""

from dataclasses import dataclass, field

import numpy as np
import torch


class TraceError(AssertionError):
    """A kernel touched what it must not, or left out what it must write."""


@dataclass(frozen=True)
class View:
    """A tensor as one launch received it: a view has elements of its own, fewer than its storage has."""

    name: str  # the kernel's parameter
    tensor: torch.Tensor = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def index_of(self, offsets: np.ndarray) -> np.ndarray:
        """Row-major index in the view of each offset (elements from its first), -1 outside it."""
        index, rest = np.zeros_like(offsets), offsets.copy()
        row_major = [int(np.prod(self.shape[d + 1 :], dtype=np.int64)) for d in range(len(self.shape))]
        dims = [d for d, size in enumerate(self.shape) if size > 1]
        for d in sorted(dims, key=self.tensor.stride, reverse=True):
            coordinate = np.clip(rest // max(1, self.tensor.stride(d)), 0, self.shape[d] - 1)
            rest -= coordinate * self.tensor.stride(d)
            index += coordinate * row_major[d]
        return np.where((rest == 0) & (self.tensor.numel() > 0), index, -1)


@dataclass(frozen=True)
class Launch:
    """One kernel launch: its name, its grid, its tensors in the order of the parameters."""

    kernel: str
    number: int
    views: list[View] = field(default_factory=list)
    grid: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Access:
    """The unmasked lanes of one load, store or atomic of one program."""

    op: str  # "load", "store" or "atomic"
    launch: Launch
    program: tuple[int, int, int]
    view: View
    offsets: np.ndarray  # [lanes] elements from the tensor's first element, in memory
    index: np.ndarray  # [lanes] row-major index in the tensor, -1 outside it
    sequence: int  # place among all accesses of the trace

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def kernel(self) -> str:
        return self.launch.kernel

    @property
    def coordinates(self) -> tuple[np.ndarray, ...]:
        """One array an axis of the tensor; lanes outside it are left out."""
        return np.unravel_index(self.index[self.index >= 0].astype(np.intp), self.view.shape)

    def __str__(self) -> str:
        return f"{self.op} of {self.name} {list(self.view.shape)} by program {self.program} of {self.kernel}"


class Trace:
    """What `trace` recorded: launches and accesses, in order."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.accesses: list[Access] = []

    def reads(self, name: str) -> list[Access]:
        """Loads and atomics of the tensor that a kernel calls `name`."""
        return [a for a in self.accesses if a.name == name and a.op != "store"]

    def writes(self, name: str) -> list[Access]:
        """Stores and atomics of the tensor that a kernel calls `name`."""
        return [a for a in self.accesses if a.name == name and a.op != "load"]

    def read_counts(self, name: str) -> np.ndarray:
        """How often each element was read, in the tensor's shape."""
        return self._counts(self.reads(name), self._views(name)[0])

    def assert_in_bounds(self) -> None:
        """Every access falls on elements of its own tensor: of the view, not merely of its storage."""
        for access in self.accesses:
            outside = access.offsets[access.index < 0]
            if outside.size:
                at = f"at element offsets {outside[:8].tolist()}"
                raise TraceError(f"{access}: {outside.size} lanes outside it, {at}")

    def assert_written_once(self, name: str) -> None:
        """Every element of the tensor is written by exactly one lane of one program."""
        for view in self._views(name):
            writes = [a for a in self.writes(name) if a.view.tensor.data_ptr() == view.tensor.data_ptr()]
            counts = self._counts(writes, view)
            holes, twice = np.argwhere(counts == 0), np.argwhere(counts > 1)
            if len(holes):
                first = holes[0].tolist()
                raise TraceError(f"{len(holes)} elements of {name} never written, the first at {first}")
            if len(twice):
                first = np.ravel_multi_index(tuple(twice[0]), view.shape)
                writers = [a.program for a in writes if first in view.index_of(a.offsets)]
                raise TraceError(
                    f"{len(twice)} elements of {name} written more than once, the first at "
                    f"{twice[0].tolist()} by programs {writers} of {writes[0].kernel}"
                )

    def assert_reads_within(self, name: str, allowed: np.ndarray) -> None:
        """Only elements where `allowed` (bool, broadcast to the tensor's shape) holds are read."""
        for access in self.reads(name):
            bad = ~np.broadcast_to(allowed, access.view.shape).ravel()[access.index[access.index >= 0]]
            if bad.any():
                where = np.stack(access.coordinates, 1)[bad][0].tolist()
                raise TraceError(f"{access}: {bad.sum()} lanes nobody may read, the first at {where}")

    def assert_table_reads(
        self, block_table: torch.Tensor, seq_lens: torch.Tensor, page_size: int, axis: int = 0
    ) -> None:
        """The table is read, and each program reads entries with pages of its own sequence alone.

        A program's sequence is the coordinate `axis` of its place in the grid.
        """
        entries = [-(-n // page_size) for n in seq_lens.tolist()]
        reads = [a for a in self.accesses if a.view.tensor.data_ptr() == block_table.data_ptr()]
        if not reads and any(entries):
            raise TraceError(f"the block table {list(block_table.shape)} was never read")
        for access in reads:
            seq_id = access.program[axis]
            for row, column in zip(*access.coordinates, strict=True):
                if row != seq_id or column >= entries[seq_id]:
                    owned = f"sequence {seq_id} has {entries[seq_id]}"
                    raise TraceError(f"{access}: entry [{row}, {column}]; {owned}")

    def _views(self, name: str) -> list[View]:
        """The tensors that kernels call `name`; one that several launches received counts once."""
        views = [view for launch in self.launches for view in launch.views if view.name == name]
        if not views:
            known = sorted({view.name for launch in self.launches for view in launch.views})
            raise TraceError(f"no kernel of the trace has a tensor named {name!r}; wanted one of {known}")
        return list({view.tensor.data_ptr(): view for view in reversed(views)}.values())

    def _counts(self, accesses: list[Access], view: View) -> np.ndarray:
        own = [a for a in accesses if a.view.tensor.data_ptr() == view.tensor.data_ptr()]
        flat = np.concatenate([np.empty(0, np.int64), *(view.index_of(a.offsets) for a in own)])
        return np.bincount(flat[flat >= 0].astype(np.intp), minlength=view.tensor.numel()).reshape(view.shape)
