"""One decode step on fixed buffers: right step after step, with idle rows, eagerly and as a CUDA graph."""

import pytest
import torch

from kernels import paged_attention_reference
from kernels.l1_decode_step import (
    as_tables,
    capture_step,
    declare_tables,
    decode_step,
    new_buffers,
    refill_tables,
    replay_step,
)
from kernels.l1_page_table import PageTable
from kernels.l1_table_to_device import SharedMetadata
from tests.helpers.marks import gpu_only
from tests.helpers.mode import DEVICE

B, HQ, HKV, D, PAGE, MAX_PAGES = 3, 4, 2, 16, 16, 4
ROWS = [[9, 3, 7, 10], [5, 1, 11, 8]]  # pages of two sequences; the third row has none


class Sequences:
    """Two sequences of 15 and 36 tokens in a cache, and the host's side of steps that append to both."""

    def __init__(self, num_splits: int, dtype=torch.float32) -> None:
        rng = torch.Generator().manual_seed(0)

        def randn(*shape):
            return torch.randn(shape, generator=rng).to(DEVICE, dtype)

        self.shared = SharedMetadata(declare_tables(B, MAX_PAGES), DEVICE)
        tables = as_tables(self.shared.device, B)
        caches = (randn(12, PAGE, HKV, D) for _ in range(2))
        self.x = new_buffers(randn(B, HQ, D), randn(B, HKV, D), randn(B, HKV, D), tables, *caches, num_splits)
        self.lens, self.known = [15, 36], [0, 0]

    def append(self) -> None:
        """One more token for each: fill the inputs with what the model would have, and the tables."""
        self.lens = [n + 1 for n in self.lens]
        pages = {}
        for b, n in enumerate(self.lens):
            needed = -(-n // PAGE)
            pages |= {(b, i): ROWS[b][i] for i in range(self.known[b], needed)}
            self.known[b] = needed
        refill_tables(self.shared, B, self.lens, self.slots, pages)
        for tensor in (self.x.q, self.x.k, self.x.v):
            tensor.copy_(torch.randn(tensor.shape))

    @property
    def slots(self) -> list[int]:
        """Where the last token of each sequence lies."""
        return [ROWS[b][(n - 1) // PAGE] * PAGE + (n - 1) % PAGE for b, n in enumerate(self.lens)]

    def assert_right(self) -> None:
        """The new tokens are in their slots, o and lse are the reference's, the idle row is empty."""
        x = self.x
        for new, cache in ((x.k, x.k_cache), (x.v, x.v_cache)):
            assert torch.equal(cache.flatten(0, 1)[self.slots], new[:2])
        o, lse = paged_attention_reference(
            x.q, x.k_cache, x.v_cache, x.tables.block_table, x.tables.seq_lens, return_lse=True
        )
        assert torch.allclose(x.o, o.to(x.o.dtype), rtol=1e-5, atol=1e-6)
        assert torch.allclose(x.lse, lse.float(), rtol=1e-6, atol=1e-6)
        assert not x.o[2].any() and torch.isneginf(x.lse[2]).all()


@pytest.mark.parametrize("num_splits", [1, 3])
def test_steps_across_the_edge_of_a_page(num_splits):
    """15 -> 16 -> 17 tokens: the second step begins a page."""
    sequences = Sequences(num_splits)
    used = sequences.x.k_cache.clone()
    for _ in range(2):
        sequences.append()
        sequences.shared.device_acquire()
        decode_step(sequences.x)
        sequences.shared.device_release()
        sequences.assert_right()
    changed = (sequences.x.k_cache != used).flatten(2).any(2).nonzero().tolist()
    assert changed == [[3, 0], [9, 15], [11, 4], [11, 5]]  # [page, slot], and no other


def test_the_page_table_of_the_cache_drives_it():
    """Both halves of L1 together: slots and pages come from PageTable, a sequence leaves on the way."""
    pages_of = PageTable(num_pages=12, page_size=PAGE)
    sequences = Sequences(num_splits=2)
    seqs, known = [pages_of.allocate(15), pages_of.allocate(36)], [0, 0]
    for step in range(4):
        if step == 2:  # the first row's sequence ends: the other moves up
            pages_of.free(seqs.pop(0))
            known = [0]
        slots = pages_of.append(seqs).slots
        lens = [pages_of.num_tokens(seq) for seq in seqs]
        new = {
            (b, i): page
            for b, seq in enumerate(seqs)
            for i, page in enumerate(pages_of.pages(seq))
            if i >= known[b]
        }
        known = [len(pages_of.pages(seq)) for seq in seqs]
        refill_tables(sequences.shared, B, lens, slots, new)
        sequences.shared.device_acquire()
        decode_step(sequences.x)
        sequences.shared.device_release()
        x = sequences.x
        assert torch.equal(x.k_cache.flatten(0, 1)[slots], x.k[: len(seqs)])
        o = paged_attention_reference(x.q, x.k_cache, x.v_cache, x.tables.block_table, x.tables.seq_lens)
        assert torch.allclose(x.o, o.to(x.o.dtype), rtol=1e-5, atol=1e-6)
        assert torch.isneginf(x.lse[len(seqs) :]).all() and not torch.isneginf(x.lse[: len(seqs)]).any()


def test_more_sequences_than_rows_are_refused():
    sequences = Sequences(1)
    with pytest.raises(ValueError, match=r"^sequences is 4; wanted at most 3"):
        refill_tables(sequences.shared, B, [1] * 4, [0] * 4, {})
    with pytest.raises(ValueError, match=r"^slots is 1; wanted 2, as lens"):
        refill_tables(sequences.shared, B, [1] * 2, [0], {})
    sequences.append()  # nothing is held after a refusal


@gpu_only
@pytest.mark.parametrize("num_splits", [1, 3])
def test_replays_give_what_eager_steps_give(num_splits):
    """One capture, then six steps: the graph finds the new tables, lengths and inputs each time."""
    sequences = Sequences(num_splits)
    sequences.append()
    sequences.shared.device_acquire()
    sequences.shared.device_release()
    graph = capture_step(sequences.x)
    for _ in range(6):
        sequences.append()
        sequences.x.o.fill_(float("nan"))
        replay_step(graph, sequences.shared)
        sequences.assert_right()
        replayed = sequences.x.o.clone()
        decode_step(sequences.x)
        assert torch.equal(sequences.x.o, replayed)
