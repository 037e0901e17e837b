"""Which program read which physical pages of the KV cache, in what order, and how many bytes: plain data.

    with Tables() as tables, trace() as t:
        paged_decode(...)
    page_map(t, tables)

    launches  [{launch, kernel, grid, num_pages, page_size, num_kv_heads, head_dim, dtype,
                caches: {role: name},
                programs: [{program, k, v, reads: [{page, heads, slots, k, v}]}],
                pages: [{page, programs, heads, tokens, bytes, distinct, times}],
                bytes: {k, v, total, distinct, least, beyond}, missed}]

role       "k" or "v"; both as keys give bytes
reads      in the order in which the program first touched the pages; none for a program that read nothing
heads      the KV heads that were read of the page; slots: of how many tokens
bytes      what loads asked for, without the lanes that a mask left out; one load asks for an element once
distinct   the same, each byte once; times: how often the most wanted element of the page was read
tokens     slots of the page that hold a token
least      what all those tokens have: every KV head, K and V
beyond     bytes read from slots that hold no token; missed: tokens of which something was never read

Without tables, tokens and missed are null and least is distinct. `programs` of a page are indices.
"""

from dataclasses import dataclass

import numpy as np

from scripts.runner.tables import Tables
from scripts.trace_record import Access, Launch, Trace, View

MAX_PROGRAMS = 4096  # listed of a launch; of more, those that read something
MAX_PAGES = 4096  # likewise
_NAMES = {"k": ("k_ptr", "k_cache_ptr", "k_pages_ptr"), "v": ("v_ptr", "v_cache_ptr", "v_pages_ptr")}


def page_map(trace: Trace, tables: Tables | None = None) -> dict | None:
    """The map of every launch that read a KV cache; None where none did."""
    reads: dict[int, list[Access]] = {}
    written = set()
    for access in trace.accesses:
        number = access.launch.number
        if access.op == "store":
            written.add((number, access.name))
        else:
            reads.setdefault(number, []).append(access)
    launches = []
    for launch in trace.launches:
        caches = _caches(launch, {name for number, name in written if number == launch.number})
        mine = reads.get(launch.number, [])
        names = {view.name for view in caches.values()}
        if any(access.name in names for access in mine):
            launches.append(_LaunchMap(launch, caches, tables).map(mine))
    return {"launches": launches} if launches else None


def _caches(launch: Launch, written: set[str]) -> dict[str, View]:
    """Role ("k", "v") -> the cache: by the names of the parameters, else the two that look like caches."""
    views = [
        view
        for view in launch.views
        if len(view.shape) == 4 and "float" in str(view.tensor.dtype) and view.name not in written
    ]
    named = {
        role: view
        for role, names in _NAMES.items()
        for view in views
        if view.name.lower().removesuffix("_ptr") in {name.removesuffix("_ptr") for name in names}
    }
    if named:
        return named
    return dict(zip("kv", views, strict=True)) if len(views) == 2 and views[0].shape == views[1].shape else {}


def _heads_first(shape: tuple[int, ...]) -> bool:
    """Whether a cache is [num_pages, Hkv, page_size, D]: axis 2 may be a page, axis 1 may not."""
    may_be_a_page = [size >= 16 and size & (size - 1) == 0 for size in shape[1:3]]
    return may_be_a_page == [False, True]


@dataclass
class _Page:
    """What one program, or all of them, read of one page."""

    heads: np.ndarray  # bool [Hkv]
    slots: np.ndarray  # bool [page_size]
    bytes: dict[str, int]  # by role


class _LaunchMap:
    """The map of one launch."""

    def __init__(self, launch: Launch, caches: dict[str, View], tables: Tables | None) -> None:
        self.launch, self.caches = launch, caches
        cache = next(iter(caches.values()))
        self.num_pages, *inner, self.head_dim = cache.shape
        self.heads_first = _heads_first(cache.shape)
        self.num_kv_heads, self.page_size = inner if self.heads_first else inner[::-1]
        self.itemsize = cache.tensor.element_size()
        self.dtype = str(cache.tensor.dtype).removeprefix("torch.")
        self.counts = {role: np.zeros(int(np.prod(view.shape)), np.int32) for role, view in caches.items()}
        self.tokens = tables.tokens(launch.number, self.num_pages, self.page_size) if tables else None
        self.pages: dict[tuple[int, int, int], dict[int, _Page]] = {}  # by program, then in order

    def map(self, accesses: list[Access]) -> dict:
        """The map as data."""
        roles = {view.name: role for role, view in self.caches.items()}
        for access in accesses:
            if access.name in roles:
                self._note(roles[access.name], access)
        programs = self._programs()
        listed = {program: place for place, (program, _) in enumerate(programs)}
        return {
            "launch": self.launch.number, "kernel": self.launch.kernel, "grid": list(self.launch.grid),
            "num_pages": self.num_pages, "page_size": self.page_size, "num_kv_heads": self.num_kv_heads,
            "head_dim": self.head_dim, "dtype": self.dtype,
            "caches": {role: view.name for role, view in self.caches.items()},
            "programs": [self._program(*program) for program in programs],
            "pages": self._pages(listed), "bytes": self._bytes(), "missed": self._missed(),
        }  # fmt: skip

    def _note(self, role: str, access: Access) -> None:
        index = access.index[access.index >= 0]
        elements, first = np.unique(index, return_index=True)  # a lane asks for its element again: once
        self.counts[role][elements] += 1
        page_of, slot, head = self._places(elements)
        mine = self.pages.setdefault(tuple(access.program), {})
        order = {int(page): None for page in page_of[np.argsort(first)]}
        for page in order:
            here = page_of == page
            read = mine.get(page)
            if read is None:
                read = mine[page] = _Page(
                    np.zeros(self.num_kv_heads, bool),
                    np.zeros(self.page_size, bool),
                    dict.fromkeys(self.caches, 0),
                )
            read.heads[head[here]] = True
            read.slots[slot[here]] = True
            read.bytes[role] += int(here.sum()) * self.itemsize

    def _places(self, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Page, slot and KV head of each element."""
        a, b = (self.num_kv_heads, self.page_size)[:: 1 if self.heads_first else -1]
        page, row, column, _ = np.unravel_index(elements, (self.num_pages, a, b, self.head_dim))
        return (page, column, row) if self.heads_first else (page, row, column)

    def _programs(self) -> list[tuple[tuple[int, int, int], dict[int, _Page]]]:
        grid = tuple(self.launch.grid) or (0, 0, 0)  # a launch that failed has none
        everyone = list(np.ndindex(grid)) if 0 < np.prod(grid) <= MAX_PROGRAMS else sorted(self.pages)
        return [(program, self.pages.get(program, {})) for program in everyone[:MAX_PROGRAMS]]

    def _program(self, program: tuple[int, int, int], pages: dict[int, _Page]) -> dict:
        reads = [
            {
                "page": page,
                "heads": np.flatnonzero(read.heads).tolist(),
                "slots": int(read.slots.sum()),
                **read.bytes,
            }
            for page, read in pages.items()
        ]
        totals = {role: sum(read[role] for read in reads) for role in self.caches}
        return {"program": list(program), **totals, "reads": reads}

    def _per_page(self, counts: np.ndarray) -> np.ndarray:
        return counts.reshape(self.num_pages, -1)

    def _pages(self, listed: dict[tuple[int, int, int], int]) -> list[dict]:
        readers: dict[int, list[int]] = {}
        heads: dict[int, np.ndarray] = {}
        for program, pages in self.pages.items():
            for page, read in pages.items():
                heads[page] = heads.get(page, False) | read.heads
                if program in listed:
                    readers.setdefault(page, []).append(listed[program])
        tokens = None if self.tokens is None else self.tokens.sum(1)
        counts = [self._per_page(counts) for counts in self.counts.values()]
        shown = range(self.num_pages)
        if self.num_pages > MAX_PAGES:
            used = np.flatnonzero(tokens).tolist() if tokens is not None else []
            shown = sorted({*heads, *used})[:MAX_PAGES]
        return [
            {
                "page": page,
                "programs": sorted(readers.get(page, [])),
                "heads": np.flatnonzero(heads[page]).tolist() if page in heads else [],
                "tokens": None if tokens is None else int(tokens[page]),
                "bytes": int(sum(c[page].sum() for c in counts)) * self.itemsize,
                "distinct": int(sum((c[page] > 0).sum() for c in counts)) * self.itemsize,
                "times": int(max(c[page].max(initial=0) for c in counts)),
            }
            for page in shown
        ]

    def _bytes(self) -> dict:
        by_role = {role: int(counts.sum()) * self.itemsize for role, counts in self.counts.items()}
        distinct = int(sum((counts > 0).sum() for counts in self.counts.values())) * self.itemsize
        least, beyond = distinct, 0
        if self.tokens is not None:
            a_token = self.num_kv_heads * self.head_dim * self.itemsize * len(self.caches)
            least = int(self.tokens.sum()) * a_token
            free = ~self._everywhere(self.tokens)
            beyond = int(sum(counts[free].sum() for counts in self.counts.values())) * self.itemsize
        total = sum(by_role.values())
        return {**by_role, "total": total, "distinct": distinct, "least": least, "beyond": beyond}

    def _everywhere(self, slots: np.ndarray) -> np.ndarray:
        """bool [num_pages, page_size] -> the same of every element, flat."""
        shape = next(iter(self.caches.values())).shape
        wide = slots[:, None, :, None] if self.heads_first else slots[:, :, None, None]
        return np.broadcast_to(wide, shape).ravel()

    def _missed(self) -> int | None:
        """Tokens of which some element, of K or of V, was never read."""
        if self.tokens is None:
            return None
        read = np.ones((self.num_pages, self.page_size), bool)
        axes = (1, 3) if self.heads_first else (2, 3)
        for role, view in self.caches.items():
            read &= (self.counts[role] > 0).reshape(view.shape).all(axes)
        return int((self.tokens & ~read).sum())
