"""A write into a cache whose offsets pass 2**31 elements. Run as a module, it is the child process of
tests/kernels/test_l1_paged_write.py: a kernel that computes offsets in int32 dies of it."""

import sys

import torch

from kernels.l1_write_kv import write_kv
from tests.helpers import big_cache
from tests.helpers.big_cache import FIRST_PAGE_OUT_OF_INT32, HEAD_DIM, NUM_KV_HEADS, PAGE_SIZE
from tests.helpers.mode import DEVICE


def check(kv_layout: str) -> None:
    """Write into the last page that int32 reaches, and into the first that it does not."""
    cache, last = big_cache.new_cache(), FIRST_PAGE_OUT_OF_INT32
    if kv_layout == "HND":  # as large; only the names of the two middle axes differ
        cache = cache.view(-1, NUM_KV_HEADS, PAGE_SIZE, HEAD_DIM)
    numbers = [last * PAGE_SIZE + 3, (last - 1) * PAGE_SIZE + 15, 0]
    slots = torch.tensor(numbers, dtype=torch.int32, device=DEVICE)  # int64 ones would hide the mistake
    k = torch.randn(3, NUM_KV_HEADS, HEAD_DIM, generator=torch.Generator().manual_seed(0))
    k = k.to(DEVICE, torch.float16)
    write_kv(k, None, cache, None, slots, kv_layout=kv_layout)
    nhd = cache if kv_layout == "NHD" else cache.transpose(1, 2)
    for new, slot in zip(k, slots.tolist(), strict=True):
        assert torch.equal(nhd[slot // PAGE_SIZE, slot % PAGE_SIZE], new), slot


if __name__ == "__main__":
    check(sys.argv[1])
