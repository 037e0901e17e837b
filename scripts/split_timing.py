"""One point of scripts/sweep_splits.py: its block tables, the check of each number of splits, the times."""

import statistics
from collections.abc import Callable, Iterator

import torch

from kernels.reference import paged_attention_reference
from scripts.split_kernels import SUBJECTS, Subject
from scripts.split_regret import GROUP_SIZE, HEAD_DIM, ITEM, PAGE_SIZE, WIDE, Point, best_splits

GRAPH_US = 400  # a graph's length, about: its own start-up, a few us, is under 1 % of it
LONG_US = 1000  # a call this long is timed by itself, without a graph
L2_TURNS = 4  # L2 caches' worth of KV between two reads of the same page, where calls are small
MOST_CALLS = 128  # in a graph
BEST_AGAIN = 3  # of the best numbers of a point, those that are timed again beside a newly chosen one
RANDOM_CHUNK = 2**28
DEVICE = "cuda"
MAX_RELATIVE_ERROR, MAX_LSE_ERROR = 2e-3, 1e-3  # of the fp16 result, against float64
METHOD = {
    "us": f"us of one call: the median over rounds of a CUDA graph of about {GRAPH_US} us a round, or of a "
    f"single call where it takes over {LONG_US} us; the numbers of splits of a point take turns",
    "cache": "cold L2 for keys, values and block tables: calls go on through one shuffled pool of pages; "
    "q and the partials stay warm",
    "check": "first and last sequence of each point and number of splits against float64: relative error at "
    f"most {MAX_RELATIVE_ERROR}, lse within {MAX_LSE_ERROR}",
}


class Pool:
    """One cache for all points: their pages are taken from it in an order shuffled once."""

    def __init__(self, num_bytes: int) -> None:
        largest_page = 2 * PAGE_SIZE * 8 * HEAD_DIM * ITEM
        num_elements = -(-num_bytes // largest_page) * largest_page // ITEM
        self.flat = torch.empty(2, num_elements // 2, dtype=torch.float16, device=DEVICE)
        torch.manual_seed(0)
        for chunk in self.flat.view(-1).split(RANDOM_CHUNK):
            chunk.normal_()
        self.orders: dict[int, torch.Tensor] = {}

    def caches(self, num_kv_heads: int) -> torch.Tensor:
        """[2, num_pages, PAGE_SIZE, Hkv, D]: K and V over the whole pool."""
        return self.flat.view(2, -1, PAGE_SIZE, num_kv_heads, HEAD_DIM)

    def tables(self, point: Point) -> Iterator[torch.Tensor]:
        """Block tables without end, [B, pages] or WIDE times as wide; no page twice in a turn of the pool."""
        num_pages = self.caches(point.num_kv_heads).shape[1]
        if point.num_kv_heads not in self.orders:
            self.orders[point.num_kv_heads] = torch.randperm(num_pages, device=DEVICE).int()
        order, size = self.orders[point.num_kv_heads], point.batch_size * point.num_pages
        while True:
            for start in range(0, num_pages - size + 1, size):
                table = order[start : start + size].view(point.batch_size, point.num_pages)
                if point.wide:
                    padded = table.new_full((point.batch_size, WIDE * point.num_pages), -1)
                    padded[:, : point.num_pages] = table
                    table = padded
                yield table


def measure(point: Point, pool: Pool, kernel: str, rounds: int, l2_bytes: int, known: dict | None) -> dict:
    """The row of a point; with `known`, its row before, only the chosen and the best numbers, anew."""
    k_cache, v_cache = pool.caches(point.num_kv_heads)
    tables = pool.tables(point)
    q_shape = (point.batch_size, GROUP_SIZE * point.num_kv_heads, HEAD_DIM)
    q = torch.randn(q_shape, dtype=torch.float16, device=DEVICE)
    seq_lens = torch.full((point.batch_size,), point.ctx, dtype=torch.int32, device=DEVICE)
    first = next(tables)
    subject = SUBJECTS[kernel](q, k_cache, v_cache, first, seq_lens, point.ctx)
    every = {*point.splits(), subject.chosen}
    if known:
        by_time = sorted(point.splits(), key=lambda splits: known["us"][str(splits)])
        every = {subject.chosen, best_splits(known), *by_time[:BEST_AGAIN]}
    check(point, subject, sorted(every), q, k_cache, v_cache, first, seq_lens)
    # Enough calls that the same pages come back, a round later, to an L2 cache that has forgotten them.
    least = min(MOST_CALLS, -(-L2_TURNS * l2_bytes // (len(every) * point.kv_bytes)))
    items = {splits: timed_run(subject, splits, point, tables, least) for splits in sorted(every)}
    samples: dict[int, list] = {splits: [] for splits in items}
    for _ in range(rounds + 1):
        for splits, (run, calls) in items.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            samples[splits].append((start, end, calls))
    torch.cuda.synchronize()
    us = {int(splits): value for splits, value in known["us"].items()} if known else {}
    for splits, timed in samples.items():  # the first round warms up
        us[splits] = round(
            statistics.median(start.elapsed_time(end) * 1e3 / calls for start, end, calls in timed[1:]), 2
        )
    return {
        "kernel": kernel, **point._asdict(), "chosen": subject.chosen,
        "us": {str(splits): us[splits] for splits in sorted(us)},
    }  # fmt: skip


def check(point: Point, subject: Subject, every: list[int], q, k_cache, v_cache, table, seq_lens) -> None:
    """Hold the first and the last sequence against float64, outputs poisoned; also compiles what is timed."""
    ends = [0, -1]
    truth, truth_lse = paged_attention_reference(
        q[ends].double(), k_cache, v_cache, table[ends], seq_lens[ends], return_lse=True
    )
    for splits in every:
        subject.o.fill_(float("nan"))
        subject.lse.fill_(float("nan"))
        subject.call(splits, table)
        error = ((subject.o[ends].double() - truth).norm() / truth.norm()).item()
        lse_error = (subject.lse[ends].double() - truth_lse).abs().max().item()
        if not (error <= MAX_RELATIVE_ERROR and lse_error <= MAX_LSE_ERROR):
            raise AssertionError(
                f"{point}, {splits} splits: relative error {error:.3g}, lse off by {lse_error:.3g}; "
                f"wanted at most {MAX_RELATIVE_ERROR} and {MAX_LSE_ERROR}"
            )


def timed_run(
    subject: Subject, splits: int, point: Point, tables: Iterator[torch.Tensor], least: int
) -> tuple[Callable[[], object], int]:
    """What to time, and how many calls it holds: a graph of many, or a single long one."""
    eager_us = []
    for _ in range(2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        table = next(tables)
        start.record()
        subject.call(splits, table)
        end.record()
        end.synchronize()
        eager_us.append(start.elapsed_time(end) * 1e3)
    table = next(tables)
    if min(eager_us) > LONG_US:
        return (lambda: subject.call(splits, table)), 1
    # Where the eager time may be the host's, a guess for the GPU: 5 TB/s, 0.2 us a page in one program.
    guess_us = max(5.0, point.kv_bytes / 5e6, 0.2 * point.num_pages / splits)
    if min(eager_us) > 150:
        guess_us = min(eager_us)
    calls = max(1, round(GRAPH_US / guess_us), least)
    arguments = [table, *(next(tables) for _ in range(calls - 1))]
    # Not torch.cuda.graph(): it collects garbage each time, which would take longer than all else here.
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        for table in arguments:
            subject.call(splits, table)
        graph.capture_end()

    def run(kept=arguments) -> None:  # a graph holds addresses alone: its tables must live as long
        graph.replay()

    return run, calls
