"""L1: the page table and the cache on it, against a model that keeps every sequence as a plain list."""

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kernels import paged_attention_reference
from kernels.l0_shapes import CacheSpec, Entry
from kernels.l1_page_table import OutOfPagesError, PageCopy, PageTable
from kernels.l1_paged_cache import PagedKVCache
from tests.helpers.l1_cache import HEADS, NUM_LAYERS, WIDTH, new_cache, stored, write_all
from tests.helpers.mode import DEVICE


def state_of(table: PageTable) -> dict:
    """All that a failed operation must leave as it was."""
    return {
        "free": table.num_free,
        "sequences": {seq: (table.num_tokens(seq), table.pages(seq)) for seq in table.sequences},
        "references": [table.references(page) for page in range(table.num_pages)],
    }


class CacheMachine(RuleBasedStateMachine):
    """Any sequence of operations: the tokens of every sequence are those that were appended to it."""

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[int, list[int]] = {}  # sequence -> its tokens
        self.num_written = 0

    @initialize(
        num_pages=st.integers(1, 9), page_size=st.sampled_from([1, 2, 3, 4]),
        kv_layout=st.sampled_from(["NHD", "HND"]),
    )  # fmt: skip
    def build(self, num_pages, page_size, kv_layout):
        self.cache = new_cache(num_pages, page_size, kv_layout)
        self.table = self.cache.table

    def fresh(self, count: int) -> list[int]:
        self.num_written += count
        return list(range(self.num_written - count, self.num_written))

    def pick(self, data, label: str) -> int:
        return data.draw(st.sampled_from(sorted(self.model)), label)

    def attempt(self, operation, needed: int):
        """The operation's result; where too few pages are free it must say so and change nothing."""
        before = state_of(self.table)
        if needed <= self.table.num_free:
            return operation()
        with pytest.raises(OutOfPagesError) as caught:
            operation()
        assert (caught.value.needed, caught.value.free) == (needed, before["free"])
        assert state_of(self.table) == before
        return None

    @rule(num_tokens=st.integers(0, 9))
    def allocate(self, num_tokens):
        needed = -(-num_tokens // self.cache.page_size)
        seq = self.attempt(lambda: self.cache.allocate(num_tokens), needed)
        if seq is not None:
            assert seq not in self.model
            self.model[seq] = self.fresh(num_tokens)
            write_all(self.cache, self.model[seq], self.cache.slot_mapping(seq))

    @precondition(lambda self: self.model)
    @rule(data=st.data(), num_tokens=st.sampled_from([1, 1, 1, 0, 2, 5]))
    def append(self, data, num_tokens):
        seqs = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, unique=True), "seqs")
        self.append_to(seqs, num_tokens)

    def append_to(self, seqs, num_tokens) -> None:
        needed = self.needed_by_the_model(seqs, num_tokens)
        slots = self.attempt(lambda: self.cache.append(seqs, num_tokens), needed)
        if slots is not None:
            values = self.fresh(len(seqs) * num_tokens)
            for i, seq in enumerate(seqs):
                self.model[seq] = self.model[seq] + values[i * num_tokens : (i + 1) * num_tokens]
            write_all(self.cache, values, slots)

    def needed_by_the_model(self, seqs, num_tokens) -> int:
        """Counted one sequence after the other, from who shares what, not as the table does."""
        size, needed = self.cache.page_size, 0
        holders = {page: self.table.references(page) for page in range(self.table.num_pages)}
        for seq in seqs if num_tokens else ():
            tokens, pages = self.table.num_tokens(seq), self.table.pages(seq)
            needed += len(range(0, tokens + num_tokens, size)) - len(pages)
            if tokens % size and holders[pages[-1]] > 1:
                holders[pages[-1]] -= 1
                needed += 1
        return needed

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def fork(self, data):
        seq = self.pick(data, "seq")
        num_tokens = data.draw(st.none() | st.integers(0, len(self.model[seq])), "num_tokens")
        self.fork_off(seq, num_tokens)

    def fork_off(self, seq, num_tokens=None) -> int:
        before = self.table.num_free
        child = self.cache.fork(seq, num_tokens)
        assert self.table.num_free == before and child not in self.model
        self.model[child] = self.model[seq][:num_tokens]
        return child

    @precondition(lambda self: self.model)
    @rule(data=st.data(), children=st.integers(1, 3), parent_too=st.booleans())
    def branch(self, data, children, parent_too):
        """What a search does: some forks of one sequence, and a token for each of them."""
        seq = self.pick(data, "seq")
        forks = [self.fork_off(seq) for _ in range(children)]
        self.append_to([seq, *forks] if parent_too else forks, 1)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def free(self, data):
        seq = self.pick(data, "seq")
        self.cache.free(seq)
        del self.model[seq]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), what=st.integers(0, 8))
    def refuse(self, data, what):
        """What is no operation at all changes nothing either."""
        before, missing, seq = state_of(self.table), self.num_written + 1000, self.pick(data, "seq")
        calls = [
            lambda: self.cache.append(missing),
            lambda: self.cache.free(missing),
            lambda: self.cache.fork(missing),
            lambda: self.cache.allocate(-1),
            lambda: self.cache.append([seq, seq]),
            lambda: self.cache.append([seq, missing]),
            lambda: self.cache.append(seq, -1),
            lambda: self.cache.fork(seq, len(self.model[seq]) + 1),
            lambda: self.cache.fork(seq, -1),
        ]
        with pytest.raises(ValueError):
            calls[what]()
        assert state_of(self.table) == before

    @invariant()
    def pages_add_up(self):
        """No page in two places, references right, used + free = all."""
        table = self.table
        assert table.sequences == list(self.model)
        rows = [table.pages(seq) for seq in self.model]
        assert all(len(set(row)) == len(row) for row in rows)
        held = [page for row in rows for page in row]
        assert [table.references(p) for p in range(table.num_pages)] == [
            held.count(p) for p in range(table.num_pages)
        ]
        assert len(set(held)) + table.num_free == table.num_pages
        assert sorted(table._free) == sorted(set(range(table.num_pages)) - set(held))

    @invariant()
    def a_shared_page_holds_the_same_tokens(self):
        size = self.cache.page_size
        seen: dict[int, tuple[int, list[int]]] = {}
        for seq, tokens in self.model.items():
            for logical, page in enumerate(self.table.pages(seq)):
                mine = tokens[logical * size : (logical + 1) * size]
                place, theirs = seen.setdefault(page, (logical, mine))
                short = min(len(mine), len(theirs))
                assert place == logical and mine[:short] == theirs[:short]

    @invariant()
    def contents_are_right(self):
        for seq, tokens in self.model.items():
            assert self.table.num_tokens(seq) == len(tokens)
            assert len(self.table.pages(seq)) == len(range(0, len(tokens), self.cache.page_size))
            for layer in range(NUM_LAYERS):
                expected, found = stored(tokens, layer), self.cache.read(layer, seq)
                assert all(torch.equal(found[name], expected[name]) for name in ("k", "v"))

    @invariant()
    def tables_and_lengths_are_right(self):
        seqs = list(self.model)
        block_table, lens = self.cache.block_table(seqs), self.cache.seq_lens(seqs)
        assert block_table.dtype == lens.dtype == torch.int32 and len(block_table) == len(seqs)
        for row, seq in zip(block_table.tolist(), seqs, strict=True):
            pages = self.table.pages(seq)
            assert row[: len(pages)] == pages and set(row[len(pages) :]) <= {-1}
        assert lens.tolist() == [len(tokens) for tokens in self.model.values()]


TestAnySequenceOfOperations = CacheMachine.TestCase
TestAnySequenceOfOperations.settings = settings(max_examples=60, stateful_step_count=30)


def test_out_of_pages_says_what_to_do():
    table = PageTable(4, 16)
    table.allocate(40)
    with pytest.raises(
        OutOfPagesError, match=r"^2 pages are needed and 1 of 4 are free; nothing has changed"
    ):
        table.allocate(17)


def test_a_batch_gets_all_or_nothing():
    """One page is free and both sequences need one: neither gets it."""
    table = PageTable(3, 4)
    a, b = table.allocate(4), table.allocate(4)
    with pytest.raises(OutOfPagesError):
        table.append([a, b])
    assert (table.num_tokens(a), table.num_tokens(b), table.num_free) == (4, 4, 1)
    table.free(a)
    table.append([b])
    assert table.num_tokens(b) == 5


def test_the_last_writer_keeps_the_shared_page():
    """Three sequences share a page that is begun: two of them copy it, the third is alone by then."""
    table = PageTable(8, 4)
    a = table.allocate(6)
    first, last = table.pages(a)
    b, c = table.fork(a), table.fork(a)
    assert table.references(last) == 3 and table.pages_needed([a, b, c]) == 2
    growth = table.append([a, b, c])
    assert growth.copies == [PageCopy(last, table.pages(a)[1], 2), PageCopy(last, table.pages(b)[1], 2)]
    assert table.pages(c) == [first, last] and table.references(first) == 3
    assert growth.slots == [table.slot(seq, 6) for seq in (a, b, c)]


def test_whole_pages_are_shared_without_a_copy():
    table = PageTable(8, 4)
    a = table.allocate(8)
    b = table.fork(a)
    assert table.append([a, b]).copies == [] and table.pages(a)[:2] == table.pages(b)[:2]


def test_a_fork_of_a_prefix_copies_only_the_prefix():
    """The parent has the page full, the child has one token of it: that one is copied."""
    table = PageTable(8, 4)
    a = table.allocate(8)
    b = table.fork(a, 5)
    (copy,) = table.append([b]).copies
    assert copy == PageCopy(table.pages(a)[1], table.pages(b)[1], 1)


def test_a_page_is_free_once_nobody_has_it():
    table = PageTable(4, 4)
    a = table.allocate(8)
    b = table.fork(a)
    table.free(a)
    assert table.num_free == 2 and table.pages(b) == [0, 1]
    table.free(b)
    assert table.num_free == 4


def test_free_pages_are_taken_again_last_in_first_out():
    table = PageTable(4, 1)
    a = table.allocate(3)
    assert table.pages(a) == [0, 1, 2]
    table.free(a)
    assert table.pages(table.allocate(4)) == [0, 1, 2, 3]


@pytest.mark.parametrize(("num_pages", "page_size"), [(0, 16), (4, 0)])
def test_sizes_are_refused(num_pages, page_size):
    with pytest.raises(ValueError, match="wanted at least 1"):
        PageTable(num_pages, page_size)


def test_a_spec_of_three_entries_is_refused():
    spec = CacheSpec("three", dict.fromkeys("abc", Entry(1, 8)), 1.0, None, None, None, None)
    with pytest.raises(ValueError, match="one or two entries"):
        PagedKVCache(spec, num_pages=1)


def test_one_entry_is_written_and_read():
    """A latent: one tensor a token, no V."""
    spec = CacheSpec("latent", {"latent": Entry(1, 24, torch.float64)}, 1.0, None, None, None, None)
    cache = PagedKVCache(spec, num_pages=5, page_size=4, kv_layout="HND")
    seq = cache.allocate()
    latent = torch.randn(7, 1, 24, dtype=torch.float64)
    cache.write(0, {"latent": latent}, cache.append(seq, 7))
    assert torch.equal(cache.read(0, seq)["latent"], latent)


def test_other_names_than_the_spec_s_are_refused():
    cache = new_cache(2, 4)
    seq = cache.allocate(1)
    with pytest.raises(ValueError, match="stored is \\['k'\\]; wanted \\['k', 'v'\\]"):
        cache.write(0, {"k": torch.zeros(1, HEADS, WIDTH)}, cache.slot_mapping(seq))


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
def test_decode_reads_what_was_written(kv_layout):
    """On the device of the run: prompt, fork, decode steps; then attention over the cache's own tables.

    On a GPU this is write_kv; the pages are the caches that the decode kernels take.
    """
    cache = new_cache(24, 16, kv_layout, DEVICE)
    prompt = list(range(37))
    a = cache.allocate(len(prompt))
    write_all(cache, prompt, cache.slot_mapping(a))
    b = cache.fork(a)
    tokens = {a: prompt, b: prompt}
    for step in range(20):
        new = [1000 + step, 2000 + step]
        write_all(cache, new, cache.append([a, b]))
        tokens = {seq: [*old, value] for (seq, old), value in zip(tokens.items(), new, strict=True)}
    for layer in range(NUM_LAYERS):
        views = cache.tensors(layer)
        q = torch.ones(2, HEADS, WIDTH, device=DEVICE)
        table, lens = cache.block_table([a, b]), cache.seq_lens([a, b])
        o = paged_attention_reference(q, views["k"], views["v"], table, lens, sm_scale=1e-4)
        for i, seq in enumerate((a, b)):
            expected = stored(tokens[seq], layer, DEVICE)
            scores = expected["k"][:, 0].sum(-1).double() * 1e-4
            wanted = torch.softmax(scores, 0) @ expected["v"][:, 0].double()
            torch.testing.assert_close(o[i, 0].double(), wanted, rtol=1e-6, atol=1e-6)
