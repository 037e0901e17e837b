"""What bench_layouts.py times: writes of new tokens and reads of L2, in both layouts, each with its check."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kernels.checks import check_lesson_inputs
from kernels.l1_write_kv import check_write_inputs, launch_write_kv, write_kv, write_kv_reference
from kernels.l2_paged_decode import launch_paged_decode, paged_decode
from kernels.launch import choose_launch, new_outputs
from scripts.bench_inputs import Pool
from scripts.bench_truth import make_truth, poisoned_allocations

PAGE_SIZE, NUM_QO_HEADS, NUM_KV_HEADS, HEAD_DIM = 16, 32, 8, 128
DTYPE = torch.float16
MOST_SETS = 64  # inputs and slots that launches rotate over
DEVICE = "cuda"


@dataclass
class Variant:
    """One row to be: the launches to time, how users call it if that is something else, and its check."""

    name: str
    launches: list[Callable[[], object]]
    check: Callable[[], dict]
    about: dict
    moved_bytes: int
    calls: list[Callable[[], object]] | None = None


# region writes
@dataclass(frozen=True)
class WriteSet:
    """K and V [N, Hkv, D], slices of a fused projection, and the slots [N] they go to."""

    k: torch.Tensor
    v: torch.Tensor
    slots: torch.Tensor


def make_write_sets(num_seqs: int, num_tokens: int, num_pages: int) -> list[WriteSet]:
    """Disjoint slots: a page of its own for each sequence of a step, whole pages for a prompt."""
    count = num_seqs * num_tokens
    pages_each = -(-num_tokens // PAGE_SIZE)
    num_sets = min(MOST_SETS, num_pages // (num_seqs * pages_each))
    pages = torch.randperm(num_pages)[: num_sets * num_seqs * pages_each].view(num_sets, num_seqs, pages_each)
    offsets = torch.arange(num_tokens)
    slots = pages[:, :, offsets // PAGE_SIZE] * PAGE_SIZE + offsets % PAGE_SIZE
    if num_tokens == 1:  # somewhere in the page
        slots += torch.randint(PAGE_SIZE, slots.shape)
    slots = slots.view(num_sets, count).to(DEVICE)
    width = NUM_KV_HEADS * HEAD_DIM
    q_width = NUM_QO_HEADS * HEAD_DIM
    qkv = torch.empty(num_sets, count, q_width + 2 * width, dtype=DTYPE, device=DEVICE).normal_()
    k, v = (x.unflatten(2, (NUM_KV_HEADS, HEAD_DIM)) for x in qkv[..., q_width:].split(width, dim=2))
    return [WriteSet(k[i], v[i], slots[i]) for i in range(num_sets)]


def write_variants(num_seqs: int, num_tokens: int, caches: dict[str, torch.Tensor]) -> list[Variant]:
    """The kernel and indexing in each layout, and a plain copy; caches: {layout: [2, num_pages, ...]}."""
    sets = make_write_sets(num_seqs, num_tokens, caches["NHD"].shape[1])
    row_bytes = num_seqs * num_tokens * 2 * NUM_KV_HEADS * HEAD_DIM * DTYPE.itemsize
    about = {
        "batch_size": num_seqs, "ctx": num_tokens, "page_size": PAGE_SIZE, "kind": "write",
        "rotation_bytes": 2 * len(sets) * row_bytes,
    }  # fmt: skip
    found = []
    for layout, cache in caches.items():
        k_cache, v_cache = cache

        def kernel(s, k_cache=k_cache, v_cache=v_cache, layout=layout):
            pairs = check_write_inputs(s.k, s.v, k_cache, v_cache, s.slots, layout)
            return lambda: launch_write_kv(pairs, s.slots)

        def call(write, s, k_cache=k_cache, v_cache=v_cache, layout=layout):
            return lambda: write(s.k, s.v, k_cache, v_cache, s.slots, kv_layout=layout)

        def indexed(s, cache=cache, layout=layout):
            return lambda: write_by_index(s, cache, layout)

        check = check_writes(sets[0], cache, layout, [kernel(sets[0]), call(write_kv, sets[0])])
        found.append(Variant(
            "write_kv", [kernel(s) for s in sets], check, about | {"kv_layout": layout}, 2 * row_bytes,
            [call(write_kv, s) for s in sets],
        ))  # fmt: skip
        check = check_writes(sets[0], cache, layout, [indexed(sets[0])])
        found.append(Variant(
            "index_put", [indexed(s) for s in sets], check, about | {"kv_layout": layout}, 2 * row_bytes,
        ))  # fmt: skip
    source, target = (torch.empty(len(sets), row_bytes, dtype=torch.uint8, device=DEVICE) for _ in range(2))
    copies = [lambda a=a, b=b: b.copy_(a) for a, b in zip(source, target, strict=True)]
    found.append(Variant("copy", copies, dict, about | {"kv_layout": "-"}, 2 * row_bytes))
    return found


def write_by_index(s: WriteSet, cache: torch.Tensor, layout: str) -> None:
    """The same in PyTorch, without the look at -1 that would need the host."""
    page, offset = s.slots // PAGE_SIZE, s.slots % PAGE_SIZE
    for new, pages in zip((s.k, s.v), cache, strict=True):
        (pages if layout == "NHD" else pages.transpose(1, 2))[page, offset] = new


def check_writes(s: WriteSet, cache: torch.Tensor, layout: str, writes: list[Callable]) -> Callable[[], dict]:
    """A check of each of `writes`: on a cache of NaN, as the reference leaves it, bit by bit."""

    def check() -> dict:
        bits = cache.view(torch.int16)
        cache.fill_(float("nan"))
        write_kv_reference(s.k, s.v, *cache, s.slots, kv_layout=layout)
        expected = bits.clone()
        for write in writes:
            cache.fill_(float("nan"))
            write()
            if not torch.equal(bits, expected):
                raise AssertionError("the cache is not as the reference leaves it")
        return {"max_abs_error": 0.0}

    return check


# endregion writes


# region reads
def read_variants(pool: Pool) -> list[Variant]:
    """L2's kernel on the same pages in both layouts."""
    truth, found = make_truth(pool, pool.sets[0]), []
    for layout, caches in (("NHD", (pool.k_cache, pool.v_cache)), ("HND", pool.hnd_caches)):
        first = pool.sets[0]
        inputs = check_lesson_inputs(first.q, *caches, first.block_table, pool.seq_lens, layout)
        launch = choose_launch(inputs, first.q)
        o, lse = new_outputs(first.q)

        def read(s, o=o, lse=lse, inputs=inputs, launch=launch):
            return lambda: launch_paged_decode(
                o, lse, s.q, inputs, s.block_table, pool.seq_lens, None, launch
            )

        def call(s, caches=caches, layout=layout):
            return lambda: paged_decode(
                s.q, *caches, s.block_table, pool.seq_lens, kv_layout=layout, return_lse=True
            )

        def check(o=o, lse=lse, read=read, call=call, first=first) -> dict:
            with poisoned_allocations():
                errors = truth.judge(*call(first)())
            o.fill_(float("nan"))
            lse.fill_(float("nan"))
            read(first)()
            return errors | truth.judge(o, lse)

        shape = pool.shape
        about = {
            "batch_size": shape.batch_size, "ctx": shape.ctx, "page_size": shape.page_size, "kind": "read",
            "kv_layout": layout, "num_warps": launch.num_warps, "num_stages": launch.num_stages,
            "kv_bytes": shape.kv_bytes,
        }  # fmt: skip
        calls = [call(s) for s in pool.sets]
        found.append(Variant(
            "paged_decode", [read(s) for s in pool.sets], check, about, shape.kv_bytes, calls,
        ))  # fmt: skip
    return found


# endregion reads
