"""FlashAttention's decode over a paged cache: version 3 where it is installed, else version 2."""

import importlib.metadata
import importlib.util

import torch

from scripts.bench_inputs import Pool
from scripts.peers import Candidate, labelled, load, need

FA2_PAGE = 256  # its pages are multiples of this
SPLITS = (0, 1, 2, 4, 8, 16, 32)  # 0: its own choice
# module, distribution
INTERFACES = {
    "flash_attn_interface": "flash_attn_3", "fa3_fwd_interface": "fa3_fwd", "flash_attn": "flash_attn",
}  # fmt: skip


def interface() -> str:
    """The name of the module to use; raises Missing where there is none."""
    found = [name for name in INTERFACES if importlib.util.find_spec(name)]
    need(bool(found), "neither flash_attn nor a FlashAttention-3 interface is installed")
    return found[0]


def version() -> str:
    """The installed version."""
    name = interface()
    try:
        return f"{INTERFACES[name]} {importlib.metadata.version(INTERFACES[name])}"
    except importlib.metadata.PackageNotFoundError:
        return f"{name}, version unknown"


def paged(pool: Pool) -> list[Candidate]:
    """flash_attn_with_kvcache with a block table."""
    shape, name = pool.shape, interface()
    need(not shape.is_fp8, "FlashAttention takes 8-bit KV only with 8-bit queries")
    if name == "flash_attn":
        need(
            shape.page_size % FA2_PAGE == 0, f"FlashAttention-2 takes pages that are multiples of {FA2_PAGE}"
        )
        table = "block_table"
    else:
        config = "fa3_fwd_config" if name == "fa3_fwd_interface" else "flash_attn_config"
        if importlib.util.find_spec(config):
            flags = load(config).CONFIG["build_flags"]
            need(not flags["FLASHATTENTION_DISABLE_PAGEDKV"], f"this build of {name} has no paged KV")
            fp16 = shape.dtype != torch.float16 or not flags["FLASHATTENTION_DISABLE_FP16"]
            need(fp16, f"this build of {name} has no fp16")
        table = "page_table"
    run = load(name).flash_attn_with_kvcache

    def candidate(splits: int) -> Candidate:
        def launch(s):
            o = run(
                s.q.unsqueeze(1), pool.k_cache, pool.v_cache, cache_seqlens=pool.seq_lens,
                num_splits=splits, **{table: s.block_table},
            )  # fmt: skip
            return (o[0] if isinstance(o, tuple) else o).squeeze(1)

        return Candidate(labelled(splits=splits or "its own"), launch, None)

    return [candidate(splits) for splits in SPLITS]


PEERS = {"flash_attention_paged": paged}
