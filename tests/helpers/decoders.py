"""The decoders, by name: one call, one contract; fast_decode takes more than the lesson kernels."""

from functools import partial

from kernels import (
    DecodePlan,
    fast_decode,
    naive_paged_decode,
    paged_decode,
    split_kv_decode,
    split_kv_decode_unnormalized,
)

# Three splits: more than one sequence of the listed lengths has pages for.
LESSON_DECODERS = {
    "naive": naive_paged_decode,
    "packed": paged_decode,
    "split": partial(split_kv_decode, num_splits=3),
    "unnormalized": partial(split_kv_decode_unnormalized, num_splits=3),
}
DECODERS = LESSON_DECODERS | {"fast": partial(fast_decode, plan=DecodePlan(3))}
L2_DECODERS = {name: DECODERS[name] for name in ("naive", "packed")}
L3_DECODERS = {name: DECODERS[name] for name in ("split", "unnormalized")}

# What each writes, by the names of the kernels' parameters.
OUTPUTS = {
    "naive": ("o_ptr", "lse_ptr"),
    "packed": ("o_ptr", "lse_ptr"),
    "split": ("o_ptr", "lse_ptr", "o_partial_ptr", "lse_partial_ptr"),
    "unnormalized": ("o_ptr", "lse_ptr", "o_partial_ptr", "lse_partial_ptr", "l_partial_ptr"),
}
