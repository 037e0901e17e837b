"""What reading alone costs on this card: the two ceilings that a decode kernel is held against.

Pure read: as many bytes as the KV, in one piece. Paged read: the same pages through the same block tables,
added up and thrown away. Each is the best of a few configurations, timed as the kernels are, in the same run.
A ragged batch is read in chunks, longest first: to a read, a chunk is a sequence of its own. 8-bit caches are
read as 16-bit words: converting them is arithmetic.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.launch import num_sms
from scripts.bench_inputs import PageSet, Pool
from scripts.timing import LaunchGraph, interleaved_latency, quick_latency

# (programs an SM, elements a step, stages, warps)
PURE_READS = (
    (2, 8192, 3, 8),
    (4, 8192, 1, 8),
    (4, 16384, 3, 8),
    (8, 8192, 1, 4),
    (16, 8192, 1, 4),
    (16, 16384, 3, 8),
)
# The same, for less KV than SMALL_BYTES: a step of the above would leave much of it out.
SMALL_BYTES = 2**26
SMALL_READS = ((2, 512, 3, 4), (4, 512, 3, 4), (2, 1024, 3, 4), (4, 1024, 1, 4), (8, 256, 1, 2))
# (programs an SM, tokens a step, stages, warps)
PAGED_READS = tuple(
    (programs, *tile)
    for programs in (2, 3, 4)
    for tile in ((32, 3, 1), (64, 2, 2), (64, 3, 2), (64, 3, 4), (128, 2, 4), (128, 3, 4))
)
CHUNKS = (512, 1024, 2048)  # tokens of a chunk of a ragged batch
MOST_PER_WARP = 4096  # elements of a step that a warp holds twice, as loaded and summed; more would spill
SHORTLIST = 3  # configurations of each ceiling that are measured with the kernels, after a quick look at all


@triton.jit
def _read_kernel(
    sum_ptr,  # [programs] fp32, out; keeps the loads from being left out
    x_ptr,  # [programs * PER_PROGRAM], in
    per_program,  # elements of one program, a multiple of BLOCK
    BLOCK: tl.constexpr,  # elements a step, a power of two
    STAGES: tl.constexpr,  # depth of the pipeline
):
    """Grid (programs,): a program adds up its own contiguous piece."""
    pid = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, per_program, BLOCK, num_stages=STAGES):
        x = tl.load(x_ptr + pid * per_program + start + offs, eviction_policy="evict_first")
        total += x.to(tl.float32)
    tl.store(sum_ptr + pid, tl.sum(total, 0))


@triton.jit
def _paged_read_kernel(
    sum_ptr,  # [B, Hkv, splits] fp32, out
    k_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in
    v_ptr,  # [num_pages, PAGE_SIZE, Hkv, D], in
    block_table_ptr,  # [B, max_pages] int32, in
    seq_lens_ptr,  # [B] int32, in
    stride_page, stride_n, stride_h, stride_table_b,  # in elements; K and V have the same
    HEAD_DIM: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,  # tokens a step, a power of two and a multiple of PAGE_SIZE
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,  # every length is a multiple of BLOCK_N: no step needs a mask
):  # fmt: skip
    """Grid (B, Hkv, splits): a program adds up its share of one KV head of one sequence."""
    seq_id = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    seq_len = tl.load(seq_lens_ptr + seq_id)
    steps = tl.cdiv(seq_len, BLOCK_N)
    begin = steps * tl.program_id(2) // tl.num_programs(2) * BLOCK_N
    end = tl.minimum(steps * (tl.program_id(2) + 1) // tl.num_programs(2) * BLOCK_N, seq_len)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    table_ptr = block_table_ptr + seq_id * stride_table_b
    total = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    # A step begins at a page's edge, so the slots are the same in each.
    slot_offs = offs_n % PAGE_SIZE * stride_n + kv_head * stride_h
    table_ptr += offs_n // PAGE_SIZE
    # The next step's page ids are fetched one step ahead: the pipeline's stages are then all for K and V.
    next_ids = tl.load(table_ptr + begin // PAGE_SIZE, mask=begin + offs_n < end, other=0)
    for start in tl.range(begin, end, BLOCK_N, num_stages=STAGES):
        row = next_ids.to(tl.int64) * stride_page + slot_offs
        after = start + BLOCK_N
        next_ids = tl.load(table_ptr + after // PAGE_SIZE, mask=after + offs_n < end, other=0)
        if EVEN:
            k = tl.load(k_ptr + row[:, None] + offs_d[None, :])
            v = tl.load(v_ptr + row[:, None] + offs_d[None, :])
        else:
            mask = start + offs_n[:, None] < end
            k = tl.load(k_ptr + row[:, None] + offs_d[None, :], mask=mask, other=0.0)
            v = tl.load(v_ptr + row[:, None] + offs_d[None, :], mask=mask, other=0.0)
        total += k.to(tl.float32) + v.to(tl.float32)
    out = (seq_id * tl.num_programs(1) + kv_head) * tl.num_programs(2) + tl.program_id(2)
    tl.store(sum_ptr + out, tl.sum(tl.sum(total, 1), 0))


def read(sums: torch.Tensor, x: torch.Tensor, programs: int, block: int, stages: int, warps: int) -> int:
    """Launch the pure read of x [n]; returns the bytes read: x, less a rest too small for a step of all."""
    per_program = len(x) // programs // block * block
    if per_program:
        _read_kernel[(programs,)](sums, x, per_program, BLOCK=block, STAGES=stages, num_warps=warps)
    return per_program * programs * x.element_size()


@dataclass(frozen=True)
class Sequences:
    """What the paged read walks: a block table and lengths, of a batch or of the chunks of one."""

    block_table: torch.Tensor  # [sequences, pages] int32
    seq_lens: torch.Tensor  # [sequences] int32
    lens: tuple[int, ...]  # the same, known to the host


def chunked(pool: Pool, page_set: PageSet, chunk: int) -> Sequences:
    """The sequences cut into pieces of `chunk` tokens, a multiple of the page size, longest first."""
    page_size, lens = pool.shape.page_size, pool.shape.lens
    pieces = [(b, start, min(chunk, n - start)) for b, n in enumerate(lens) for start in range(0, n, chunk)]
    pieces.sort(key=lambda piece: -piece[2])
    rows = page_set.block_table.cpu()
    table = torch.zeros(len(pieces), -(-chunk // page_size), dtype=torch.int32)
    for i, (b, start, length) in enumerate(pieces):
        pages = -(-length // page_size)
        table[i, :pages] = rows[b, start // page_size :][:pages]
    lens = tuple(length for _, _, length in pieces)
    device = page_set.q.device
    return Sequences(table.to(device), torch.tensor(lens, dtype=torch.int32, device=device), lens)


def paged_read(
    sums: torch.Tensor, pool: Pool, sequences: Sequences, splits: int, block_n: int, stages: int, warps: int
) -> None:
    """Launch the paged read of one page set."""
    k, v = (words(cache) for cache in (pool.k_cache, pool.v_cache))
    _paged_read_kernel[(len(sequences.lens), pool.shape.num_kv_heads, splits)](
        sums, k, v, sequences.block_table, sequences.seq_lens,
        *k.stride()[:3], sequences.block_table.stride(0),
        HEAD_DIM=k.shape[-1], PAGE_SIZE=pool.shape.page_size, BLOCK_N=block_n, STAGES=stages,
        EVEN=all(n % block_n == 0 for n in sequences.lens), num_warps=warps,
    )  # fmt: skip


def words(cache: torch.Tensor) -> torch.Tensor:
    """An 8-bit cache as 16-bit words; any other as it is."""
    return cache.view(torch.float16) if cache.dtype.itemsize == 1 else cache


def pure_reads(pool: Pool, sums: torch.Tensor) -> dict[str, tuple[int, list[Callable]]]:
    """{configuration: (bytes, a launch for each page set's worth of memory)}."""
    sms = num_sms(pool.flat.device)
    pieces = words(pool.flat).view(len(pool.sets), -1)
    found = {}
    small = SMALL_READS if pool.shape.kv_bytes < SMALL_BYTES else ()
    for per_sm, block, stages, warps in (*PURE_READS, *small):
        config = (per_sm * sms, block, stages, warps)
        if read_bytes := read(sums, pieces[0], *config):
            name = f"{config[0]} programs, {block} elements, {stages} stages, {warps} warps"
            found[name] = read_bytes, [lambda x=x, c=config: read(sums, x, *c) for x in pieces]
    return found


def paged_reads(pool: Pool, sums: torch.Tensor) -> dict[str, tuple[int, list[Callable]]]:
    """{configuration: (bytes, a launch for each page set)}."""
    shape, sms = pool.shape, num_sms(pool.flat.device)
    found = {}
    for chunk in CHUNKS if shape.ragged else (None,):
        if chunk:
            chunk = max(chunk, shape.page_size)
            walks = [chunked(pool, s, chunk) for s in pool.sets]
        else:
            walks = [Sequences(s.block_table, pool.seq_lens, shape.lens) for s in pool.sets]
        heads = len(walks[0].lens) * shape.num_kv_heads
        for per_sm, block_n, stages, warps in PAGED_READS:
            block_n = max(block_n * 2 // shape.cache_dtype.itemsize, shape.page_size)
            if block_n * words(pool.k_cache[:1]).shape[-1] > MOST_PER_WARP * warps:
                continue
            splits = 1 if chunk else max(1, per_sm * sms // heads)
            config = (splits, block_n, stages, warps)
            name = f"{splits} splits, {block_n} tokens, {stages} stages, {warps} warps"
            name += f", chunks of {chunk} tokens" if chunk else ""
            found[name] = (
                shape.kv_bytes,
                [lambda w=w, c=config: paged_read(sums, pool, w, *c) for w in walks],
            )
    return found


def fastest(reads: dict[str, tuple[int, list[Callable]]], count: int) -> dict:
    """The `count` configurations with the most bytes a second at a quick look."""
    us_a_byte = {}
    for name, (num_bytes, calls) in reads.items():
        with suppress(triton.runtime.errors.OutOfResources):
            us_a_byte[name] = quick_latency(calls) / num_bytes
    return {name: reads[name] for name in sorted(us_a_byte, key=us_a_byte.get)[:count]}


def measure_ceilings(pool: Pool, rounds: int, shortlist: int | None = None) -> dict:
    """Both ceilings at the size of the pool's shape: us, GB/s and the configuration that reached it.

    With `shortlist`, only so many configurations of each are measured: the fastest at a quick look.
    """
    shape, sms = pool.shape, num_sms(pool.flat.device)
    programs = shape.num_kv_heads * sum(-(-n // min(CHUNKS)) for n in shape.lens)
    # One sum a program, and to spare.
    sums = torch.empty(programs + 64 * sms, dtype=torch.float32, device=pool.flat.device)
    graphs, num_bytes = {}, {}
    for kind, reads in (("read", pure_reads(pool, sums)), ("paged read", paged_reads(pool, sums))):
        if shortlist:
            reads = fastest(reads, shortlist)
        for name, (read_bytes, calls) in reads.items():
            try:
                graphs[f"{kind}: {name}"] = LaunchGraph(calls)
            except triton.runtime.errors.OutOfResources:  # a deep tile on a card with little shared memory
                continue
            num_bytes[f"{kind}: {name}"] = read_bytes
    latency = interleaved_latency(graphs, rounds)
    result = {
        "batch_size": shape.batch_size, "ctx": shape.ctx, "page_size": shape.page_size,
        "kv_bytes": shape.kv_bytes,
    }  # fmt: skip
    for kind in ("read", "paged read"):
        speed = {
            name: num_bytes[name] / latency[name]["p50"] for name in graphs if name.startswith(f"{kind}:")
        }
        if not speed:
            raise RuntimeError(f"{shape}: no configuration of the {kind} kernel fits this shape and card")
        best, key = max(speed, key=speed.get), kind.replace(" ", "_")
        result |= {
            f"{key}_us": latency[best], f"{key}_bytes": num_bytes[best],
            f"{key}_gbps": gbps(num_bytes[best], latency[best]["p50"]),
            f"{key}_config": best.removeprefix(f"{kind}: "),
        }  # fmt: skip
    return result


def measure_matmul(rounds: int, size: int = 8192) -> float:
    """TFLOP/s of a size^3 fp16 matrix product through torch: what the tensor cores reach in practice."""
    a, b = (torch.empty(size, size, dtype=torch.float16, device="cuda").normal_() for _ in range(2))
    out = torch.empty_like(a)
    torch.mm(a, b, out=out)  # cuBLAS allocates its workspace outside the capture
    latency = interleaved_latency({"mm": LaunchGraph([lambda: torch.mm(a, b, out=out)])}, rounds)["mm"]
    return round(2 * size**3 / latency["p50"] / 1e6, 1)


def gbps(num_bytes: int, us: float) -> float:
    """GB/s, 1 GB = 1e9 bytes."""
    return round(num_bytes / us / 1e3, 1)
