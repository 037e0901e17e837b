"""The LSE merge of two splits, by the kernels: online_softmax for each, merge_states for both."""

from scripts.explorers.fields import FieldError, text_of
from scripts.figures._l3_merge import merge_example as draw
from scripts.traces import l3_split_kv_decode

__all__ = ["draw", "trace"]


def trace(values: dict) -> dict:
    n = len(values["scores"])
    if len(values["values"]) != n:
        raise FieldError("values", text_of(values["values"]), "as_many", n=n)
    if values["cut"] > n:
        raise FieldError("cut", values["cut"], "cut", n=n)
    return {"merge_example": l3_split_kv_decode.merge_example(**values)}
