"""A host, its streams and their events as a model small enough to try every interleaving.

Lesson: l1_table_to_device. Source: own; the rules are those of CUDA streams and events.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


# region operations
class Fill(NamedTuple):
    """The host writes a table into one of its buffers, here and now."""

    buffer: str
    table: int


class Copy(NamedTuple):
    """The stream copies when it gets there; the call returns at once."""

    src: str
    dst: str
    stream: str = "stream"


class StagedCopy(NamedTuple):
    """From pageable memory: src is read before the call returns."""

    src: str
    dst: str
    stream: str = "stream"


class Kernel(NamedTuple):
    """A kernel reads the buffer; `wanted`: the table it was launched for."""

    buffer: str
    wanted: int
    stream: str = "stream"


class Record(NamedTuple):
    """The event is done when the stream gets here."""

    event: str
    stream: str = "stream"


class StreamWait(NamedTuple):
    """The stream goes no further until the event, as recorded so far, is done."""

    event: str
    stream: str = "stream"


class HostWait(NamedTuple):
    """The host goes no further until the event, as recorded so far, is done."""

    event: str
# endregion operations


Operation = Fill | Copy | StagedCopy | Kernel | Record | StreamWait | HostWait


# region machine
class Step(NamedTuple):
    """One step of a run: who took it ("host" or a stream), what it was, and the table it touched."""

    who: str
    operation: Operation
    table: int | None = None

    @property
    def is_read(self) -> bool:
        """Whether a kernel ran here; the host's step of the same operation only launched it."""
        return isinstance(self.operation, Kernel) and self.who != "host"


class Machine:
    """One state: where the host is, what is queued, what lies in memory, which events are done."""

    def __init__(self, program: Sequence[Operation]) -> None:
        self.program, self.next = program, 0
        self.queues: dict[str, tuple[tuple[Operation, int], ...]] = {}
        self.memory: dict[str, int] = {}  # buffer -> table; none: 0
        self.recorded: dict[str, int] = {}  # event -> how often the host has recorded it
        self.done: dict[str, int] = {}  # event -> how often a stream has got there

    def state(self) -> tuple:
        """All that decides what can still happen."""
        parts = (self.queues, self.memory, self.recorded, self.done)
        return (self.next, *(frozenset(part.items()) for part in parts))

    def copy(self) -> "Machine":
        """A machine in the same state that goes its own way."""
        other = Machine(self.program)
        other.next = self.next
        for name in ("queues", "memory", "recorded", "done"):
            setattr(other, name, dict(getattr(self, name)))
        return other

    def choices(self) -> list[str]:
        """Who could take the next step. The hardware decides among them, so nobody may rely on it."""
        ready = []
        if self.next < len(self.program):
            now = self.program[self.next]
            waits = isinstance(now, HostWait)
            if not waits or self.done.get(now.event, 0) >= self.recorded.get(now.event, 0):
                ready.append("host")
        for stream, queue in self.queues.items():
            if queue:
                now, number = queue[0]
                if not isinstance(now, StreamWait) or self.done.get(now.event, 0) >= number:
                    ready.append(stream)
        return ready

    def advance(self, who: str) -> Step:
        """Let the host or a stream take its next step."""
        return self._host_step() if who == "host" else self._stream_step(who)

    def _host_step(self) -> Step:
        now, number, table = self.program[self.next], 0, None
        self.next += 1
        if isinstance(now, Fill):
            table = self.memory[now.buffer] = now.table  #: fill
        elif isinstance(now, Record):
            number = self.recorded[now.event] = self.recorded.get(now.event, 0) + 1
        elif isinstance(now, StreamWait):
            number = self.recorded.get(now.event, 0)
        elif isinstance(now, StagedCopy):
            number = table = self.memory.get(now.src, 0)  # the driver takes it aside  #: staged
        if not isinstance(now, (Fill, HostWait)):  # all the others are for a stream to do  #: enqueue
            self.queues[now.stream] = (*self.queues.get(now.stream, ()), (now, number))  #: enqueue
        return Step("host", now, table)

    def _stream_step(self, stream: str) -> Step:
        ((now, number), *rest), table = self.queues[stream], None
        self.queues[stream] = tuple(rest)
        if isinstance(now, Copy):
            table = self.memory[now.dst] = self.memory.get(now.src, 0)  # only now  #: copy_reads
        elif isinstance(now, StagedCopy):
            table = self.memory[now.dst] = number
        elif isinstance(now, Kernel):
            table = self.memory.get(now.buffer, 0)  #: kernel_reads
        elif isinstance(now, Record):
            self.done[now.event] = number
        return Step(stream, now, table)
# endregion machine


# region runs
def run(program: Sequence[Operation], order: Sequence[str]) -> list[Step]:
    """One interleaving: of those who can, the first in `order` takes the next step.

    ("host", "stream") is a busy GPU: its stream starts only when the host can go no further.
    ("stream", "host") is an idle one: it does at once what it is given.
    """
    machine, steps = Machine(program), []
    while choices := machine.choices():
        steps.append(machine.advance(min(choices, key=order.index)))
    return steps


def outcomes(program: Sequence[Operation]) -> Counter:
    """{((wanted, found), ...): number of interleavings}: what the kernels found, over every one.

    None gets stuck: a wait is always for something that was queued before it.
    """
    known: dict[tuple, Counter] = {}

    def from_here(machine: Machine) -> Counter:
        if (state := machine.state()) in known:
            return known[state]
        found: Counter = Counter()
        choices = machine.choices()
        if not choices:
            found[()] = 1
        for who in choices:
            branch = machine.copy()
            step = branch.advance(who)
            read = ((step.operation.wanted, step.table),) if step.is_read else ()
            for later, count in from_here(branch).items():
                found[read + later] += count
        known[state] = found
        return found

    return from_here(Machine(program))


def is_right(outcome: tuple) -> bool:
    """Whether every kernel found the table that it was launched for."""
    return all(wanted == found for wanted, found in outcome)
# endregion runs


# region programs
def reuse_at_once(num_steps: int = 2) -> list[Operation]:
    """One pinned buffer, written again when the calls have returned. Wrong."""
    program: list[Operation] = []
    for table in range(1, num_steps + 1):
        program += [Fill("host", table), Copy("host", "device"), Kernel("device", table)]
    return program


def wait_for_copy(num_steps: int = 2) -> list[Operation]:
    """The same, and the host waits for the last copy before it writes. Right."""
    program: list[Operation] = []
    for table in range(1, num_steps + 1):
        program += [HostWait("copied"), Fill("host", table)]  #: wait_first
        program += [Copy("host", "device"), Record("copied"), Kernel("device", table)]
    return program


def two_buffers(num_steps: int = 3, wait: bool = False) -> list[Operation]:
    """Two in turn. Wrong from the third step on; right with an event for each."""
    program: list[Operation] = []
    for table in range(1, num_steps + 1):
        host, copied = f"host {table % 2}", f"copied {table % 2}"
        program += [HostWait(copied)] * wait + [Fill(host, table), Copy(host, "device")]
        program += [Record(copied)] * wait + [Kernel("device", table)]
    return program


def pageable(num_steps: int = 2) -> list[Operation]:
    """A pageable buffer: when the call returns, it has been read. Right."""
    program: list[Operation] = []
    for table in range(1, num_steps + 1):
        program += [Fill("host", table), StagedCopy("host", "device"), Kernel("device", table)]
    return program


def copy_stream(num_steps: int = 2, ready: bool = True, free: bool = True) -> list[Operation]:
    """Copies on a stream of their own. Right with both waits, wrong without.

    ready: kernels wait for the copy. free: the copy waits for the kernel
    that still reads the device's buffer.
    """
    program: list[Operation] = []
    for table in range(1, num_steps + 1):
        program += [HostWait("copied"), Fill("host", table)]
        program += [StreamWait("read", "copies")] * free  #: wait_free
        program += [Copy("host", "device", "copies"), Record("copied", "copies")]
        program += [StreamWait("copied", "kernels")] * ready  #: wait_ready
        program += [Kernel("device", table, "kernels"), Record("read", "kernels")]
    return program
# endregion programs
