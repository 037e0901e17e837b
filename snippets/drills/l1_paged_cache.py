"""Which page holds which token: a free list, reference counts, and one row of pages a sequence.

Lesson: l1_paged_cache. Reference: the model in tests/kernels/test_l1_paged_cache.py.
Source: own; the idea is PagedAttention (arXiv:2309.06180). Plain Python: it moves no data, so the
simulation of lesson L1 and the figures run the same code as the cache.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kernels.checks import require


class OutOfPagesError(RuntimeError):
    """Too few free pages; nothing has changed, so the caller can free, wait or evict, and call again."""

    def __init__(self, needed: int, free: int, num_pages: int) -> None:
        super().__init__(
            f"{needed} pages are needed and {free} of {num_pages} are free; nothing has changed: "
            "free a sequence and call again, or build the cache with more pages"
        )
        self.needed, self.free = needed, free


class PageCopy(NamedTuple):
    """Copy-on-write: the first num_slots slots of page `source` have to be copied to page `target`."""

    source: int
    target: int
    num_slots: int


class Growth(NamedTuple):
    """What an append gave: the slot of each new token, and the page copies to make before any write."""

    slots: list[int]  # page * page_size + slot in the page, sequence after sequence
    copies: list[PageCopy]


class PageTable:
    """num_pages pages of page_size tokens, and who has them.

    A sequence is an int that `allocate` or `fork` gave. Several sequences may have the same page:
    its reference count says how many. Only a page with one reference is ever written.
    """

    def __init__(self, num_pages: int, page_size: int) -> None:
        require(num_pages >= 1, "num_pages", num_pages, "at least 1")
        require(page_size >= 1, "page_size", page_size, "at least 1 token")
        self.num_pages, self.page_size = num_pages, page_size
        self._free = list(range(num_pages - 1, -1, -1))  # a stack: its end is taken first
        self._references = [0] * num_pages  # sequences that have the page; 0: it is free
        self._pages: dict[int, list[int]] = {}  # sequence -> its pages, in the order of its tokens
        self._lens: dict[int, int] = {}  # sequence -> tokens
        self._next_seq = 0

    @property
    def num_free(self) -> int:
        """Pages that no sequence has."""
        return len(self._free)

    @property
    def sequences(self) -> list[int]:
        """All sequences, oldest first."""
        return list(self._pages)

    def num_tokens(self, seq: int) -> int:
        """Tokens of a sequence."""
        self._check(seq)
        return self._lens[seq]

    def pages(self, seq: int) -> list[int]:
        """The physical pages of a sequence, by logical page: its row of the block table."""
        self._check(seq)
        return list(self._pages[seq])

    def references(self, page: int) -> int:
        """How many sequences have this page."""
        return self._references[page]

    def slot(self, seq: int, token: int) -> int:
        """Where a token of a sequence lies: page * page_size + slot in the page."""
        num_tokens = self.num_tokens(seq)
        require(0 <= token < num_tokens, "token", token, f"0 to {num_tokens - 1}: what the sequence has")
        logical, offset = divmod(token, self.page_size)
        return self._pages[seq][logical] * self.page_size + offset

    def allocate(self, num_tokens: int = 0) -> int:
        """A new sequence with room for num_tokens tokens, its prompt; raises OutOfPagesError."""
        require(num_tokens >= 0, "num_tokens", num_tokens, "0 or more")
        self._require_free(-(-num_tokens // self.page_size))
        seq = self._new_sequence([], 0)
        self.append([seq], num_tokens)
        return seq

    def append(self, seqs: Sequence[int], num_tokens: int = 1) -> Growth:
        """Make room for num_tokens more tokens of each of these sequences: all of it, or nothing.

        Raises:
            OutOfPagesError: too few free pages for all of them; no sequence has changed.
            ValueError: a sequence that is not there or is named twice, a negative number.
        """
        require(num_tokens >= 0, "num_tokens", num_tokens, "0 or more")
        for seq in seqs:
            self._check(seq)
        require(len(set(seqs)) == len(seqs), "seqs", list(seqs), "each sequence once")
        # TODO: Make room: all of it, or OutOfPagesError and nothing has changed.
        #   A page that others have too must not be written: ask for a copy, in growth.copies.
        #   growth.slots is where each new token goes, sequence after sequence.

    def pages_needed(self, seqs: Sequence[int], num_tokens: int = 1) -> int:
        """Free pages that `append` would take: new ones, and one for each copy."""
        # TODO: Count the pages that append would take. A copy needs one, too.

    def _own_last_page(self, seq: int, copies: list[PageCopy]) -> None:
        """Before tokens go into a page that is begun: make it this sequence's alone."""
        # TODO: If others have the last page, put a page of this sequence's own in its place,
        #   and order the copy of what it holds.

    def fork(self, seq: int, num_tokens: int | None = None) -> int:
        """A new sequence that begins with the first num_tokens tokens of another (None: all of them).

        It shares the pages of those tokens and takes none: forking cannot run out of pages.
        """
        have = self.num_tokens(seq)
        num_tokens = have if num_tokens is None else num_tokens
        require(0 <= num_tokens <= have, "num_tokens", num_tokens, f"0 to {have}: what sequence {seq} has")
        # TODO: A sequence with the same pages, those of its tokens alone. No page is taken.

    def free(self, seq: int) -> None:
        """Forget a sequence; its pages go back to the free list, except those that others have too."""
        self._check(seq)
        # TODO: Forget the sequence. A page goes back to the free list once nobody has it.

    def _new_sequence(self, pages: list[int], num_tokens: int) -> int:
        seq = self._next_seq
        self._next_seq += 1
        self._pages[seq], self._lens[seq] = pages, num_tokens
        return seq

    def _take(self) -> int:
        """A page off the free list. There is one: `_require_free` came first."""
        page = self._free.pop()
        self._references[page] = 1
        return page

    def _require_free(self, needed: int) -> None:
        if needed > self.num_free:
            raise OutOfPagesError(needed, self.num_free, self.num_pages)

    def _check(self, seq: int) -> None:
        require(seq in self._pages, "seq", seq, "a sequence that was allocated and not freed")
