"""The decode kernels as torch custom ops, so that torch.compile keeps them whole.

Only this module registers ops. A schema cannot return one tensor or two, so each op always returns
(o, lse). Lessons: l2_paged_decode, l3_split_kv_decode.
"""

import torch

from kernels.l2_paged_decode import paged_decode
from kernels.l3_split_kv_decode import split_kv_decode


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


@paged_decode_op.register_fake
@split_kv_decode_op.register_fake
def _fake(q, k_cache, v_cache, block_table, seq_lens, *options):
    """Shapes and dtypes alone: what torch.compile traces with."""
    return q.new_empty(q.shape), q.new_empty(q.shape[:2], dtype=torch.float32)
