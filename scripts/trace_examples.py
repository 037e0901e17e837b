"""The worked examples of the lessons, and what to ask of their traces.

Keys, values and queries are small fractions, made without a random generator: the same everywhere.
"""

from collections.abc import Iterable

import torch
import triton
import triton.language as tl

from kernels import online_softmax, paged_decode
from kernels.online_softmax import online_softmax_step
from scripts import ties
from scripts.tracer import Access, trace

PAGE_SIZE, HEAD_DIM = 16, 16
SCORES, VALUES = [1.0, 2.0, 3.0, 0.0], [10.0, 20.0, 30.0, 40.0]


@triton.jit
def _states_kernel(
    m_ptr, l_ptr, acc_ptr,  # [blocks] fp32, out: the state after each block
    scores_ptr, values_ptr,  # [N] fp32, in; head dim 1
    num_scores,  # N, a multiple of BLOCK_N
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The walk of `_online_softmax_kernel`, with its state stored after each block."""
    offs_d = tl.arange(0, 1)
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros([1], tl.float32)
    for start_n in range(0, num_scores, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        scores = tl.load(scores_ptr + offs_n)
        values = tl.load(values_ptr + offs_n[:, None] + offs_d[None, :])
        m_i, l_i, acc = online_softmax_step(m_i, l_i, acc, scores, values)
        block = start_n // BLOCK_N
        tl.store(m_ptr + block, m_i)
        tl.store(l_ptr + block, l_i)
        tl.store(acc_ptr + block + offs_d, acc)


def states(scores: list[float], values: list[float], block_size: int) -> list[dict]:
    """The state (m, l, acc) of the kernels' own step after each block of scores."""
    m, l_sum, acc = (torch.empty(len(scores) // block_size) for _ in range(3))
    _states_kernel[(1,)](
        m, l_sum, acc, torch.tensor(scores), torch.tensor(values), len(scores), BLOCK_N=block_size
    )
    rows = zip(m.tolist(), l_sum.tolist(), acc.tolist(), strict=True)
    return [
        {"m": rounded(m_i), "l": rounded(l_i), "acc": rounded(acc_i, 3), "o": rounded(acc_i / (l_i or 1), 3)}
        for m_i, l_i, acc_i in rows
    ]


def softmax_of(scores: list[float], values: list[float]) -> dict:
    """(o, lse) of the online_softmax kernel."""
    return shown(*softmax(scores, values))


def softmax(scores: list[float], values: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """(o [1], lse []) of the online_softmax kernel; of nothing at all (0, -inf)."""
    rows = torch.tensor(values, dtype=torch.float32)[:, None]
    return online_softmax(torch.tensor(scores, dtype=torch.float32), rows, return_lse=True)


def shown(o: torch.Tensor, lse: torch.Tensor) -> dict:
    return {"o": rounded(o.item(), 3), "lse": rounded(lse.item())}


def rounded(value: float, decimals: int = 4) -> float | str:
    """A number to that many decimals; -inf as text, since JSON has no infinity.

    The last bits of a float32 differ from CPU to CPU: a value that they could round either way is refused.
    """
    if value == -float("inf"):
        return "-inf"
    doubt = 4 * torch.finfo(torch.float32).eps * max(1.0, abs(value))
    if ties.refused() and abs(value * 10**decimals % 1 - 0.5) < doubt * 10**decimals:
        raise ValueError(f"{value} is halfway between numbers of {decimals} decimals; wanted another example")
    return round(value, decimals)


def paged_example(
    ctx: int, num_qo_heads: int, num_kv_heads: int, table: list[int] | None = None,
    page_size: int = PAGE_SIZE,
) -> tuple:  # fmt: skip
    """One sequence of ctx tokens in fp32, D = 16, as the decode functions take it; unused slots are NaN."""
    pages = -(-ctx // page_size)
    table = list(range(pages)) if table is None else table
    shape = (num_pages(table), page_size, num_kv_heads, HEAD_DIM)
    k_cache, v_cache = fractions(shape, 37), fractions(shape, 53)
    for cache in (k_cache, v_cache):
        used = torch.zeros(shape[:2], dtype=torch.bool)
        for t in range(ctx):
            used[table[t // page_size], t % page_size] = True
        cache[~used] = float("nan")
    q = fractions((1, num_qo_heads, HEAD_DIM), 11) * 2.25
    return q, k_cache, v_cache, int32([table]), int32([ctx])


def int32(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def num_pages(table: list[int]) -> int:
    """Pages of an example's cache: the table's, and some that are nobody's."""
    return max(table, default=-1) + 3


def fractions(shape: tuple[int, ...], step: int) -> torch.Tensor:
    """Multiples of 1/16 from -1.5 to 1.5 in a scattered order."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * step % 49 - 24) / 16).reshape(shape)


def coordinates(accesses: Iterable[Access], program: tuple[int, int, int] | None = None) -> list[list[int]]:
    """For each axis of the accessed tensor, the sorted coordinates that one program (or all) touched."""
    mine = [access.coordinates for access in accesses if program in (None, access.program)]
    axes = zip(*mine, strict=True)
    return [sorted({int(i) for lanes in axis for i in lanes}) for axis in axes]


def page_slots(accesses: Iterable[Access], program: tuple[int, int, int]) -> dict[int, list[int]]:
    """Physical page of an NHD cache -> the slots of it that one program read."""
    slots: dict[int, set[int]] = {}
    for access in accesses:
        if access.program == program:
            for page, slot in zip(*access.coordinates[:2], strict=True):
                slots.setdefault(int(page), set()).add(int(slot))
    return {page: sorted(found) for page, found in slots.items()}


def bench_shape(ctx_now: int) -> tuple:
    """The tensors of 1 x 32768 (fp16, Hq = 32, Hkv = 8, D = 128), of which ctx_now tokens are there.

    Shapes and grids are those of the full length: neither depends on ctx_now.
    """
    pages = 32768 // PAGE_SIZE
    caches = (torch.zeros(pages, PAGE_SIZE, 8, 128, dtype=torch.float16) for _ in range(2))
    table = torch.arange(pages, dtype=torch.int32)[None]
    return torch.zeros(1, 32, 128, dtype=torch.float16), *caches, table, int32([ctx_now])


def launch_grid() -> list[int]:
    """The grid of paged_decode at 1 x 32768."""
    with trace() as t:
        paged_decode(*bench_shape(1))
    return t.launches[0].grid[:2]
