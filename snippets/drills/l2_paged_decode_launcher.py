"""Paged decode attention with GQA: one query token a sequence, keys and values in pages.

Lesson: l2_paged_decode. Reference: paged_attention_reference.
Source: own; the ideas are GQA (arXiv:2305.13245) and PagedAttention (arXiv:2309.06180).
"""

import triton
import triton.language as tl

from kernels.checks import PagedInputs, check_lesson_inputs
from kernels.launch import Launch, choose_launch, input_arguments, new_outputs


# TODO: The kernel, with grid (B, Hkv): a program owns the rows of o and lse that share its KV head.
#   Call its pointers o_ptr, lse_ptr, q_ptr, k_ptr, v_ptr, block_table_ptr and seq_lens_ptr:
#   the tests look accesses up by these names.


def paged_decode(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False
):
    """Decode attention, one program per (sequence, KV head): keys and values are read once a group.

    Args:
        q: [B, Hq, D] fp16, bf16 (GPU only) or fp32; D a power of two from 16 to 256.
        k_cache, v_cache: [num_pages, page_size, Hkv, D] ("NHD") or [num_pages, Hkv, page_size, D]
            ("HND"), q's dtype, any strides with a contiguous last dim; page_size a power of two
            from 16 to 128; Hq / Hkv from 1 to 64.
        block_table: [B, max_pages] int32; entries past a sequence's last page are never read.
        seq_lens: [B] int32, 0 allowed.
        sm_scale: factor on q . k; None means 1 / sqrt(D).
        return_lse: also return the log-sum-exp of the scaled scores.

    Returns:
        o [B, Hq, D] in q's dtype, or (o, lse): lse [B, Hq] fp32, natural log. An empty sequence
        gives 0 and -inf.

    Raises:
        ValueError, TypeError: before any launch, naming the argument.
    """
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)
    # TODO: Allocate o in q's dtype and lse in fp32, launch, return o, or (o, lse) if return_lse.
    #   `inputs` has the sizes, block_g (rows of the tile), and both caches as NHD views, whatever
    #   the layout: hand the kernel strides. choose_launch, new_outputs and input_arguments help.
