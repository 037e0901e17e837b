"""Which SMs of a card have work: grids of the kernels' own launches, waves and tail."""

from kernels import choose_num_splits
from scripts.explorers.fields import FieldError
from scripts.figures._l3_sms import sm_grid as draw
from scripts.trace_examples import PAGE_SIZE
from scripts.traces import l3_split_kv_decode
from scripts.traces.l2_paged_decode import NUM_SMS

__all__ = ["draw", "trace"]

MOST_AN_SM = 99  # a cell of the figure holds two digits


def trace(values: dict) -> dict:
    batch_size, num_kv_heads, num_sms = values["batch_size"], values["num_kv_heads"], NUM_SMS[values["gpu"]]
    num_splits = values["num_splits"]
    field, others = "num_splits", batch_size * num_kv_heads
    if num_splits is None:
        num_splits = choose_num_splits(batch_size, num_kv_heads, values["ctx"], PAGE_SIZE, num_sms)
        field, others = "batch_size", num_kv_heads * num_splits
    programs, most = batch_size * num_kv_heads * num_splits, MOST_AN_SM * num_sms
    if programs > most:
        raise FieldError(field, values[field], "programs", most=most // others, programs=programs)
    return {"sm_grid": l3_split_kv_decode.sm_grid(**values)}
