"""Time every way of getting a block table to this GPU: for the host, and until the table is there."""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from kernels.l1_table_to_device import (
    Declaration,
    SharedMetadata,
    copy_on_stream,
    pageable_copy,
    pinned_copy,
    refill,
)
from scripts.timing import quantiles

SIZES = ((1, 64), (8, 256), (64, 2048), (256, 8192))  # B x max_pages, int32
BUSY_CYCLES = 4_000_000  # about 2 ms of another kernel in front
WARM_UP = 20  # calls of each way before the first that counts
DEVICE = torch.device("cuda")
METHOD = {
    "host_us": "us until the call of the copy returned, on an idle GPU",
    "ready_us": "us until the host knew that the table was on the device: it waited for an event behind it",
    "host_busy_us": "host_us with about 2 ms of another kernel in front on the stream",
    "copy_us": "us of the copy on the GPU: 20 in a row between two events",
    "check": "the device's table is compared with the host's after every way",
}


class Way(NamedTuple):
    """One way for one size: what the host writes, and the timed call, which returns the device's table."""

    host: torch.Tensor
    copy: Callable[[], torch.Tensor]
    before: Callable[[], object] = lambda: None  # not timed
    after: Callable[[], object] = lambda: None  # not timed
    writes: bool = True  # the host writes a new table each time


def ways(shape: tuple[int, int]) -> dict[str, Way]:
    """Every way for a table of this shape."""
    pageable = torch.zeros(shape, dtype=torch.int32)
    pinned = torch.zeros(shape, dtype=torch.int32).pin_memory()
    static = torch.zeros(shape, dtype=torch.int32, device=DEVICE)
    copies = torch.cuda.Stream()
    shared, clean = (SharedMetadata(Declaration("table", shape), DEVICE) for _ in range(2))

    def from_pageable() -> torch.Tensor:
        refill(static, pageable)
        return static

    def in_place() -> torch.Tensor:
        refill(static, pinned)
        return static

    def on_stream() -> torch.Tensor:
        copy_on_stream(static, pinned, copies)
        return static

    def write() -> None:
        shared.host_acquire()
        shared.host_release()

    return {
        "pageable": Way(pageable, lambda: pageable_copy(pageable, DEVICE)),
        "pageable_async": Way(pageable, from_pageable),
        "pinned": Way(pinned, lambda: pinned_copy(pinned, DEVICE)),
        "refill": Way(pinned, in_place),
        "stream": Way(pinned, on_stream),
        "interface": Way(shared.host, shared.device_acquire, write, shared.device_release),
        "interface_clean": Way(clean.host, clean.device_acquire, after=clean.device_release, writes=False),
    }


def measure(way: Way, repeats: int) -> dict:
    """{"host_us", "ready_us", "host_busy_us"}, each p20, p50, p80; raises where the table does not arrive."""
    arrived = torch.cuda.Event()
    figures: dict[str, list[float]] = {"host_us": [], "ready_us": [], "host_busy_us": []}
    for i in range(-WARM_UP, repeats):
        way.before()
        if way.writes:
            way.host.fill_(i)
        torch.cuda.synchronize()
        start = time.perf_counter()
        table = way.copy()
        returned = time.perf_counter()
        arrived.record()
        arrived.synchronize()
        ready = time.perf_counter()
        way.after()
        if i >= 0:
            figures["host_us"].append((returned - start) * 1e6)
            figures["ready_us"].append((ready - start) * 1e6)
    for i in range(-2, 9):
        way.before()
        torch.cuda.synchronize()
        torch.cuda._sleep(BUSY_CYCLES)
        start = time.perf_counter()
        table = way.copy()
        returned = time.perf_counter()
        way.after()
        if i >= 0:
            figures["host_busy_us"].append((returned - start) * 1e6)
    torch.cuda.synchronize()
    if not torch.equal(table.cpu(), way.host):
        raise AssertionError(f"the device has {table[0, 0]}; wanted {way.host[0, 0]}, as the host wrote")
    return {name: quantiles(values) for name, values in figures.items()}


def copy_us(shape: tuple[int, int], repeats: int = 7) -> dict[str, float]:
    """us of one copy from pinned memory on the GPU."""
    pinned = torch.zeros(shape, dtype=torch.int32).pin_memory()
    static = torch.zeros(shape, dtype=torch.int32, device=DEVICE)
    samples = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(BUSY_CYCLES)  # all copies are queued by the time it ends
        start.record()
        for _ in range(20):
            static.copy_(pinned, non_blocking=True)
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) * 1e3 / 20)
    return quantiles(samples)


def measure_copies(repeats: int, say: Callable[[str], None]) -> list[dict]:
    """One row a size and way."""
    rows = []
    for shape in SIZES:
        size = {"batch_size": shape[0], "max_pages": shape[1], "bytes": 4 * shape[0] * shape[1]}
        for name, way in ways(shape).items():
            row = {"way": name, **size, **measure(way, repeats)}
            if name == "refill":
                row["copy_us"] = copy_us(shape)
            rows.append(row)
            told = ", ".join(f"{what} {row[what]['p50']}" for what in ("host_us", "ready_us", "host_busy_us"))
            say(f"{shape[0]} x {shape[1]} {name}: {told}")
    return rows
