"""The rules of memory access that every decoder must keep, checked on its trace."""

from scripts.tracer import Trace, trace
from tests.helpers.cases import Case
from tests.helpers.poison import poisoned


def run_traced(decode, case: Case, **kwargs) -> Trace:
    """The trace of one call whose outputs and scratch start as NaN."""
    with poisoned(), trace() as t:
        decode(*case.args, **case.kwargs, return_lse=True, **kwargs)
    return t


def assert_clean(
    t: Trace, case: Case, outputs: tuple[str, ...], axis: int = 0, as_stored: bool = False
) -> None:
    """In bounds; own table entries alone; slots that hold tokens alone; outputs written exactly once.

    axis: of the grid, along which the sequences lie. as_stored: the kernel gets the caches as they are, not
    NHD views of them.
    """
    t.assert_in_bounds()
    t.assert_table_reads(case.block_table, case.seq_lens, case.page_size, axis)
    tokens = case.used.numpy()[:, :, None, None]
    if as_stored and case.kwargs["kv_layout"] == "HND":
        tokens = tokens.swapaxes(1, 2)
    t.assert_reads_within("k_ptr", tokens)
    t.assert_reads_within("v_ptr", tokens)
    for name in outputs:
        t.assert_written_once(name)
