"""Every load and store of Triton kernels, recorded while the interpreter runs them.

    with trace() as t:
        paged_decode(q, k_cache, v_cache, block_table, seq_lens)
    t.assert_in_bounds()
    t.assert_written_once("o_ptr")

Tensors go by the names of the kernel's parameters. The interpreter runs one program after the other, reads
garbage outside a tensor without a word, and lets one program repair what another spoilt; the record shows all
three. How: each tensor gets an address window of its own, so that an address tells its tensor and its
element, however far off the arithmetic went. An access outside its tensor is recorded, not carried out.

A library for tests and diagrams, not a command. It needs TRITON_INTERPRET=1, set before triton is imported.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import triton
from triton.runtime import interpreter

from scripts.patching import patched
from scripts.trace_record import Access, Launch, Trace, TraceError, View

__all__ = ["Access", "Launch", "Trace", "TraceError", "View", "launches_alone", "trace"]

_WINDOW_BITS = 44  # 16 TiB a tensor: an int32 overflow stays inside the window and is seen as out of bounds


class _Recorder:
    """Puts virtual addresses into a launch, and takes them out again at each access."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.views: list[View] = []  # by window
        self.unnamed: list[View] = []  # tensors of the launch under way whose pointer is not made yet

    def execute(self, run):
        """Wraps GridExecutor.__call__: notes the launch and the names of its tensors."""

        def wrapper(executor, *args, **kwargs):
            known = {k: v for k, v in kwargs.items() if k in executor.arg_names}
            arguments = inspect.getcallargs(executor.fn, *args, **known)
            launch = Launch(executor.fn.__name__, len(self.trace.launches))
            tensors = {name: arg for name, arg in arguments.items() if isinstance(arg, torch.Tensor)}
            launch.views.extend(View(name, tensor) for name, tensor in tensors.items())
            self.unnamed = list(launch.views)
            self.trace.launches.append(launch)
            run(executor, *args, **kwargs)
            launch.grid.extend(interpreter.interpreter_builder.grid_dim)

        return wrapper

    def make_pointer(self, convert):
        """Wraps _implicit_cvt, which gets the arguments in the order of getcallargs."""

        def wrapper(arg):
            value = convert(arg)
            if isinstance(arg, torch.Tensor):
                if not self.unnamed:
                    raise TraceError("a tensor inside a tuple or a descriptor; wanted plain parameters")
                self.views.append(self.unnamed.pop(0))
                value.handle.data = np.array([len(self.views) << _WINDOW_BITS], np.uint64)
            return value

        return wrapper

    def access(self, op: str, ptr, mask, carry_out):
        """Record one access, and carry out its lanes that are in bounds: carry_out(real pointers, mask)."""
        address = ptr.data.astype(np.int64)
        active = np.broadcast_to(mask, address.shape).astype(bool)  # a scalar's, once splat, is int32
        if not active.any():
            return carry_out(ptr, active)
        windows = (address[active] + (1 << _WINDOW_BITS - 1)) >> _WINDOW_BITS
        if windows.min() != windows.max() or not 1 <= windows[0] <= len(self.views):
            raise TraceError(f"a {op} through pointers that no tensor of the launch gave")
        view, base = self.views[windows[0] - 1], int(windows[0]) << _WINDOW_BITS
        offsets, misaligned = np.divmod(address - base, view.tensor.element_size())
        index = np.where(misaligned == 0, view.index_of(offsets), -1)
        builder = interpreter.interpreter_builder
        self.trace.accesses.append(
            Access(
                op=op,
                launch=self.trace.launches[-1],
                program=builder.grid_idx,
                view=view,
                offsets=offsets[active],
                index=index[active],
                sequence=len(self.trace.accesses),
            )
        )
        inside = active & (index >= 0)
        real = np.where(inside, address - base + view.tensor.data_ptr(), 0).astype(np.uint64)
        return carry_out(interpreter.TensorHandle(real, ptr.dtype), inside)

    def load(self, perform):
        def wrapper(ptr, mask, other, *rest):
            return self.access("load", ptr, mask.data, lambda p, m: perform(p, _as_mask(m), other, *rest))

        return wrapper

    def store(self, perform):
        def wrapper(ptr, value, mask, *rest):
            return self.access("store", ptr, mask.data, lambda p, m: perform(p, value, _as_mask(m), *rest))

        return wrapper

    def atomic_rmw(self, perform):
        def wrapper(kind, ptr, value, mask, *rest):
            return self.access(
                "atomic", ptr, mask.data, lambda p, m: perform(kind, p, value, _as_mask(m), *rest)
            )

        return wrapper

    def atomic_cas(self, perform):
        def wrapper(ptr, compare, value, *rest):
            def carry_out(p, inside):
                if not inside.all():  # it has no mask to leave lanes out with
                    raise TraceError(f"{self.trace.accesses[-1]}: outside it")
                return perform(p, compare, value, *rest)

            return self.access("atomic", ptr, True, carry_out)

        return wrapper


def _as_mask(lanes: np.ndarray) -> interpreter.TensorHandle:
    return interpreter.TensorHandle(lanes, triton.language.int1)


@contextmanager
def trace() -> Iterator[Trace]:
    """Record every access of every kernel launched inside. Raises RuntimeError outside the interpreter."""
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("no interpreter to trace; wanted TRITON_INTERPRET=1 before triton is imported")
    recorder, builder, executor = _Recorder(), interpreter.interpreter_builder, interpreter.GridExecutor

    def patch(owner, name, wrap):
        return patched(owner, name, wrap(getattr(owner, name)))

    with (
        patch(executor, "__call__", recorder.execute),
        patch(interpreter, "_implicit_cvt", recorder.make_pointer),
        patch(builder, "create_masked_load", recorder.load),
        patch(builder, "create_masked_store", recorder.store),
        patch(builder, "create_atomic_rmw", recorder.atomic_rmw),
        patch(builder, "create_atomic_cas", recorder.atomic_cas),
    ):
        yield recorder.trace


@contextmanager
def launches_alone() -> Iterator[list[Launch]]:
    """Note each launch made inside, its kernel and grid, and carry none out: outputs stay as they are."""
    noted: list[Launch] = []

    def note(executor, *args, **kwargs):
        grid = [*executor.grid, 1, 1][:3]  # our launchers give tuples
        noted.append(Launch(executor.fn.__name__, len(noted), grid=grid))

    with patched(interpreter.GridExecutor, "__call__", note):
        yield noted
