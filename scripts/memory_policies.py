"""Three ways to give sequences memory, on one trace of requests: reserve the most, grow and copy, page.

    python scripts/memory_policies.py            the table of all policies

A simulation in tokens; no tensor is made. Everything is seeded and in whole tokens, so that it gives the same
numbers everywhere. scripts/traces/l1_paged_cache.py records it for the page.

The trace: NUM_REQUESTS requests wait at the start, SEATS of them run at a time; when one has its last token
the next takes its seat at the next step. A prompt has PROMPT[0] to PROMPT[1] tokens, an answer ANSWER[0] to
ANSWER[1], each drawn uniformly by its logarithm and rounded down. A step gives each running request a token.
What is measured are the steps in which all seats are taken.

The policies that want one piece of memory a sequence take it first-fit from one range of addresses, so that
holes show: `extent` is the end of the highest piece. Pages come from kernels/l1_page_table.py, the cache's
own table.
"""

import argparse
import bisect
import math
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels`, from anywhere

from kernels.l1_page_table import PageTable

NUM_REQUESTS, SEATS, SEED = 320, 64, 0
PROMPT, ANSWER = (32, 2048), (16, 2048)
MAX_LEN = PROMPT[1] + ANSWER[1]
FACTORS = (1.25, 1.375, 1.5, 1.625, 1.75, 1.875, 2.0)
PAGE_SIZES = (16, 256)


class Request(NamedTuple):
    """Tokens of the prompt and of the answer."""

    prompt: int
    answer: int


def make_requests(
    count: int = NUM_REQUESTS, seed: int = SEED, prompt: tuple = PROMPT, answer: tuple = ANSWER
) -> list[Request]:
    """A trace of log-uniform lengths; the lesson's by default."""
    rng = random.Random(seed)

    def length(low: int, high: int) -> int:
        return int(low * (high / low) ** rng.random())

    return [Request(length(*prompt), length(*answer)) for _ in range(count)]


class Arena:
    """A range of addresses from 0 on, in tokens; each piece goes into the first hole that holds it."""

    def __init__(self) -> None:
        self._pieces: list[tuple[int, int]] = []  # (start, end), sorted
        self.extent = 0  # the end of the highest piece there has been

    def take(self, size: int) -> tuple[int, int]:
        start = 0
        for begin, end in self._pieces:
            if begin - start >= size:
                break
            start = end
        piece = (start, start + size)
        bisect.insort(self._pieces, piece)
        self.extent = max(self.extent, piece[1])
        return piece

    def give_back(self, piece: tuple[int, int]) -> None:
        self._pieces.remove(piece)


class Policy(Protocol):
    """What the simulation asks of one; `copied` counts tokens that had to move."""

    copied: int

    def admit(self, request: int, num_tokens: int) -> None: ...
    def append(self, request: int) -> None: ...
    def release(self, request: int) -> None: ...
    @property
    def reserved(self) -> int: ...
    @property
    def extent(self) -> int: ...


class Contiguous:
    """One piece a sequence: of max_len tokens (factor None), or grown by a factor into a new piece."""

    def __init__(self, factor: float | None, max_len: int = MAX_LEN) -> None:
        self.max_len = max_len
        self.factor, self.arena, self.copied, self.reserved = factor, Arena(), 0, 0
        self._pieces: dict[int, tuple[int, int]] = {}
        self._lens: dict[int, int] = {}

    @property
    def extent(self) -> int:
        return self.arena.extent

    def _capacity(self, num_tokens: int) -> int:
        return self.max_len if self.factor is None else min(self.max_len, math.ceil(num_tokens * self.factor))

    def admit(self, request: int, num_tokens: int) -> None:
        self._lens[request] = num_tokens
        self._pieces[request] = piece = self.arena.take(self._capacity(num_tokens))
        self.reserved += piece[1] - piece[0]

    def append(self, request: int) -> None:
        start, end = self._pieces[request]
        if self._lens[request] == end - start:  # full: a larger piece, and all tokens move there
            self._pieces[request] = piece = self.arena.take(self._capacity(end - start))
            self.arena.give_back((start, end))  # only now: both exist while the tokens move
            self.reserved += piece[1] - piece[0] - (end - start)
            self.copied += self._lens[request]
        self._lens[request] += 1

    def release(self, request: int) -> None:
        start, end = self._pieces.pop(request)
        self.arena.give_back((start, end))
        self.reserved -= end - start
        del self._lens[request]


class Paged:
    """The cache's own table; pages never move."""

    def __init__(self, page_size: int, seats: int = SEATS, max_len: int = MAX_LEN) -> None:
        self.table = PageTable(seats * -(-max_len // page_size), page_size)  # room for the worst
        self.copied, self.extent = 0, 0
        self._seqs: dict[int, int] = {}

    @property
    def reserved(self) -> int:
        return (self.table.num_pages - self.table.num_free) * self.table.page_size

    def admit(self, request: int, num_tokens: int) -> None:
        self._seqs[request] = self.table.allocate(num_tokens)
        self.extent = max(self.extent, self.reserved)

    def append(self, request: int) -> None:
        self.table.append([self._seqs[request]])
        self.extent = max(self.extent, self.reserved)

    def release(self, request: int) -> None:
        self.table.free(self._seqs.pop(request))


def all_policies() -> dict[str, Policy]:
    """By name: reserve, grow 1.25 ... grow 2, page 16 ..."""
    return {
        "reserve": Contiguous(None),
        **{f"grow {factor:g}": Contiguous(factor) for factor in FACTORS},
        **{f"page {size}": Paged(size) for size in PAGE_SIZES},
    }


@dataclass
class Outcome:
    """Of one policy, step by step; all in tokens."""

    used: list[int] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)
    extent: int = 0
    generated: int = 0

    def summary(self) -> dict[str, int]:
        """Sums and extremes, in whole tokens."""
        return {
            "steps": len(self.used), "used": sum(self.used), "reserved": sum(self.reserved),
            "peak_used": max(self.used), "peak_reserved": max(self.reserved), "extent": self.extent,
            "generated": self.generated, "copied": sum(self.copied), "worst_copy": max(self.copied),
            "copy_steps": sum(copied > 0 for copied in self.copied),
        }  # fmt: skip


def simulate(policy: Policy, requests: list[Request], seats: int = SEATS) -> Outcome:
    """Run the trace until a seat stays empty."""
    outcome, waiting = Outcome(), list(enumerate(requests))[::-1]
    left: dict[int, int] = {}  # running request -> tokens still to come
    used = 0
    while True:
        while waiting and len(left) < seats:
            number, request = waiting.pop()
            policy.admit(number, request.prompt)
            left[number] = request.answer
            used += request.prompt
        if len(left) < seats:
            return outcome
        before = policy.copied
        for number in left:
            policy.append(number)
        used += len(left)
        outcome.generated += len(left)
        outcome.used.append(used)
        outcome.reserved.append(policy.reserved)
        outcome.copied.append(policy.copied - before)
        outcome.extent = policy.extent
        for number in [number for number in left if left[number] == 1]:
            used -= sum(requests[number])
            policy.release(number)
            del left[number]
        left = {number: count - 1 for number, count in left.items()}


def main() -> int:
    """The command line."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    requests = make_requests()
    print(f"{'policy':<12}{'used/reserved':>14}{'extent/peak':>13}{'copied/token':>14}{'worst step':>12}")
    for name, policy in all_policies().items():
        s = simulate(policy, requests).summary()
        print(
            f"{name:<12}{s['used'] / s['reserved']:>14.1%}{s['extent'] / s['peak_used']:>13.2f}"
            f"{s['copied'] / s['generated']:>14.3f}{s['worst_copy']:>12}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
