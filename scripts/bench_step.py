"""Time one decode step of one layer, eager and as a CUDA graph, the refill of its tables included."""

import time
from collections.abc import Callable

import torch

from kernels import choose_num_splits, paged_attention_reference
from kernels.l1_decode_step import (
    StepBuffers,
    as_tables,
    capture_step,
    declare_tables,
    decode_step,
    new_buffers,
    refill_tables,
    replay_step,
)
from kernels.l1_table_to_device import SharedMetadata
from kernels.launch import num_sms
from scripts.timing import quantiles

SHAPES = tuple((b, ctx) for ctx in (1024, 8192) for b in (1, 8, 64))
NUM_QO_HEADS, NUM_KV_HEADS, HEAD_DIM, PAGE_SIZE = 32, 8, 128, 16
EXTRA = 512  # tokens that may be appended: every step appends one to every sequence
PIPELINED = 60  # steps in a row
ROUNDS = 10
WAYS = ("eager", "replay", "tables")
PROBLEM = {
    "dtype": "float16", "num_qo_heads": NUM_QO_HEADS, "num_kv_heads": NUM_KV_HEADS, "head_dim": HEAD_DIM,
    "page_size": PAGE_SIZE, "block_table": "shuffled",
}  # fmt: skip
METHOD = {
    "step": "the host writes lengths, slots and new pages; one copy; write_kv; split-KV decode",
    "latency_us": "us of one step on an idle GPU, from the host's first write until its kernels are done",
    "host_us": "us of the same step until the host is free again",
    "pipelined_us": f"us a step over {PIPELINED} steps in a row, the GPU never waited for; p50 of {ROUNDS}",
    "gpu_us": "us of the kernels alone: graph replays in a row, tables unchanged",
    "tables_us": "us of the host for the tables alone: it writes them and queues their copy, idle GPU",
    "cache": "each step reads the same sequences: what fits in the L2 cache is warm",
    "check": "o against float64; replay and eager step give the same bits",
}


class Steps:
    """One layer's caches, B sequences of ctx tokens in them, and the host's side of steps that append."""

    def __init__(self, batch_size: int, ctx: int) -> None:
        self.batch_size, self.ctx, self.tokens = batch_size, ctx, ctx
        max_pages = -(-(ctx + EXTRA) // PAGE_SIZE)
        rng = torch.Generator().manual_seed(0)
        ids = torch.randperm(batch_size * max_pages, generator=rng).reshape(batch_size, max_pages)
        self.pages: list[list[int]] = ids.tolist()  # of every sequence, those it has not reached included
        shape = (batch_size * max_pages, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM)
        options = {"dtype": torch.float16, "device": "cuda"}
        q = torch.randn(batch_size, NUM_QO_HEADS, HEAD_DIM, **options)
        k, v = (torch.randn(batch_size, NUM_KV_HEADS, HEAD_DIM, **options) for _ in range(2))
        splits = choose_num_splits(batch_size, NUM_KV_HEADS, ctx + EXTRA, PAGE_SIZE, num_sms(q.device))
        self.shared = SharedMetadata(declare_tables(batch_size, max_pages), "cuda")
        tables = as_tables(self.shared.device, batch_size)
        caches = (torch.randn(shape, **options) for _ in range(2))
        self.buffers: StepBuffers = new_buffers(q, k, v, tables, *caches, splits)
        have = -(-ctx // PAGE_SIZE)
        first = {(b, i): row[i] for b, row in enumerate(self.pages) for i in range(have)}
        self._refill({**first, **self._reach_next()})
        self.shared.device_acquire()
        self.shared.device_release()
        self.graph = capture_step(self.buffers)

    def restart(self) -> None:
        """Back to ctx tokens: the steps of a round append, and all rounds are to be alike."""
        self.tokens = self.ctx

    def _reach_next(self) -> dict[tuple[int, int], int]:
        """One more token for each sequence; the pages that begin with it."""
        page, slot = divmod(self.tokens, PAGE_SIZE)
        self.tokens += 1
        self.lens = [self.tokens] * self.batch_size
        self.slots = [row[page] * PAGE_SIZE + slot for row in self.pages]
        return {} if slot else {(b, page): row[page] for b, row in enumerate(self.pages)}

    def _refill(self, pages: dict[tuple[int, int], int]) -> None:
        refill_tables(self.shared, self.batch_size, self.lens, self.slots, pages)

    def eager(self, pages: dict[tuple[int, int], int]) -> None:
        """One step, launch by launch."""
        self._refill(pages)
        self.shared.device_acquire()
        decode_step(self.buffers)
        self.shared.device_release()

    def replay(self, pages: dict[tuple[int, int], int]) -> None:
        """One step, as the graph."""
        self._refill(pages)
        replay_step(self.graph, self.shared)

    def check(self) -> float:
        """The error of o against float64; raises where the two ways differ, or it is too large."""
        x, pages = self.buffers, self._reach_next()
        found = []
        for step in (self.eager, self.replay):
            x.o.fill_(float("nan"))
            step(pages)
            found.append((x.o.clone(), x.lse.clone()))
        (eager_o, eager_lse), (o, lse) = found
        if not (torch.equal(o, eager_o) and torch.equal(lse, eager_lse)):
            raise AssertionError("a replay and an eager step give other bits")
        exact = paged_attention_reference(x.q, x.k_cache, x.v_cache, x.tables.block_table, x.tables.seq_lens)
        error = (o.double() - exact.double()).abs().max().item()
        allowed = 2e-3 * exact.abs().max().item()  # four roundings to fp16 of the largest element
        if not error < allowed:
            raise AssertionError(f"o is off by {error}; wanted less than {allowed}")
        return error

    def tables(self, pages: dict[tuple[int, int], int]) -> None:
        """What both ways have: the host writes the tables and queues their copy."""
        self._refill(pages)
        self.shared.device_acquire()
        self.shared.device_release()

    def single(self, step: Callable[[dict], None]) -> tuple[float, float]:
        """(us until its work is done, us until the host is free) of one step on an idle GPU."""
        pages = self._reach_next()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step(pages)
        returned = time.perf_counter()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6, (returned - start) * 1e6

    def in_a_row(self, step: Callable[[dict], None]) -> float:
        """us a step over PIPELINED steps, the GPU never waited for."""
        start = time.perf_counter()
        for _ in range(PIPELINED):
            step(self._reach_next())
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6 / PIPELINED

    def gpu_us(self, replays: int = 50) -> float:
        """us of the graph alone."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.graph.replay()
        start.record()
        for _ in range(replays):
            self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        return round(start.elapsed_time(end) * 1e3 / replays, 2)


def measure_steps(repeats: int, say: Callable[[str], None]) -> list[dict]:
    """Two rows a shape: eager and replay.

    Rounds over all shapes, the ways in turns: when something else takes the host's time, it takes it
    from all of them alike, and a median hardly sees it.
    """
    every = {shape: Steps(*shape) for shape in SHAPES}
    errors = {shape: steps.check() for shape, steps in every.items()}
    samples = {shape: {way: [] for way in WAYS} for shape in SHAPES}  # way -> (total, host)
    rows_us = {shape: {way: [] for way in WAYS[:2]} for shape in SHAPES}  # us a step, in a row
    for _ in range(ROUNDS):
        for shape, steps in every.items():
            steps.restart()
            for _ in range(-(-repeats // ROUNDS)):
                for way in WAYS:
                    samples[shape][way].append(steps.single(getattr(steps, way)))
            for way in WAYS[:2]:
                rows_us[shape][way].append(steps.in_a_row(getattr(steps, way)))
    rows = []
    for shape, steps in every.items():
        steps.restart()
        steps.single(steps.replay)
        gpu_us, tables = steps.gpu_us(), quantiles([host for _, host in samples[shape]["tables"]])
        for way in WAYS[:2]:
            total, host = (quantiles(values) for values in zip(*samples[shape][way], strict=True))
            row = {
                "variant": way, "batch_size": shape[0], "ctx": shape[1],
                "num_splits": steps.buffers.o_partial.shape[2],
                "latency_us": total, "host_us": host, "gpu_us": gpu_us, "tables_us": tables,
                "pipelined_us": quantiles(rows_us[shape][way])["p50"], "max_abs_error": errors[shape],
            }  # fmt: skip
            rows.append(row)
            say(
                f"{shape[0]} x {shape[1]} {way}: step {total['p50']}, host {host['p50']} (tables "
                f"{tables['p50']}), in a row {row['pipelined_us']}, kernels {gpu_us}"
            )
    return rows
