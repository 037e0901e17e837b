"""The decode kernels as torch custom ops, so that torch.compile keeps them whole.

Only this module registers ops. A schema cannot return one tensor or two, so each op always returns
(o, lse). Lessons: l2_paged_decode, l3_split_kv_decode, l7_fast_decode.
"""

import torch

from kernels.l2_paged_decode import paged_decode
from kernels.l3_split_kv_decode import split_kv_decode
from kernels.l7_fast_decode import fast_decode
from kernels.l7_plan import DecodePlan


@torch.library.custom_op("decode_attention::paged_decode", mutates_args=())
def paged_decode_op(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float | None = None,
    kv_layout: str = "NHD",
) -> tuple[torch.Tensor, torch.Tensor]:
    """`paged_decode` with return_lse=True."""
    return paged_decode(
        q, k_cache, v_cache, block_table, seq_lens,
        sm_scale=sm_scale, kv_layout=kv_layout, return_lse=True,
    )


@torch.library.custom_op("decode_attention::split_kv_decode", mutates_args=())
def split_kv_decode_op(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float | None = None,
    kv_layout: str = "NHD",
    num_splits: int | None = None,
    max_seq_len: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`split_kv_decode` with return_lse=True."""
    return split_kv_decode(
        q, k_cache, v_cache, block_table, seq_lens,
        sm_scale=sm_scale, kv_layout=kv_layout, return_lse=True,
        num_splits=num_splits, max_seq_len=max_seq_len,
    )


@torch.library.custom_op("decode_attention::fast_decode", mutates_args=())
def fast_decode_op(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float | None = None,
    kv_layout: str = "NHD",
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    num_splits: int | None = None,
    work: torch.Tensor | None = None,
    slots: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`fast_decode` with return_lse=True; the last three are the fields of its plan."""
    return fast_decode(
        q, k_cache, v_cache, block_table, seq_lens,
        sm_scale=sm_scale, kv_layout=kv_layout, return_lse=True, k_scale=k_scale, v_scale=v_scale,
        plan=None if num_splits is None else DecodePlan(num_splits, work, slots),
    )


@paged_decode_op.register_fake
@split_kv_decode_op.register_fake
@fast_decode_op.register_fake
def _fake(q, k_cache, v_cache, block_table, seq_lens, *options):
    """Shapes and dtypes alone: what torch.compile traces with."""
    return q.new_empty(q.shape), q.new_empty(q.shape[:2], dtype=torch.float32)
