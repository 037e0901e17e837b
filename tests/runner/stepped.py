"""One small decode, recorded step by step: here, by the real interpreter, and by the page's stand-ins."""

import json
from functools import cache

import numpy as np

from tests.runner.helpers import in_page

PAGE_SIZE, HEAD_DIM, NUM_KV_HEADS, GROUP_SIZE = 16, 32, 2, 4
LENS = [40, 20, 0]
TABLE = [[7, 2, 9, -1], [4, 1, -1, -1], [-1, -1, -1, -1]]
# (kernel, program) -> the call that launches it
PROGRAMS = {
    ("_paged_decode_kernel", (0, 1, 0)): "paged_decode(*case, return_lse=True)",
    ("_paged_decode_kernel", (1, 0, 0)): "paged_decode(*case, return_lse=True)",
    ("_paged_decode_kernel", (2, 1, 0)): "paged_decode(*case, return_lse=True)",
    ("_naive_paged_decode_kernel", (0, 5, 0)): "naive_paged_decode(*case, return_lse=True)",
    ("_split_kernel", (0, 1, 1)): "split_kv_decode(*case, return_lse=True, num_splits=2)",
    ("_combine_kernel", (0, 5, 0)): "split_kv_decode(*case, return_lse=True, num_splits=2)",
}
# Runs here and in the page alike; leaves `result`: the steps, the page map, o and lse.
TEXT = """
import torch
from kernels.l2_paged_decode import naive_paged_decode, paged_decode
from kernels.l3_split_kv_decode import split_kv_decode
from scripts.runner.steps import Recorder

def numbers(shape, step):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * step % 4999 - 2500) / 1000).reshape(shape).to(torch.float32)

caches = [numbers((10, {page_size}, {num_kv_heads}, {head_dim}), step) for step in (37, 53)]
q = numbers(({batch_size}, {num_kv_heads} * {group_size}, {head_dim}), 11)
case = q, *caches, torch.tensor({table}, dtype=torch.int32), torch.tensor({lens}, dtype=torch.int32)
with Recorder({kernel!r}, {program}) as recorder:
    o, lse = {call}
result = [recorder.data(), o.tolist(), lse.tolist()]
"""


def text_of(kernel: str, program: tuple[int, int, int]) -> str:
    return TEXT.format(
        page_size=PAGE_SIZE, num_kv_heads=NUM_KV_HEADS, head_dim=HEAD_DIM, group_size=GROUP_SIZE,
        batch_size=len(LENS), table=TABLE, lens=LENS, kernel=kernel, program=program,
        call=PROGRAMS[kernel, program],
    )  # fmt: skip


@cache
def here(kernel: str, program: tuple[int, int, int]) -> list:
    """[steps, o, lse] by the real interpreter and torch; through JSON, as everything that the page gets."""
    names: dict = {}
    exec(text_of(kernel, program), names)
    return json.loads(json.dumps(names["result"]))


@cache
def all_in_page() -> dict[tuple, list]:
    """The same by the stand-ins, for all of PROGRAMS."""
    texts = [text_of(*key) for key in PROGRAMS]
    program = f"texts = {texts!r}\nfound = []\n"
    program += (
        "for text in texts:\n    names = {}\n    exec(text, names)\n    found.append(names['result'])\n"
    )
    return dict(zip(PROGRAMS, in_page(program + "result = found\n"), strict=True))


def numbers(shape: tuple[int, ...], step: int) -> np.ndarray:
    """The same numbers as TEXT's, without torch."""
    count = np.arange(np.prod(shape), dtype=np.int64)
    return ((count * step % 4999 - 2500).astype(np.float32) / np.float32(1000)).reshape(shape)
