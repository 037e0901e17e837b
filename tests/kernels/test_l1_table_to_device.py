"""How a table reaches the device: the interface in eager mode, the race, what capture makes of it."""

import subprocess
import sys

import pytest
import torch

from kernels import l1_outcomes
from kernels.l1_table_to_device import (
    Declaration,
    SharedMetadata,
    copy_on_stream,
    pageable_copy,
    pinned_copy,
    refill,
)
from scripts.bench_transfer import PAGEABLE
from scripts.generated import ROOT
from tests.helpers.marks import gpu_only
from tests.helpers.mode import DEVICE, ON_GPU


def table_of(number: int, pinned: bool = ON_GPU) -> torch.Tensor:
    """A table [4, 8] on the host, all of it `number`."""
    table = torch.full((4, 8), number, dtype=torch.int32)
    return table.pin_memory() if pinned else table


def shared_table(**options) -> SharedMetadata:
    return SharedMetadata(Declaration("block_table", (4, 8)), DEVICE, **options)


def write(shared: SharedMetadata, number: int) -> None:
    shared.host_acquire().fill_(number)
    shared.host_release()


def read(shared: SharedMetadata) -> int:
    """What a kernel would find."""
    found = shared.device_acquire().clone()
    shared.device_release()
    assert found.min() == found.max()
    return int(found.min())


# The four ways


def test_every_way_brings_the_table():
    static = torch.zeros(4, 8, dtype=torch.int32, device=DEVICE)
    address = static.data_ptr()
    assert torch.equal(pageable_copy(table_of(1, pinned=False), DEVICE).cpu(), table_of(1))
    assert torch.equal(pinned_copy(table_of(2), DEVICE).cpu(), table_of(2))
    refill(static, table_of(3))
    assert torch.equal(static.cpu(), table_of(3)) and static.data_ptr() == address


@gpu_only
def test_a_copy_on_a_stream_of_its_own_is_behind_readers_and_before_them():
    """Long work on both sides: without either wait one of the two reads goes wrong."""
    static, copies = torch.zeros(4, 8, dtype=torch.int32, device=DEVICE), torch.cuda.Stream()
    found = torch.zeros(3, 4, 8, dtype=torch.int32, device=DEVICE)
    tables = [table_of(number) for number in (1, 2, 3)]
    for i, table in enumerate(tables):
        with torch.cuda.stream(copies):
            l1_outcomes.keep_busy()
        copied = copy_on_stream(static, table, copies)
        l1_outcomes.keep_busy()
        found[i].copy_(static)
    assert found.cpu().flatten(1).tolist() == [[n] * 32 for n in (1, 2, 3)]
    copied.synchronize()
    assert torch.equal(tables[-1], table_of(3))


# The interface


def test_the_device_reads_what_the_host_wrote():
    shared = shared_table()
    for number in (5, 6, 7):
        write(shared, number)
        assert read(shared) == number


def test_only_a_dirty_table_is_copied():
    shared = shared_table()
    write(shared, 1)
    assert shared.dirty and read(shared) == 1 and not shared.dirty
    shared.device.fill_(42)  # a copy would undo it
    assert read(shared) == 42
    shared.host_acquire()
    shared.host_release(changed=False)
    assert read(shared) == 42
    shared.host_acquire()
    shared.host_release()
    assert read(shared) == 1


def test_it_starts_dirty_so_that_nobody_reads_what_was_in_memory():
    shared = shared_table()
    shared.device.fill_(42)
    assert read(shared) == 0


def test_a_tensor_of_the_backend_is_filled_in_place():
    backend = torch.full((4, 8), 42, dtype=torch.int32, device=DEVICE)
    shared = SharedMetadata(Declaration("block_table", (4, 8), tensor=backend), DEVICE)
    write(shared, 3)
    assert read(shared) == 3 and shared.device is backend and int(backend[3, 7]) == 3


@pytest.mark.parametrize(
    ("shape", "dtype", "device"),
    [((4, 9), torch.int32, DEVICE), ((4, 8), torch.float32, DEVICE), ((4, 8), torch.int32, "meta")],
    ids=["shape", "dtype", "device"],
)
def test_a_tensor_that_is_not_as_declared_is_refused(shape, dtype, device):
    tensor = torch.zeros(shape, dtype=dtype, device=device)
    with pytest.raises(ValueError, match=r"^block_table is \w+ \[4, \d\] on .*; wanted int32 \[4, 8\] on "):
        SharedMetadata(Declaration("block_table", (4, 8), tensor=tensor), DEVICE)


def test_one_holder_at_a_time():
    shared = shared_table()
    shared.host_acquire()
    with pytest.raises(RuntimeError, match=r"held by the host; wanted a release before the device acquires"):
        shared.device_acquire()
    with pytest.raises(RuntimeError, match=r"held by the host; wanted it acquired by the device"):
        shared.device_release()
    shared.host_release()
    with pytest.raises(RuntimeError, match=r"held by nobody; wanted it acquired by the host"):
        shared.host_release()


@gpu_only
def test_the_interface_is_right_on_a_busy_gpu():
    """The host runs ahead of the copies as far as it may, and waits where it must."""
    shared = SharedMetadata(l1_outcomes.declared(), DEVICE)
    reader = l1_outcomes.Reader()
    for table in range(1, 5):
        write(shared, table)
        l1_outcomes.keep_busy()
        reader.launch(shared.device_acquire())
        shared.device_release()
        reader.keep(table)
    assert [r.right for r in reader.reads()] == [True] * 4


# The race, on the GPU


@gpu_only
def test_a_pinned_buffer_that_is_reused_at_once_arrives_changed():
    reads = l1_outcomes.OUTCOMES["race"]()
    assert [r.wanted for r in reads] == [1, 2, 3, 4]
    assert [(r.least, r.most) for r in reads] == [(4, 4)] * 4


@gpu_only
def test_an_event_mends_it():
    assert all(r.right for r in l1_outcomes.OUTCOMES["race_waits"]())


# What a CUDA graph makes of it


@gpu_only
def test_a_pageable_copy_raises_inside_capture():
    """In a process of its own, as a failed capture may leave CUDA in any state."""
    done = subprocess.run(
        [sys.executable, "-c", PAGEABLE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "capture" in done.stdout, done.stdout


@gpu_only
def test_a_captured_pinned_copy_reads_the_host_buffer_at_each_replay():
    reads = l1_outcomes.OUTCOMES["pinned_in_capture"]()
    assert [(r.wanted, r.least, r.most) for r in reads] == [(n, 4, 4) for n in (1, 2, 3, 4)]


@gpu_only
def test_a_captured_pinned_copy_is_right_if_the_host_waits_for_each_replay():
    assert all(r.right for r in l1_outcomes.OUTCOMES["pinned_in_capture_waits"]())


@gpu_only
def test_a_clean_dirty_bit_captures_no_copy():
    reads = l1_outcomes.OUTCOMES["clean_in_capture"]()
    assert [(r.wanted, r.least, r.most) for r in reads] == [(n, 1, 1) for n in (1, 2, 3, 4)]


@gpu_only
def test_static_buffers_that_are_refilled_outside_the_graph_work():
    reads = l1_outcomes.OUTCOMES["static_buffer"]()
    assert [(r.wanted, r.least, r.most) for r in reads] == [(n, n, n) for n in (1, 2, 3, 4)]
