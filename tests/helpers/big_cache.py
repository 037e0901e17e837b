"""A call on a cache whose page offsets pass 2**31 elements. Run as a module, it is the child process of
tests/kernels/test_int32_overflow.py: a kernel that computes offsets in int32 dies of it."""

import mmap
import sys

import torch

from kernels import paged_attention_reference
from tests.helpers.decoders import DECODERS
from tests.helpers.mode import DEVICE, ON_GPU

# 16 tokens x 8 KV heads x D = 128: a stride of 16384 elements, 2**31 / 16384 = 131072.
PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM = 16, 8, 128
PAGE_STRIDE = PAGE_SIZE * NUM_KV_HEADS * HEAD_DIM
FIRST_PAGE_OUT_OF_INT32 = 2**31 // PAGE_STRIDE
CACHE_BYTES = (FIRST_PAGE_OUT_OF_INT32 + 1) * PAGE_STRIDE * 2


def new_cache() -> torch.Tensor:
    """fp16 [131073, 16, 8, 128]: 4 GiB and a page. On the CPU only what is touched takes memory."""
    if ON_GPU:
        elements = torch.empty(CACHE_BYTES // 2, dtype=torch.float16, device=DEVICE)
    else:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        elements = torch.frombuffer(mmap.mmap(-1, CACHE_BYTES, flags=flags), dtype=torch.float16)
    return elements.view(-1, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM)


def check(name: str) -> None:
    """Decode from the last page that int32 reaches, and from the first that it does not."""
    last = FIRST_PAGE_OUT_OF_INT32
    rng = torch.Generator().manual_seed(0)
    cache = new_cache()  # K and V alike: one cache of 4 GiB is enough
    for page in (0, last - 1, last):
        cache[page] = torch.randn(cache.shape[1:], generator=rng).to(DEVICE, torch.float16)
    q = torch.randn(2, NUM_KV_HEADS, HEAD_DIM, generator=rng).to(DEVICE, torch.float16)
    table = torch.tensor([[last - 1, -1], [last, last - 1]], dtype=torch.int32, device=DEVICE)
    seq_lens = torch.tensor([16, 30], dtype=torch.int32, device=DEVICE)
    o = DECODERS[name](q, cache, cache, table, seq_lens)
    expected = paged_attention_reference(q, cache, cache, table, seq_lens)
    torch.testing.assert_close(o, expected, rtol=2e-3, atol=2e-3)


if __name__ == "__main__":
    check(sys.argv[1])
