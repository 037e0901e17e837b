"""The small cases of lesson L1's drill: who has which page, what is in it, and where the kernel writes.

A library for scripts/part_checks.py. Which free page is taken is nobody's business: cases tell what a
sequence holds, not where.
"""

from collections.abc import Iterator

import torch

from scripts.part_checks import Part
from scripts.trace_record import TraceError
from scripts.tracer import trace
from tests.helpers import l1_big_write, l1_cache, l1_write
from tests.helpers.mode import ON_GPU

Steps = Iterator[tuple[str, object]]


class Play:
    """A cache, and the tokens that each sequence should hold: 100, 101, ... of the first, 200, ..."""

    def __init__(self, num_pages: int, page_size: int = 4, kv_layout: str = "NHD") -> None:
        self.cache = l1_cache.new_cache(num_pages, page_size, kv_layout)
        self.count = 0

    def allocate(self, num_tokens: int) -> int:
        """A sequence with its prompt written."""
        seq = self.cache.allocate(num_tokens)
        self.write(self.cache.slot_mapping(seq))
        return seq

    def append(self, seqs: list[int], num_tokens: int = 1) -> None:
        """More tokens for each, written."""
        self.write(self.cache.append(seqs, num_tokens))

    def write(self, slots: torch.Tensor) -> None:
        """New numbers, in these slots."""
        l1_cache.write_all(self.cache, [self.count + i for i in range(len(slots))], slots)
        self.count += len(slots)

    def holds(self, **seqs: int) -> Steps:
        """What each of these sequences holds, in its last layer, and how many pages are free."""
        for name, seq in seqs.items():
            k = self.cache.read(l1_cache.NUM_LAYERS - 1, seq)["k"]
            yield f"what {name} holds", [f"{x:g}" for x in ((k[:, 0, 0] / 2 - 1) / 10).tolist()]
        yield "the number of free pages", self.cache.table.num_free


def refused(operation, table) -> Steps:
    """What an operation raises, and what it leaves behind."""
    try:
        operation()
        said = "nothing"
    except Exception as error:
        said = type(error).__name__
    yield "what is raised", said
    yield "the length of each sequence", [table.num_tokens(seq) for seq in table.sequences]
    yield "the number of free pages", table.num_free


def grow() -> Steps:
    """One sequence, token by token over three pages of 4."""
    play = Play(4)
    a = play.allocate(3)
    for _ in range(7):
        play.append([a])
    yield from play.holds(a=a)
    yield "pages of a", len(play.cache.table.pages(a))


def fork_and_write() -> Steps:
    """b is a fork of a, whose last page is begun; then each gets a token."""
    play = Play(6)
    a = play.allocate(6)
    b = play.cache.fork(a)
    yield from play.holds(a=a, b=b)
    play.append([a, b])
    yield from play.holds(a=a, b=b)


def fork_of_a_prefix() -> Steps:
    """b shares 5 of a's 8 tokens; then it gets two of its own."""
    play = Play(6)
    a = play.allocate(8)
    b = play.cache.fork(a, 5)
    play.append([b], 2)
    yield from play.holds(a=a, b=b)


def free_a_shared_page() -> Steps:
    """b is a fork of a; a is freed, and c comes: b still has its tokens."""
    play = Play(4)
    a = play.allocate(8)
    b = play.cache.fork(a)
    play.cache.free(a)
    yield from play.holds(b=b)
    c = play.allocate(8)
    yield from play.holds(b=b, c=c)
    play.cache.free(b)
    yield from play.holds(c=c)


def all_or_nothing() -> Steps:
    """One page is free, and two sequences need one each."""
    play = Play(3)
    a, b = play.allocate(4), play.allocate(4)
    yield from refused(lambda: play.append([a, b]), play.cache.table)


def no_page_for_the_copy() -> Steps:
    """No page is free, and the only token wanted goes to a shared page."""
    play = Play(2)
    a = play.allocate(6)
    play.cache.fork(a)
    yield from refused(lambda: play.append([a]), play.cache.table)


def tables() -> Steps:
    """Block table and lengths of a batch: rows of 3, 0 and 1 pages."""
    cache = l1_cache.new_cache(6, 4)
    seqs = [cache.allocate(num_tokens) for num_tokens in (9, 0, 4)]
    rows = [cache.table.pages(seq) for seq in seqs]
    table = cache.block_table(seqs)
    yield "its dtype", str(table.dtype)
    yield "its shape", list(table.shape)
    yield "whether its rows are the pages, then -1", table.tolist() == [r + [-1] * (3 - len(r)) for r in rows]
    yield "seq_lens", cache.seq_lens(seqs)
    yield "the shape of a table without columns", list(cache.block_table([seqs[1]]).shape)


def written(slots: list[int], kv_layout: str, **options) -> Steps:
    """The caches after a write, guard pages included, and what it accesses outside its tensors."""
    call = l1_write.Write(slots, kv_layout=kv_layout, **options)
    if ON_GPU:
        found = call.run(l1_write.write_kv)
        outside = "nothing"
    else:
        with trace() as t:
            found = call.run(l1_write.write_kv)
        try:
            t.assert_in_bounds()
            outside = "nothing"
        except TraceError as error:
            outside = str(error)
    for name, cache in zip("kv", found, strict=False):
        yield f"{name}_cache, guard pages included", cache.view(call.k.dtype)
    yield "what it accesses outside its tensors", outside


def one_token() -> Steps:
    """One token, NHD, whose K and V are slices of a fused QKV."""
    yield from written([37], "NHD")


def some_tokens() -> Steps:
    """Three tokens, NHD, whose K and V are slices of a fused QKV."""
    yield from written([37, 5, 95], "NHD")


def heads_outside() -> Steps:
    """Three tokens, HND: heads outside, slots inside."""
    yield from written([37, 5, 95], "HND")


def skipped() -> Steps:
    """The second of three tokens has slot -1."""
    yield from written([37, -1, 5], "NHD")


def odd_sizes() -> Steps:
    """3 heads of 40 elements, V of 72, pages of 7 tokens, HND."""
    yield from written([6, 20, -1, 41], "HND", heads=3, k_dim=40, v_dim=72, page_size=7)


def long_rows() -> Steps:
    """40 heads of 128: a row is 5 blocks."""
    yield from written([7, -1, 20], "NHD", heads=40, k_dim=128)


def latent_alone() -> Steps:
    """One tensor a token, no V."""
    yield from written([37, -1], "NHD", heads=1, k_dim=72, one=True)


def no_tokens() -> Steps:
    """No token at all."""
    yield from written([], "NHD")


def far_slot() -> None:
    """A page past 2**31 elements, slots in int32"""
    l1_big_write.check("NHD")


BOOK = (grow, fork_and_write, fork_of_a_prefix, free_a_shared_page, all_or_nothing, no_page_for_the_copy)
WRITES = (one_token, some_tokens, heads_outside, skipped, odd_sizes, long_rows, latent_alone, no_tokens)
TESTS = "tests/kernels/test_l1_paged_{}.py".format
PARTS = {
    "kernels/l1_page_table.py": Part(("PageTable", "OutOfPagesError"), BOOK, TESTS("cache")),
    "kernels/l1_paged_cache.py": Part(("PagedKVCache",), (*BOOK, tables), TESTS("cache")),
    "kernels/l1_write_kv.py": Part(
        ("write_kv",), WRITES, TESTS("write"), "slots_past_int32",
        (far_slot, "l1_paged_cache/int32_slot"),
    ),
}  # fmt: skip
