"""A made-up record of L7's bench: every field that the tables and charts read, figures of no card."""

from scripts.records import slug_of

SHAPES = ((1, 32768), (8, 4096), (64, 1024), (1, 131072), (16, 8192), (1, 1024), (1, 4096))
# variant: (kind, its time as a multiple of fast_decode's)
VARIANTS = {
    "fast_decode": ("ours", 1.0), "fast_decode_no_pdl": ("ours", 1.03), "split_kv_decode": ("ours", 1.06),
    "paged_decode": ("ours", 4.0), "flashinfer_tc": ("peer", 1.14), "flashinfer_xqa": ("peer", 1.2),
    "vllm_decode": ("peer", 1.4), "vllm_unified": ("peer", 2.0), "sdpa_cudnn": ("peer", 1.02),
}  # fmt: skip
# (variant, kept, us at 1 x 32768, predicted)
RUNGS = (
    ("naive", True, 4500.0, 4400.0), ("packed", True, 1100.0, 1150.0), ("split", True, 38.8, 36.0),
    ("exp2", True, 38.0, 37.5), ("tma", False, 39.5, 36.5), ("prefetch", True, 37.4, None),
)  # fmt: skip


def kv_bytes(batch_size: int, ctx: int, num_kv_heads: int = 8, item: int = 2) -> int:
    return 2 * batch_size * ctx * num_kv_heads * 128 * item


def row(variant: str, batch_size: int, ctx: int, us: float, kind: str = "ours", **more) -> dict:
    """One row; `more` replaces fields."""
    size = more.get("kv_bytes", kv_bytes(batch_size, ctx))
    gbps = size / us / 1e3
    return {
        "variant": variant, "kind": kind, "batch_size": batch_size, "ctx": ctx, "num_qo_heads": 32,
        "num_kv_heads": 8, "head_dim": 128, "page_size": 16, "dtype": "float16", "kv_dtype": "float16",
        "contiguous": variant.startswith("sdpa"), "setting": "4 splits", "kv_bytes": size,
        "latency_us": {"p20": us * 0.98, "p50": us, "p80": us * 1.03}, "eager_us": {"p50": us + 40},
        "host_us": {"p50": 22.0}, "bandwidth_gbps": gbps, "share_of_read_ceiling": gbps / 4400,
        "share_of_paged_read": gbps / 4100, "relative_error": 3e-4, "max_abs_error": 1e-5, **more,
    }  # fmt: skip


def ceiling(batch_size: int, ctx: int, size: int = 0) -> dict:
    """The reads of a shape; `size`: its kv_bytes where they do not follow from it."""
    size = size or kv_bytes(batch_size, ctx)
    reads = {
        kind: {
            f"{kind}_us": {"p20": size / gbps / 1e3, "p50": size / gbps / 1e3, "p80": size / gbps / 1e3},
            f"{kind}_gbps": gbps,
            f"{kind}_config": "264 programs",
        }
        for kind, gbps in (("read", 4400.0), ("paged_read", 4100.0))
    }
    shape = {"batch_size": batch_size, "ctx": ctx, "page_size": 16, "kv_bytes": size}
    return {**shape, **reads["read"], **reads["paged_read"]}


def l7_record(**more) -> dict:
    """The whole record; `more` replaces its fields."""
    rows = []

    def add_case(batch_size: int, ctx: int, us: float, **fields) -> None:
        for variant, (kind, times) in VARIANTS.items():
            rows.append(row(variant, batch_size, ctx, us * times, kind, **fields))

    for batch_size, ctx in SHAPES:
        add_case(batch_size, ctx, 4 + kv_bytes(batch_size, ctx) / 4000e3)
    ragged = {"ragged": True, "kv_bytes": kv_bytes(1, 157_000)}
    add_case(64, 16384, 162.0, **ragged)
    add_case(8, 4096, 37.0, dtype="bfloat16", kv_dtype="bfloat16")
    add_case(8, 4096, 38.0, num_qo_heads=64)
    add_case(16, 8192, 129.0, page_size=64)
    add_case(64, 1024, 39.6, kv_dtype="float8_e4m3fn", kv_bytes=kv_bytes(64, 1024, item=1))
    for order, (variant, kept, us, predicted) in enumerate(RUNGS):
        for scale, (batch_size, ctx) in zip((1.0, 0.98, 1.8), SHAPES, strict=False):
            prediction = {"prediction": {"us": predicted * scale}} if predicted else {}
            about = {"rung": order, "kept": kept, **prediction}
            rows.append(row(variant, batch_size, ctx, us * scale, "rung", **about))
    ceilings = [*(ceiling(*shape) for shape in SHAPES), ceiling(64, 16384, ragged["kv_bytes"])]
    name = "NVIDIA H200"
    return {
        "schema": 1, "kind": "measured", "lesson": "l7_fast_decode",
        "gpu": {"name": name, "slug": slug_of(name), "num_sms": 132, "l2_bytes": 60 * 2**20,
                "memory_bytes": 10**11},
        "software": {"driver": "580", "cuda": "13.0", "torch": "2.11", "triton": "3.6", "python": "3.12",
                     "peers": {"flashinfer": "0.6.13", "vllm": "missing: vllm is not installed"}},
        "date": "2026-01-02", "command": "python scripts/bench.py", "code_hash": {}, "quick": False,
        "problem": {"head_dim": 128, "block_table": "shuffled"},
        "rows": rows, "ceilings": ceilings,
        "missing": [{"variant": "flash_attention_paged", "missing": "flash_attn is not installed"}], **more,
    }  # fmt: skip
