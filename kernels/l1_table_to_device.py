"""How a block table gets from the host to a kernel: four ways to copy it, and one interface to them.

Lesson: l1_table_to_device. Reference: the model of host and stream in l1_stream_model.py.
Source: own.
"""

from typing import NamedTuple

import torch

from kernels.checks import require


# region ways
def pageable_copy(table: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A new tensor on the device from ordinary, pageable memory.

    torch keeps the host until the copy is there.
    """
    return table.to(device)  #: pageable


def pinned_copy(table: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The same from pinned memory: the call returns at once.

    `table` is read later: who writes it before that changes what arrives.
    """
    return table.to(device, non_blocking=True)  #: non_blocking


def refill(static: torch.Tensor, table: torch.Tensor) -> None:
    """Overwrite a buffer that keeps its address.

    The stream's order keeps the copy behind readers launched before it,
    and before all later ones.
    """
    static.copy_(table, non_blocking=True)  #: in_place


def copy_on_stream(
    static: torch.Tensor, table: torch.Tensor, copies: torch.cuda.Stream
) -> torch.cuda.Event:
    """The same on a stream of its own, beside the current one's kernels.

    Returns the event that the host waits for, `event.synchronize()`,
    before it writes `table` again.
    """
    kernels = torch.cuda.current_stream()
    copies.wait_stream(kernels)  # readers of the last table  #: free_first
    with torch.cuda.stream(copies):
        static.copy_(table, non_blocking=True)  #: side_copy
        copied = copies.record_event()  #: side_copy
    kernels.wait_event(copied)  # readers of this one  #: then_read
    return copied
# endregion ways


# region declaration
class Declaration(NamedTuple):
    """What the host tells the device at every step.

    How large it gets, of what type, and whose memory it is.
    tensor: the backend's own, on the device; the backend allocates and
    frees it, and it is filled in place. None: it belongs to this interface.
    """

    name: str
    shape: tuple[int, ...]  # at its largest
    dtype: torch.dtype = torch.int32
    tensor: torch.Tensor | None = None
# endregion declaration


# region shared
class SharedMetadata:
    """A piece of metadata at home on the host and on the device.

    It has one holder at a time. The host writes between `host_acquire` and
    `host_release`. Kernels are launched between `device_acquire` and
    `device_release`, all on one stream. What the host has changed is copied
    at the next `device_acquire`, and only then.

    pinned: False keeps the host's side in pageable memory. Beside a device
    that is a CPU it always is.
    """

    def __init__(self, declared: Declaration, device: str | torch.device, *, pinned: bool = True):
        name, shape, dtype, tensor = declared
        device = torch.device(device)
        if tensor is None:
            tensor = torch.empty(shape, dtype=dtype, device=device)
        ok = tuple(tensor.shape) == tuple(shape) and tensor.dtype == dtype
        wanted = f"{str(dtype).removeprefix('torch.')} {list(shape)} on {device}, as declared"
        require(ok and tensor.device.type == device.type, name, tensor, wanted)
        self.declared = declared
        self.host = torch.zeros(shape, dtype=dtype, pin_memory=pinned and tensor.is_cuda)  #: two_homes
        self.device = tensor  #: two_homes
        self.dirty = True  # the device has seen nothing yet  #: dirty_at_first
        self._holder: str | None = None
        self._copied: torch.cuda.Event | None = None  # the last copy out of `host`

    # region host
    def host_acquire(self) -> torch.Tensor:
        """The host's tensor, to be written; waits for the last copy out of it."""
        self._take("the host")
        if self._copied is not None:
            self._copied.synchronize()  #: wait_copied
        return self.host

    def host_release(self, changed: bool = True) -> None:
        """The host is done; changed: it has written something."""
        self._give("the host")
        self.dirty |= changed  #: set_dirty
    # endregion host

    # region device
    def device_acquire(self) -> torch.Tensor:
        """The device's tensor, for kernels on the current stream; copies if it must."""
        self._take("the device")
        if self.dirty:  #: host_branch
            self.device.copy_(self.host, non_blocking=True)  #: copy
            # A capture's event says nothing about replays: no host can wait for it.
            if self.device.is_cuda and not torch.cuda.is_current_stream_capturing():  #: capture_event
                self._copied = torch.cuda.current_stream().record_event()  #: record_copied
            self.dirty = False  #: clean
        return self.device

    def device_release(self) -> None:
        """All kernels that read it are launched."""
        self._give("the device")
    # endregion device

    def _take(self, who: str) -> None:
        if self._holder is not None:
            raise RuntimeError(
                f"{self.declared.name} is held by {self._holder}; wanted a release before {who} acquires it"
            )
        self._holder = who

    def _give(self, who: str) -> None:
        if self._holder != who:
            raise RuntimeError(
                f"{self.declared.name} is held by {self._holder or 'nobody'}; wanted it acquired by {who}"
            )
        self._holder = None
# endregion shared
