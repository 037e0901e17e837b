"""The launches of a run: names and bounds for their tensors, and a record of every access.

A launch gives each tensor a window of its own, so that two views of one storage stay apart, and bounds are
those of the view. With `recording`, the accesses are trace_record.Access objects with a line added.
"""

import inspect
from dataclasses import dataclass

import numpy as np
from triton.runtime import interpreter
from triton.runtime.jit import mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from scripts.runner import explain
from scripts.runner.memory import MEM, MIDDLE, WINDOW_BITS, Region
from scripts.runner.table_guard import guard_of
from scripts.trace_record import Access, Launch, Trace, View


@dataclass(frozen=True)
class LinedAccess(Access):
    """An access with the line of the reader's source that made it."""

    line: int | None = None


class Launches:
    """What the hooks note down; a new one for every run."""

    def __init__(self, recording: bool = False, judge=lambda kernel: None) -> None:
        self.judge = judge  # called with each new kernel before it runs
        self.trace = Trace()
        self.unnamed: list[View] = []
        self.windows: list[int] = []
        self.remarks: list[tuple[str, int | None, dict]] = []  # (code, line, values)
        self.kernels: list[tuple] = []  # (function, types, constants): what a compiler would be asked for
        self.writers: dict[str, np.ndarray] = {}  # of the launch under way: which program wrote each element
        self.clash: tuple[int | None, dict] | None = None  # the first element that two programs wrote
        MEM.program = lambda: list(getattr(interpreter.interpreter_builder, "grid_idx", None) or ()) or None
        MEM.record = self.note if recording else None

    def note(self, op: str, region: Region, offsets: np.ndarray) -> None:
        """One access of one program."""
        if region.view is None:
            return
        elements = (offsets - region.begin) // region.itemsize
        index = elements if region.contiguous else region.view.index_of(elements)
        line = explain.reader_line(MEM)
        if op == "store":
            self._note_writer(region.view, index, line)
        self.trace.accesses.append(
            LinedAccess(
                op=op, launch=region.launch, program=interpreter.interpreter_builder.grid_idx,
                view=region.view, offsets=elements, index=index, sequence=len(self.trace.accesses),
                line=line,
            )
        )  # fmt: skip

    def _note_writer(self, view: View, index: np.ndarray, line: int | None) -> None:
        """Two programs of a launch that store to one element: on a GPU either may come last."""
        if view.name not in self.writers:
            self.writers[view.name] = np.full(int(np.prod(view.shape)), -1, np.int32)
        x, y, z = interpreter.interpreter_builder.grid_idx
        _, ny, nz = interpreter.interpreter_builder.grid_dim
        own, before = (x * ny + y) * nz + z, self.writers[view.name][index]
        clash = (before >= 0) & (before != own)
        if self.clash is None and clash.any():
            at = int(np.flatnonzero(clash)[0])
            place = [int(i) for i in np.unravel_index(index[at], view.shape)]
            first = [int(i) for i in np.unravel_index(before[at], interpreter.interpreter_builder.grid_dim)]
            self.clash = line, {"tensor": view.name, "index": place, "programs": [first, [x, y, z]]}
        self.writers[view.name][index] = own

    def _tell_clash(self, launch: Launch) -> None:
        """Where atomics are used, programs may well take turns."""
        if self.clash and not any(a.op == "atomic" and a.launch is launch for a in self.trace.accesses):
            line, values = self.clash
            self.remark("two_writers", line, **values)

    def remark(self, code: str, line: int | None, **values) -> None:
        """Something to warn of; once for a line."""
        if (code, line, values) not in self.remarks:
            self.remarks.append((code, line, values))

    def run(self, execute, executor, args, kwargs):
        """GridExecutor.__call__, with the tensors' names known before their pointers are made."""
        known = {name: value for name, value in kwargs.items() if name in executor.arg_names}
        arguments = inspect.getcallargs(executor.fn, *args, **known)
        launch = Launch(executor.fn.__name__, len(self.trace.launches))
        for name, value in arguments.items():
            if name not in executor.constexprs:
                launch.views.extend(_views(name, value))
        self.unnamed, self.writers, self.clash = list(launch.views), {}, None
        self.trace.launches.append(launch)
        constants = self._note_kernel(executor, arguments)
        opened, before = len(self.windows), MEM.guard
        if MEM.check_written:
            MEM.guard = guard_of(MEM, launch.kernel, launch.views, constants)
        try:
            execute(executor, *args, **kwargs)
        finally:
            launch.grid.extend(getattr(interpreter.interpreter_builder, "grid_dim", ()))
            for window in self.windows[opened:]:
                MEM.regions.pop(window, None)
            del self.windows[opened:]
            MEM.guard = before
        self._tell_clash(launch)

    def _note_kernel(self, executor, arguments: dict) -> dict:
        constants = {n: v for n, v in arguments.items() if n in executor.constexprs or v is None}
        types = {n: _type(v) for n, v in arguments.items() if n not in constants}
        constants |= {n: 1 for n, name in types.items() if name == "constexpr"}  # what Triton specialises on
        kernel = (executor.fn.jit, {n: t for n, t in types.items() if n not in constants}, constants)
        if kernel not in self.kernels:
            self.kernels.append(kernel)
            self.judge(kernel)
        return constants

    def pointer(self, convert, value):
        """_implicit_cvt: a tensor's pointer leads into a window of the launch."""
        converted = convert(value)
        if hasattr(value, "data_ptr") and self.unnamed:
            view = self.unnamed.pop(0)
            converted.handle.data = np.array([self.open(view)], np.uint64)
        return converted

    def open(self, view: View) -> int:
        """The address of the view's first element, in a new window."""
        tensor, address = view.tensor, view.tensor.data_ptr()
        whole = MEM.region_at(address)
        if whole is None:  # no elements, no storage
            return address
        size, begin = tensor.element_size(), (address & (1 << WINDOW_BITS) - 1) - MIDDLE
        contiguous = tensor.is_contiguous()
        span = 1 + sum((n - 1) * tensor.stride(d) for d, n in enumerate(view.shape)) if tensor.numel() else 0
        region = Region(
            whole.alive(), view=view, launch=self.trace.launches[-1], begin=begin,
            end=begin + span * size, itemsize=size, contiguous=contiguous, watch=_watch(view),
        )  # fmt: skip
        window = MEM.open_window(region)
        self.windows.append(window >> WINDOW_BITS)
        return window + MIDDLE + begin


def _watch(view: View):
    if MEM.guard and view is MEM.guard.table:
        return MEM.guard.saw_entries
    return MEM.guard.saw_lengths if MEM.guard and view is MEM.guard.lengths else None


def _views(name: str, value) -> list[View]:
    """The tensors of an argument, in the order in which _implicit_cvt meets them."""
    if isinstance(value, TensorDescriptor):
        return [View(name, value.base)]
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        names = [f"{name}.{f}" for f in fields] if fields else [f"{name}[{i}]" for i in range(len(value))]
        return [view for n, item in zip(names, value, strict=True) for view in _views(n, item)]
    return [View(name, value)] if hasattr(value, "data_ptr") else []


def _type(value) -> str | tuple:
    """The type of an argument as Triton spells it; of a tuple, that of each."""
    if isinstance(value, tuple):
        return tuple(_type(item) for item in value)
    if isinstance(value, TensorDescriptor):
        element = mangle_type(value.base).removeprefix("*")
        return f"tensordesc<{element}{list(value.block_shape)}>"
    return mangle_type(value, specialize=True)


CURRENT: list[Launches] = [Launches()]


def begin(recording: bool = False, judge=lambda kernel: None) -> Launches:
    """A fresh record; call it after MEM.reset()."""
    CURRENT[0] = Launches(recording, judge)
    return CURRENT[0]
