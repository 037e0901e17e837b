"""The specification: what every decode kernel here must compute, in PyTorch and float64.

Lesson: all of them. Source: own, from the definition of softmax attention.
"""

import math

import torch


# region reference
def paged_attention_reference(
    q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD", return_lse=False
):
    """Attention of one query token a sequence over that sequence's pages, one sequence at a time.

    Args:
        q: [B, Hq, D].
        k_cache, v_cache: [num_pages, page_size, Hkv, D] ("NHD"), or [num_pages, Hkv, page_size, D]
            ("HND").
        block_table: [B, max_pages] int32, logical page -> physical page.
        seq_lens: [B] int32, tokens of each sequence that are in the cache; 0 is allowed.
        sm_scale: factor on q . k; None means 1 / sqrt(D).
        return_lse: also return the log-sum-exp of the scaled scores, natural log.

    Returns:
        o [B, Hq, D] in q's dtype, or (o, lse [B, Hq] fp32). All arithmetic is float64; give float64
        inputs to get the result unrounded (lse is float64 then, too). An empty sequence gives o = 0
        and lse = -inf.
    """
    if kv_layout == "HND":
        k_cache, v_cache = k_cache.transpose(1, 2), v_cache.transpose(1, 2)
    batch_size, num_qo_heads, head_dim = q.shape
    page_size, num_kv_heads = k_cache.shape[1:3]
    group_size = num_qo_heads // num_kv_heads
    sm_scale = 1.0 / math.sqrt(head_dim) if sm_scale is None else sm_scale

    o = torch.zeros(batch_size, num_qo_heads, head_dim, dtype=torch.float64, device=q.device)
    lse = torch.full((batch_size, num_qo_heads), -math.inf, dtype=torch.float64, device=q.device)
    for b, seq_len in enumerate(seq_lens.tolist()):
        if seq_len == 0:
            continue
        num_pages = -(-seq_len // page_size)
        pages = block_table[b, :num_pages].long()
        # [num_pages, page_size, Hkv, D] -> [seq_len, Hq, D]: head h reads KV head h // group_size
        k, v = (
            cache[pages].flatten(0, 1)[:seq_len].double().repeat_interleave(group_size, dim=1)
            for cache in (k_cache, v_cache)
        )
        scores = torch.einsum("hd,nhd->hn", q[b].double(), k) * sm_scale
        lse[b] = torch.logsumexp(scores, dim=-1)
        o[b] = torch.einsum("hn,nhd->hd", torch.softmax(scores, dim=-1), v)

    o = o.to(q.dtype)
    lse = lse if q.dtype == torch.float64 else lse.float()
    return (o, lse) if return_lse else o
# endregion reference
