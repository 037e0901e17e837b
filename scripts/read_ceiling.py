"""What reading alone costs on this card: the two ceilings that a decode kernel is held against.

Pure read: as many bytes as the KV, in one piece. Paged read: the same pages through the same block tables,
added up and thrown away. Each is the best of a few configurations, timed as the kernels are, in the same run.
"""

import torch
import triton
import triton.language as tl

from kernels.launch import num_sms
from scripts.bench_inputs import PageSet, Pool
from scripts.timing import LaunchGraph, interleaved_latency

# (programs an SM, elements a step, stages, warps)
PURE_READS = (
    (2, 8192, 3, 8),
    (4, 8192, 1, 8),
    (4, 16384, 3, 8),
    (8, 8192, 1, 4),
    (16, 8192, 1, 4),
    (16, 16384, 3, 8),
)
# (programs an SM, tokens a step, stages, warps)
PAGED_READS = tuple(
    (programs, *tile)
    for programs in (2, 3, 4)
    for tile in ((32, 3, 1), (64, 2, 2), (64, 3, 2), (64, 3, 4), (128, 2, 4), (128, 3, 4))
)


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


def paged_read(
    sums: torch.Tensor, pool: Pool, page_set: PageSet, splits: int, block_n: int, stages: int, warps: int
) -> None:
    """Launch the paged read of one page set."""
    shape = pool.shape
    _paged_read_kernel[(shape.batch_size, shape.num_kv_heads, splits)](
        sums, pool.k_cache, pool.v_cache, page_set.block_table, pool.seq_lens,
        *pool.k_cache.stride()[:3], page_set.block_table.stride(0),
        HEAD_DIM=shape.head_dim, PAGE_SIZE=shape.page_size, BLOCK_N=block_n, STAGES=stages,
        EVEN=shape.ctx % block_n == 0, num_warps=warps,
    )  # fmt: skip


def measure_ceilings(pool: Pool, rounds: int) -> dict:
    """Both ceilings at the size of the pool's shape: us, GB/s and the configuration that reached it."""
    shape, sms = pool.shape, num_sms(pool.flat.device)
    heads = shape.batch_size * shape.num_kv_heads
    sums = torch.empty(
        heads + 64 * sms, dtype=torch.float32, device=pool.flat.device
    )  # one a program, and to spare
    pieces = pool.flat.view(len(pool.sets), -1)
    graphs, num_bytes = {}, {}
    for per_sm, block, stages, warps in PURE_READS:
        name = f"read: {per_sm * sms} programs, {block} elements, {stages} stages, {warps} warps"
        config = (per_sm * sms, block, stages, warps)
        if read_bytes := read(sums, pieces[0], *config):
            num_bytes[name] = read_bytes
            graphs[name] = LaunchGraph([lambda x=x, c=config: read(sums, x, *c) for x in pieces])
    for per_sm, block_n, stages, warps in PAGED_READS:
        block_n = max(block_n, shape.page_size)
        config = (max(1, per_sm * sms // heads), block_n, stages, warps)
        name = f"paged read: {config[0]} splits, {block_n} tokens, {stages} stages, {warps} warps"
        if name in graphs:
            continue
        try:
            graphs[name] = LaunchGraph(
                [lambda s=s, c=config: paged_read(sums, pool, s, *c) for s in pool.sets]
            )
        except triton.runtime.errors.OutOfResources:  # a deep tile on a card with little shared memory
            continue
        num_bytes[name] = shape.kv_bytes
    latency = interleaved_latency(graphs, rounds)
    result = {
        "batch_size": shape.batch_size, "ctx": shape.ctx, "page_size": shape.page_size,
        "kv_bytes": shape.kv_bytes,
    }  # fmt: skip
    for kind in ("read", "paged read"):
        speed = {
            name: gbps(num_bytes[name], latency[name]["p50"])
            for name in graphs
            if name.startswith(f"{kind}:")
        }
        if not speed:
            raise RuntimeError(f"{shape}: no configuration of the {kind} kernel fits this shape and card")
        best, key = max(speed, key=speed.get), kind.replace(" ", "_")
        result |= {
            f"{key}_us": latency[best], f"{key}_bytes": num_bytes[best], f"{key}_gbps": speed[best],
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
