"""The l1_table_to_device lesson: runs of the model of host and stream, and what replays would find."""

from kernels.l1_stream_model import (
    Copy,
    Fill,
    HostWait,
    Kernel,
    Operation,
    Record,
    Step,
    reuse_at_once,
    run,
    wait_for_copy,
)

BUSY, IDLE = ("host", "stream"), ("stream", "host")
TABLES = (1, 2, 3, 4)


def record() -> dict:
    """Three runs of two steps, and the tables that four replays find under each capture."""
    return {
        "runs": {
            "idle": steps_of(run(reuse_at_once(), IDLE)),
            "busy": steps_of(run(reuse_at_once(), BUSY)),
            "waits": steps_of(run(wait_for_copy(), BUSY)),
        },
        "replays": {
            "pinned": found(reuse_at_once(len(TABLES))),  # the copy is in the graph
            "clean": found(no_copy()),
            "static": found(wait_for_copy(len(TABLES))),  # the copy is in front of the graph
        },
    }


def no_copy() -> list[Operation]:
    """A graph that was captured while the table was clean, after one eager step with table 1."""
    program: list[Operation] = [Fill("host", 1), Copy("host", "device"), Record("copied")]
    for table in TABLES:
        program += [HostWait("copied"), Fill("host", table), Kernel("device", table)]
    return program


def steps_of(steps: list[Step]) -> list[dict]:
    """The steps of a run as plain data."""
    return [
        {"who": step.who, "kind": type(step.operation).__name__, "table": step.table}
        | ({"wanted": step.operation.wanted} if isinstance(step.operation, Kernel) else {})
        for step in steps
    ]


def found(program: list[Operation]) -> list[int]:
    """The table that each kernel found, on a busy GPU."""
    return [step.table for step in run(program, BUSY) if step.is_read]
