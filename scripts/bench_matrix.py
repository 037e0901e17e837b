"""The shapes at which L7's kernel meets its peers."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from scripts.bench_inputs import Shape

SIZES = (
    (1, 32768), (8, 4096), (64, 1024), (1, 131072), (16, 8192), (128, 2048), (256, 512),
    (1, 1024), (1, 4096), (4, 2048), (32, 256),
)  # fmt: skip
RAGGED = (64, 16384)  # sequences, tokens of the longest
HEADS = ((64, 8), (32, 32))  # query and KV heads, at 8x4096
PAGE_SIZES = (64, 128)  # at 16x8192
FP8 = ((8, 4096), (64, 1024))
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def matrix() -> list[Shape]:
    """Every shape, fp16 first: sizes, the ragged batch, heads, pages, 8-bit caches; then bf16."""
    plain = [Shape(b, n) for b, n in SIZES] + [Shape(*RAGGED, ragged=True)]
    found = [
        *plain,
        *(Shape(8, 4096, num_qo_heads=hq, num_kv_heads=hkv) for hq, hkv in HEADS),
        *(Shape(16, 8192, page) for page in PAGE_SIZES),
        *(Shape(b, n, kv_dtype=torch.float8_e4m3fn) for b, n in FP8),
    ]
    return found + [replace(shape, dtype=torch.bfloat16) for shape in plain]


def select(sizes: Sequence[tuple[int, int]] | None, dtypes: Sequence[str] | None) -> list[Shape]:
    """The shapes of these sizes and of queries in these dtypes; None: all. Sizes beyond the matrix: fp16."""
    found = [
        shape
        for shape in matrix()
        if (sizes is None or (shape.batch_size, shape.ctx) in sizes)
        and (dtypes is None or shape.dtype in [DTYPES[name] for name in dtypes])
    ]
    known = {(shape.batch_size, shape.ctx) for shape in matrix()}
    return found + [Shape(*size) for size in sizes or () if size not in known]
