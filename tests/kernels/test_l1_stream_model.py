"""The model of host, streams and events: its rules, and what every interleaving of the examples gives."""

import math

import pytest

from kernels.l1_stream_model import (
    Copy,
    Fill,
    HostWait,
    Kernel,
    Machine,
    Record,
    StreamWait,
    copy_stream,
    is_right,
    outcomes,
    pageable,
    reuse_at_once,
    run,
    two_buffers,
    wait_for_copy,
)

BUSY, IDLE = ("host", "stream"), ("stream", "host")


def found(steps) -> list[int]:
    """The table that each kernel found."""
    return [step.table for step in steps if step.is_read]


def counts(program) -> tuple[int, int]:
    """(interleavings, wrong ones)."""
    all_of_them = outcomes(program)
    wrong = sum(count for outcome, count in all_of_them.items() if not is_right(outcome))
    return sum(all_of_them.values()), wrong


# The rules


def test_a_copy_reads_its_source_when_the_stream_gets_there():
    program = [Fill("h", 1), Copy("h", "d"), Fill("h", 2), Kernel("d", 1)]
    assert found(run(program, BUSY)) == [2] and found(run(program, IDLE)) == [1]


def test_a_stream_keeps_its_order_and_two_streams_have_none():
    one = [Fill("h", 1), Copy("h", "d"), Kernel("d", 1)]
    two = [Fill("h", 1), Copy("h", "d", "a"), Kernel("d", 1, "b")]
    assert dict(outcomes(one)) == {((1, 1),): 2}
    # The copy may run between the two calls or after them, the kernel before it or after.
    assert dict(outcomes(two)) == {((1, 1),): 2, ((1, 0),): 1}


def test_a_wait_is_for_the_last_record_before_it_and_for_none_if_there_is_none():
    machine = Machine(
        [HostWait("e"), Record("e", "a"), StreamWait("e", "b"), Record("e", "a"), HostWait("e")]
    )
    for _ in range(4):
        machine.advance("host")
    assert machine.choices() == ["a"]  # the host waits for the second record, stream b for the first
    machine.advance("a")
    assert machine.choices() == ["a", "b"]
    machine.advance("a")
    assert machine.choices() == ["host", "b"]


def test_a_stream_that_waits_for_a_later_record_goes_on():
    """As in CUDA: a wait for an event that was never recorded is no wait."""
    assert counts([StreamWait("e", "a"), Record("e", "b")])[1] == 0


def test_outcomes_count_every_interleaving():
    """n host steps, none of which blocks, and one operation that may run at any time after its call."""
    program = [Copy("h", "d"), *[Fill("x", i) for i in range(6)]]
    assert sum(outcomes(program).values()) == 7
    independent = [Kernel("x", 0, stream) for stream in "abc"]
    # All orders of three calls in a row and three kernels, each after its call: 6! / 2^3 / 3! = 15.
    assert sum(outcomes(independent).values()) == math.factorial(6) // 8 // 6


# The examples


def test_reusing_a_pinned_buffer_at_once_is_a_race():
    assert counts(reuse_at_once()) == (23, 9)
    assert found(run(reuse_at_once(), IDLE)) == [1, 2]
    assert found(run(reuse_at_once(), BUSY)) == [2, 2]
    assert found(run(reuse_at_once(4), BUSY)) == [4, 4, 4, 4]


@pytest.mark.parametrize("num_steps", [1, 2, 3, 5])
def test_waiting_for_the_copy_mends_it_in_every_interleaving(num_steps):
    assert counts(wait_for_copy(num_steps))[1] == 0


def test_two_buffers_put_the_race_off():
    assert counts(two_buffers(2)) == (23, 0)
    assert counts(two_buffers(3)) == (377, 20)
    assert counts(two_buffers(3, wait=True)) == (35895, 0)


def test_pageable_memory_has_no_race():
    assert counts(pageable(2)) == (23, 0) and counts(pageable(4))[1] == 0


def test_a_stream_of_its_own_needs_both_waits():
    assert counts(copy_stream(2)) == (403128, 0)
    assert counts(copy_stream(3)) == (1294607292, 0)
    too_early = outcomes(copy_stream(2, ready=False))
    assert ((1, 0), (2, 1)) in too_early  # each kernel may read the table before its own
    overwritten = outcomes(copy_stream(2, free=False))
    assert set(overwritten) == {((1, 1), (2, 2)), ((1, 2), (2, 2))}
    assert counts(copy_stream(2, ready=False)) == (143780, 72577)
    assert counts(copy_stream(2, free=False)) == (134008, 48706)
