"""FlashInfer: its paged decode on tensor cores and on CUDA cores, and XQA, NVIDIA's kernel that it carries.

The wrappers are planned once a page set, outside of what is timed, as a serving engine plans once a step
for all layers.
"""

import math

import torch

from scripts.bench_inputs import PageSet, Pool
from scripts.peers import Candidate, labelled, load, need

LAYOUTS = ("NHD", "HND")
WORKSPACE_BYTES = 2**28
SPLIT_TOKENS = (512, 1024, 2048)  # beside FlashInfer's own choice
XQA_PAGE_SIZES = (16, 32, 64, 128)
XQA_SEMAPHORE_BYTES = 2**23  # at the start of its workspace; zero before the first call


def version() -> str:
    """The installed version."""
    return load("flashinfer").__version__


def tensor_cores(pool: Pool) -> list[Candidate]:
    """BatchDecodeWithPagedKVCacheWrapper(use_tensor_cores=True), with its own splits and with fixed ones."""
    fixed = [n for n in SPLIT_TOKENS if pool.shape.page_size <= n < pool.shape.ctx]
    workspace = _workspace(pool)
    own = [_planned(pool, workspace, True, layout, pdl) for layout in LAYOUTS for pdl in (True, False)]
    return own + [_planned(pool, workspace, True, "NHD", True, tokens) for tokens in fixed]


def cuda_cores(pool: Pool) -> list[Candidate]:
    """BatchDecodeWithPagedKVCacheWrapper as it is by default."""
    workspace = _workspace(pool)
    return [_planned(pool, workspace, False, layout, pdl) for layout in LAYOUTS for pdl in (True, False)]


def xqa(pool: Pool) -> list[Candidate]:
    """xqa_batch_decode_with_kv_cache: no plan, one launch."""
    decode, shape = load("flashinfer.decode"), pool.shape
    need(hasattr(decode, "xqa_batch_decode_with_kv_cache"), "this FlashInfer has no XQA entry")
    need(shape.page_size in XQA_PAGE_SIZES, f"XQA takes pages of {XQA_PAGE_SIZES} tokens")
    workspace = torch.zeros(XQA_SEMAPHORE_BYTES + WORKSPACE_BYTES, dtype=torch.uint8, device=pool.flat.device)
    out = torch.empty_like(pool.sets[0].q)
    k_scale, v_scale = shape.scales

    def candidate(layout: str, pdl: bool) -> Candidate:
        caches = _caches(pool, layout)

        def launch(s: PageSet):
            return decode.xqa_batch_decode_with_kv_cache(
                s.q, caches, workspace, s.block_table, pool.seq_lens, shape.ctx,
                bmm1_scale=k_scale / math.sqrt(shape.head_dim), bmm2_scale=v_scale, out=out,
                kv_layout=layout, enable_pdl=pdl,
            )  # fmt: skip

        return Candidate(labelled(layout=layout, pdl=pdl), launch, out)

    return [candidate(layout, pdl) for layout in LAYOUTS for pdl in (True, False)]


PEERS = {"flashinfer_tc": tensor_cores, "flashinfer_cuda": cuda_cores, "flashinfer_xqa": xqa}


def _workspace(pool: Pool) -> torch.Tensor:
    """Scratch for partials; launches follow one another, so all wrappers may share it."""
    load("flashinfer")
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=pool.flat.device)


def _caches(pool: Pool, layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The pool's caches, or copies of them in the other layout."""
    return (pool.k_cache, pool.v_cache) if layout == "NHD" else pool.hnd_caches


def _planned(
    pool: Pool, workspace: torch.Tensor, tensor_cores: bool, layout: str, pdl: bool, fixed: int | None = None
) -> Candidate:
    """One setting of the wrapper; a page set's plan is made at its first launch, before any capture."""
    flashinfer, shape, caches = load("flashinfer"), pool.shape, _caches(pool, layout)
    out = torch.empty_like(pool.sets[0].q)
    counts = torch.tensor(shape.pages)
    indptr = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)]).int()
    last_page_len = torch.tensor([(n - 1) % shape.page_size + 1 for n in shape.lens], dtype=torch.int32)
    options = {"fixed_split_size": fixed // shape.page_size} if fixed else {}
    k_scale, v_scale = shape.scales if shape.is_fp8 else (None, None)
    wrappers = {}

    def plan(s: PageSet):
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            workspace, layout, use_tensor_cores=tensor_cores
        )
        wrapper.plan(
            indptr, s.pages, last_page_len, shape.num_qo_heads, shape.num_kv_heads, shape.head_dim,
            shape.page_size, q_data_type=shape.dtype, kv_data_type=shape.cache_dtype, **options,
        )  # fmt: skip
        return wrapper

    def launch(s: PageSet):
        wrapper = wrappers.get(id(s)) or wrappers.setdefault(id(s), plan(s))
        return wrapper.run(s.q, caches, out=out, enable_pdl=pdl, k_scale=k_scale, v_scale=v_scale)

    return Candidate(labelled(layout=layout, splits=fixed and f"of {fixed} tokens", pdl=pdl), launch, out)
