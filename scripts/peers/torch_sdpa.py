"""torch's scaled_dot_product_attention on contiguous keys and values: what decode costs without pages.

Each page set is copied out of its pages once, before anything is timed; the copies rotate as the sets do.
"""

from functools import partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from scripts.bench_inputs import PageSet, Pool, gather
from scripts.peers import Candidate, need


def version() -> str:
    """torch's."""
    return torch.__version__


def contiguous(pool: Pool, s: PageSet) -> list[torch.Tensor]:
    """Keys and values of one page set, each [B, Hkv, ctx, D]."""
    return [
        gather(cache, s.block_table.long()).flatten(1, 2)[:, : pool.shape.ctx].transpose(1, 2).contiguous()
        for cache in (pool.k_cache, pool.v_cache)
    ]


def sdpa(pool: Pool, backend: SDPBackend) -> list[Candidate]:
    """One backend, grouped heads passed as they are."""
    shape = pool.shape
    need(not shape.ragged, "SDPA takes no ragged batch of contiguous KV")
    need(not shape.is_fp8, "SDPA takes no 8-bit KV")
    copies = {}

    def launch(s: PageSet) -> torch.Tensor:
        k, v = copies.get(id(s)) or copies.setdefault(id(s), contiguous(pool, s))
        o = scaled_dot_product_attention(s.q.unsqueeze(2), k, v, enable_gqa=True)
        return o.squeeze(2)

    return [Candidate("contiguous KV", launch, None, context=partial(sdpa_kernel, backend))]


PEERS = {
    "sdpa_flash": partial(sdpa, backend=SDPBackend.FLASH_ATTENTION),
    "sdpa_cudnn": partial(sdpa, backend=SDPBackend.CUDNN_ATTENTION),
}
