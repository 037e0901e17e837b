"""The l1_paged_cache lesson: worked example, copy-on-write, free list, shared prefixes, memory policies.

Everything is done by kernels/l1_page_table.py, l1_paged_cache.py and l1_write_kv.py; nothing here counts
pages itself.
"""

import torch

from kernels.l0_shapes import grouped_spec
from kernels.l1_page_table import OutOfPagesError, PageTable
from kernels.l1_paged_cache import PagedKVCache
from kernels.l1_write_kv import write_kv
from scripts.memory_policies import (
    ANSWER,
    MAX_LEN,
    NUM_REQUESTS,
    PROMPT,
    SEATS,
    Contiguous,
    Paged,
    Request,
    all_policies,
    make_requests,
    simulate,
)
from scripts.tracer import trace

NUM_LAYERS = 32  # of the model whose bytes the page counts: 32 layers, 8 KV heads, D = 128, fp16
SAMPLES = 40  # steps of each curve over time
CURVES = ("reserve", "grow 2", "grow 1.25", "page 16")
PREFIX, OWN, PREFIX_PAGE = 1000, 50, 16
FORKS = (1, 2, 4, 8, 16, 32, 64)


def record() -> dict:
    """What the figures and facts of the lesson are drawn from."""
    return {
        "example": example(),
        "free_list": free_list(),
        "prefix": {"prefix": PREFIX, "own": OWN, "page_size": PREFIX_PAGE, "rows": [*map(shared, FORKS)]},
        "simulation": simulation(),
        "pool": pool(),
        "waste": waste(),
    }


def snapshot(table: PageTable, names: dict[int, str]) -> dict:
    """Who has what: rows and lengths by name, references, and the free list, the next page first."""
    return {
        "rows": {names[seq]: table.pages(seq) for seq in table.sequences},
        "lens": {names[seq]: table.num_tokens(seq) for seq in table.sequences},
        "references": [table.references(page) for page in range(table.num_pages)],
        "free": table._free[::-1],
    }


def example() -> dict:
    """Sequence A grows to 68 tokens in pages of 32 beside B; then C is forked off it and gets a token."""
    table, names = PageTable(10, 32), {}
    z = table.allocate(50)
    a, b = table.allocate(30), table.allocate(60)
    names |= {z: "Z", a: "A", b: "B"}
    while table.num_tokens(a) < 68:
        table.append([a, b])
    table.free(z)
    states = [snapshot(table, names)]
    c = table.fork(a)
    names[c] = "C"
    states.append(snapshot(table, names))
    growth = table.append([c])
    states.append(snapshot(table, names))
    slots = [table.slot(a, t) for t in range(68)]
    return {
        "page_size": 32, "num_pages": 10, "states": states,
        "copies": growth.copies, "new_slots": growth.slots,
        "slots": {str(t): slots[t] for t in (0, 31, 32, 40, 63, 64, 67)},
        "written": written(slots[40:41] + slots[67:]),
    }  # fmt: skip


def written(slots: list[int]) -> list[list[int]]:
    """[page, slot in the page] that write_kv really stores to, for tokens at these slots."""
    cache = torch.full((10, 32, 1, 8), float("nan"))
    rows = torch.zeros(len(slots), 1, 8)
    with trace() as t:
        write_kv(rows, None, cache, None, torch.tensor(slots))
    places = {
        (int(p), int(s)) for a in t.writes("k_cache_ptr") for p, s in zip(*a.coordinates[:2], strict=True)
    }
    return sorted(map(list, places))


def free_list() -> list[dict]:
    """A short life of 8 pages of 16 tokens; after each operation, who has which page and what is free."""
    table, names, found = PageTable(8, 16), {}, []

    def note(what: str, **numbers: int | str) -> None:
        found.append({"what": what, **numbers} | snapshot(table, names))

    note("new")
    a = table.allocate(40)
    names[a] = "A"
    note("allocate", seq="A", tokens=40)
    b = table.allocate(20)
    names[b] = "B"
    note("allocate", seq="B", tokens=20)
    table.append([a], 9)
    note("append", seq="A", tokens=9)
    c = table.fork(b)
    names[c] = "C"
    note("fork", seq="C", tokens=20)
    table.free(a)
    note("free", seq="A", tokens=49)
    table.append([b])
    note("append", seq="B", tokens=1)
    return found


def shared(count: int) -> dict:
    """Pages of `count` requests with one prefix and tokens of their own, shared by fork and not shared."""
    table = PageTable(64 * 80, PREFIX_PAGE)
    prefix = table.allocate(PREFIX)
    copies = 0
    for _ in range(count):
        copies += len(table.append([table.fork(prefix)], OWN).copies)
    apart = PageTable(64 * 80, PREFIX_PAGE)
    for _ in range(count):
        apart.allocate(PREFIX + OWN)
    return {
        "requests": count, "pages": table.num_pages - table.num_free,
        "pages_apart": apart.num_pages - apart.num_free, "copies": copies,
    }  # fmt: skip


def simulation() -> dict:
    """Summaries of all policies, in tokens, and some curves over time."""
    requests = make_requests()
    outcomes = {name: simulate(policy, requests) for name, policy in all_policies().items()}
    steps = len(outcomes["reserve"].used)
    sampled = [step * (steps - 1) // (SAMPLES - 1) for step in range(SAMPLES)]
    return {
        "requests": NUM_REQUESTS, "seats": SEATS, "prompt": PROMPT, "answer": ANSWER, "max_len": MAX_LEN,
        "layers": NUM_LAYERS, "bytes_per_token": NUM_LAYERS * grouped_spec(32, 8, 128).bytes_per_token,
        "shortest": min(map(sum, requests)), "longest": max(map(sum, requests)),
        "policies": {name: outcome.summary() for name, outcome in outcomes.items()},
        "sampled_steps": sampled,
        "used": [outcomes["reserve"].used[step] for step in sampled],
        "curves": {name: [outcomes[name].reserved[step] for step in sampled] for name in CURVES},
    }  # fmt: skip


def pool(
    prompts: tuple[int, ...] = (30, 60, 20), steps: int = 38, page_size: int = 32, num_pages: int = 10
) -> dict:
    """Sequences as a server has them: all prompts, then a token each a step, until the cache refuses."""
    cache = PagedKVCache(grouped_spec(1, 1, 1), num_pages=num_pages, page_size=page_size)
    seqs: list[int] = []
    refused, done = None, 0
    try:
        for prompt in prompts:
            seqs.append(cache.allocate(prompt))
        while done < steps:
            cache.append(seqs)
            done += 1
    except OutOfPagesError as error:
        refused = {"needed": error.needed, "free": error.free}
    return {
        "page_size": page_size, "num_pages": num_pages, "prompts": list(prompts), "steps": steps,
        "done": done, "refused": refused,
        "lens": cache.seq_lens(seqs).tolist(), "table": cache.block_table(seqs).tolist(),
        "num_free": cache.table.num_free,
    }  # fmt: skip


# Small traces, so that a reader's choice is drawn at once; the first is the figure's.
TRACES = {
    "mixed": {"count": 40, "prompt": (8, 512), "answer": (4, 512)},
    "short": {"count": 64, "prompt": (64, 896), "answer": (4, 64)},
    "long": {"count": 20, "prompt": (8, 64), "answer": (64, 512)},
}


def waste(
    requests: list[Request] | None = None, seats: int = 8, max_len: int = 1024, factor: float = 1.5,
    page_size: int = 16,
) -> dict:  # fmt: skip
    """The three ways on one trace of requests: tokens used, taken and reached, by step and in sum."""
    requests = make_requests(**TRACES["mixed"]) if requests is None else requests
    policies = {
        "reserve": Contiguous(None, max_len), "grow": Contiguous(factor, max_len),
        "page": Paged(page_size, seats, max_len),
    }  # fmt: skip
    outcomes = {name: simulate(policy, requests, seats) for name, policy in policies.items()}
    steps = len(outcomes["page"].used)
    sampled = sorted({step * (steps - 1) // (SAMPLES - 1) for step in range(SAMPLES)})
    return {
        "requests": len(requests), "tokens": sum(map(sum, requests)), "seats": seats, "max_len": max_len,
        "factor": factor, "page_size": page_size, "sampled_steps": sampled,
        "used": [outcomes["page"].used[step] for step in sampled],
        "curves": {name: [o.reserved[step] for step in sampled] for name, o in outcomes.items()},
        "policies": {name: outcome.summary() for name, outcome in outcomes.items()},
    }  # fmt: skip
