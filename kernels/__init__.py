"""Decode attention in Triton, one idea a file; `reference` is what all the rest is held to."""

from kernels.l0_shapes import CacheSpec
from kernels.l1_paged_cache import OutOfPagesError, PagedKVCache, write_kv
from kernels.l2_paged_decode import naive_paged_decode, paged_decode
from kernels.l3_split_kv_decode import choose_num_splits, merge_states, split_kv_decode
from kernels.l3_unnormalized_partials import split_kv_decode_unnormalized
from kernels.l7_fast_decode import fast_decode
from kernels.l7_plan import DecodePlan, make_plan
from kernels.online_softmax import online_softmax
from kernels.reference import paged_attention_reference

__all__ = [
    "CacheSpec",
    "DecodePlan",
    "OutOfPagesError",
    "PagedKVCache",
    "choose_num_splits",
    "fast_decode",
    "make_plan",
    "merge_states",
    "naive_paged_decode",
    "online_softmax",
    "paged_attention_reference",
    "paged_decode",
    "split_kv_decode",
    "split_kv_decode_unnormalized",
    "write_kv",
]
