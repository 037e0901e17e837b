"""What a GPU really does: the race for a pinned buffer, and what a CUDA graph makes of the interface.

Lesson: l1_table_to_device. Reference: the table that each kernel was launched for.
Source: own.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from kernels.l1_table_to_device import Declaration, SharedMetadata

ENTRIES = 64 * 256  # of a table; all of them carry its number
BUSY_CYCLES = 50_000_000  # about 25 ms: the host is long done with a step when the copy runs


class Read(NamedTuple):
    """A kernel was launched for table `wanted`; the table it read had `least` to `most` in it."""

    wanted: int
    least: int
    most: int

    @property
    def right(self) -> bool:
        """Whether it found its own table, all of it."""
        return self.least == self.most == self.wanted


# region kernel
class Reader:
    """The kernel of these examples: it keeps the table that it found."""

    def __init__(self, capacity: int = 8) -> None:
        self.found = torch.zeros(ENTRIES, dtype=torch.int32, device="cuda")
        self._kept = torch.zeros(capacity, ENTRIES, dtype=torch.int32, device="cuda")
        self._wanted: list[int] = []

    def launch(self, table: torch.Tensor) -> None:
        """Reads the table, on the device, in the order of the stream."""
        self.found.copy_(table)

    def keep(self, wanted: int) -> None:
        """Put aside, in the order of the stream, what the last launch found."""
        self._kept[len(self._wanted)].copy_(self.found)
        self._wanted.append(wanted)

    def reads(self) -> list[Read]:
        """All that was kept; waits for the GPU."""
        kept = self._kept[: len(self._wanted)].cpu()
        pairs = zip(self._wanted, kept, strict=True)
        return [Read(wanted, int(table.min()), int(table.max())) for wanted, table in pairs]


def keep_busy() -> None:
    """Something long on the stream, as the kernels of the step before are."""
    torch.cuda._sleep(BUSY_CYCLES)


def declared() -> Declaration:
    """The table of these examples."""
    return Declaration("table", (ENTRIES,))
# endregion kernel


# region race
def reuse_at_once(num_steps: int = 4, busy: bool = True, wait: bool = False) -> list[Read]:
    """One pinned buffer; wait: for the last copy, before it is written again."""
    host = torch.zeros(ENTRIES, dtype=torch.int32).pin_memory()
    table = torch.zeros(ENTRIES, dtype=torch.int32, device="cuda")
    reader, copied = Reader(num_steps), torch.cuda.Event()
    keep_busy()  # whatever is loaded at its first use is loaded now
    torch.cuda.synchronize()
    for step in range(1, num_steps + 1):
        if wait:
            copied.synchronize()  #: race_wait
        host.fill_(step)  #: race_fill
        if busy:
            keep_busy()
        table.copy_(host, non_blocking=True)  #: race_copy
        copied.record()
        reader.launch(table)
        reader.keep(step)
    return reader.reads()
# endregion race


# region graph
def captured(shared: SharedMetadata, reader: Reader) -> torch.cuda.CUDAGraph:
    """The device's part of a step, interface and all, as a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        reader.launch(shared.device_acquire())  # branches once  #: frozen_branch
        shared.device_release()
    return graph


def write_host(shared: SharedMetadata, table: int) -> None:
    """The host's part of a step."""
    shared.host_acquire().fill_(table)
    shared.host_release()


def pageable_in_capture() -> list[Read]:
    """Dirty and pageable: the capture raises. Run it in a process of its own."""
    shared, reader = SharedMetadata(declared(), "cuda", pinned=False), Reader()
    write_host(shared, 1)
    captured(shared, reader).replay()  #: raises
    reader.keep(1)
    return reader.reads()


def pinned_in_capture(wait: bool = False) -> list[Read]:
    """Dirty and pinned: the graph has the copy, and reads the host each time.

    wait: the host waits for the whole replay before it writes again.
    """
    shared, reader = SharedMetadata(declared(), "cuda"), Reader()
    write_host(shared, 1)
    graph = captured(shared, reader)  #: with_copy
    for table in range(1, 5):
        write_host(shared, table)  # and no event to wait for  #: unguarded
        keep_busy()
        graph.replay()
        reader.keep(table)
        if wait:
            torch.cuda.current_stream().synchronize()  #: host_must_wait
    return reader.reads()


def clean_in_capture() -> list[Read]:
    """Clean at capture: no copy in the graph, and later tables never arrive."""
    shared, reader = SharedMetadata(declared(), "cuda"), Reader()
    write_host(shared, 1)
    reader.launch(shared.device_acquire())  # an eager step: now it is clean
    shared.device_release()
    graph = captured(shared, reader)  #: without_copy
    for table in range(1, 5):
        write_host(shared, table)
        graph.replay()  #: stale
        reader.keep(table)
    return reader.reads()


def static_buffer() -> list[Read]:
    """The way that works: a copy outside, a graph that reads a static buffer."""
    shared, reader = SharedMetadata(declared(), "cuda"), Reader()
    shared.device_acquire()  # clean, so that no copy is captured
    shared.device_release()
    graph = captured(shared, reader)
    for table in range(1, 5):
        write_host(shared, table)  # waits for the last copy  #: guarded
        shared.device_acquire()  #: outside
        keep_busy()
        graph.replay()
        shared.device_release()
        reader.keep(table)
    return reader.reads()
# endregion graph


OUTCOMES: dict[str, Callable[[], list[Read]]] = {
    "race": reuse_at_once,
    "race_idle": lambda: reuse_at_once(200, busy=False),
    "race_waits": lambda: reuse_at_once(wait=True),
    "pinned_in_capture": pinned_in_capture,
    "pinned_in_capture_waits": lambda: pinned_in_capture(wait=True),
    "clean_in_capture": clean_in_capture,
    "static_buffer": static_buffer,
}
