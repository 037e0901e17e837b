"""What each known mistake of a paged decode would compute, in float64: wrong references, for L2 and L3.

A library for scripts/diagnose.py. A mistake is told by what it gives, not by how it is written, so these
diagnose a reader's own kernel as well as our mutants. Where o is NaN its lse is not compared, and an lse of
None is compared nowhere.
"""

import math
from collections.abc import Callable, Iterator

import torch

Result = tuple[torch.Tensor, torch.Tensor | None]  # o, lse
Range = Callable[[int, int, int, int], tuple[int, int]]


def attention(problem, whole_pages: bool = False, interleaved: bool = False, sm_scale=None) -> Result:
    """Right, but for what is asked for: tokens past the length, h % Hkv, another scale."""
    case, page_size = problem.case, problem.case.page_size
    rounded = [-(-n // page_size) * page_size if whole_pages else n for n in case.lens]
    states = [_state(problem, b, range(n), interleaved, sm_scale) for b, n in enumerate(rounded)]
    return torch.stack([o for o, _ in states]), torch.stack([lse for _, lse in states])


def _tokens(problem, b: int, positions, cache: torch.Tensor) -> torch.Tensor:
    """[n, Hkv, D] float64 of sequence b's slots at these positions, in a cache as NHD."""
    at = torch.tensor(list(positions), dtype=torch.int64)
    page_size = problem.case.page_size
    return cache[problem.case.block_table[b, at // page_size].long(), at % page_size].double()


def _state(problem, b: int, positions, interleaved: bool = False, sm_scale=None) -> Result:
    """o [Hq, D] and lse [Hq] of sequence b over some of its positions; of none: 0 and -inf."""
    case = problem.case
    q = case.q[b].double()
    if not len(positions):
        return torch.zeros_like(q), torch.full(q.shape[:1], -math.inf, dtype=torch.float64)
    k, v = (_tokens(problem, b, positions, cache) for cache in case.nhd_caches)
    heads = torch.arange(len(q))
    kv_heads = heads % k.shape[1] if interleaved else heads // (len(q) // k.shape[1])
    if sm_scale is None:
        sm_scale = case.kwargs["sm_scale"] or q.shape[1] ** -0.5
    scores = torch.einsum("hd,nhd->hn", q, k[:, kv_heads]) * sm_scale
    o = torch.einsum("hn,nhd->hd", torch.softmax(scores, -1), v[:, kv_heads])
    return o, torch.logsumexp(scores, -1)


def nan_rows(result: Result, rows) -> Result:
    """The same with o NaN in some rows."""
    o = result[0].clone()
    o[torch.as_tensor(rows, dtype=torch.bool)] = math.nan
    return o, result[1]


def right(problem) -> Iterator[Result]:
    """Nothing wrong in the values."""
    yield attention(problem)


def interleaved_heads(problem) -> Iterator[Result]:
    """Query head h reads KV head h % Hkv."""
    yield attention(problem, interleaved=True)


def scale_left_out(problem) -> Iterator[Result]:
    """Scores as if sm_scale were 1."""
    yield attention(problem, sm_scale=1.0)


def scores_not_masked(problem) -> Iterator[Result]:
    """Each empty slot of the last page has a score of 0 and a value of 0."""
    o, lse = attention(problem)
    empty = torch.tensor([[-n % problem.case.page_size] for n in problem.case.lens], dtype=torch.float64)
    more = torch.logaddexp(lse, empty.log())
    share = torch.where(lse > -math.inf, torch.exp(lse - more), 0.0)
    yield o * share[..., None], more


def v_not_masked(problem) -> Iterator[Result]:
    """Weights of 0 times what lies in the empty slots of the last page."""
    o, lse = attention(problem)
    v_cache = problem.case.nhd_caches[1]
    for b, n in enumerate(problem.case.lens):
        empty = range(n, n + -n % problem.case.page_size)
        zeros = (0.0 * _tokens(problem, b, empty, v_cache)).sum(0)  # NaN of a NaN or an inf
        o[b] += zeros.repeat_interleave(o.shape[1] // len(zeros), 0)
    yield o, lse


def nothing_masked(problem) -> Iterator[Result]:
    """The last page counts in full."""
    yield attention(problem, whole_pages=True)


def empty_sequences_nan(problem) -> Iterator[Result]:
    """NaN for every empty sequence."""
    yield nan_rows(attention(problem), [n == 0 for n in problem.case.lens])


def right_or_empty_nan(problem) -> Iterator[Result]:
    """Right, but perhaps for empty sequences."""
    yield from right(problem)
    yield from empty_sequences_nan(problem)


def whole_range(n: int, split_id: int, num_splits: int, page_size: int) -> tuple[int, int]:
    """The right range of pages, not held to the number of pages."""
    num_pages = -(-n // page_size)
    pages = -(-num_pages // num_splits)
    return split_id * pages, (split_id + 1) * pages


def rounded_down(n: int, split_id: int, num_splits: int, page_size: int) -> tuple[int, int]:
    """Pages a split rounded down."""
    pages = -(-n // page_size) // num_splits
    return split_id * pages, (split_id + 1) * pages


def twice_at_cuts(n: int, split_id: int, num_splits: int, page_size: int) -> tuple[int, int]:
    """Cut by tokens; the page at a cut belongs to both sides."""
    tokens = -(-n // num_splits)
    return split_id * tokens // page_size, -(-min((split_id + 1) * tokens, n) // page_size)


def lost_at_cuts(n: int, split_id: int, num_splits: int, page_size: int) -> tuple[int, int]:
    """Cut by tokens; the page at a cut belongs to neither side."""
    tokens = -(-n // num_splits)
    end = (split_id + 1) * tokens
    return -(-split_id * tokens // page_size), -(-n // page_size) if end >= n else end // page_size


def split_states(problem, ranges: Range = whole_range) -> tuple[torch.Tensor, torch.Tensor]:
    """o [S, B, Hq, D] and lse [S, B, Hq] of every split."""
    case, splits = problem.case, problem.num_splits
    rows = []
    for split_id in range(splits):
        for b, n in enumerate(case.lens):
            begin, end = (case.page_size * p for p in ranges(n, split_id, splits, case.page_size))
            rows.append(_state(problem, b, range(begin, max(begin, min(end, n)))))
    shape = (splits, len(case.lens))
    o, lse = (torch.stack([row[i] for row in rows]).unflatten(0, shape) for i in (0, 1))
    return o, lse


def merged(o: torch.Tensor, lse: torch.Tensor) -> Result:
    """The right merge of states."""
    total = torch.logsumexp(lse, 0)
    weights = torch.where(lse > -math.inf, torch.exp(lse - total), 0.0)
    return (weights[..., None] * o).sum(0), total


def of_ranges(ranges: Range) -> Callable[[object], Iterator[Result]]:
    """The mistake of splits with other ranges."""

    def results(problem) -> Iterator[Result]:
        yield merged(*split_states(problem, ranges))

    return results


def merge_without_lse(problem) -> Iterator[Result]:
    """The mean over all splits, or over those that have a token."""
    o, lse = split_states(problem)
    yield o.mean(0), None
    yield merged(o, torch.where(lse > -math.inf, 0.0, -math.inf))[0], None


def merge_without_max(problem) -> Iterator[Result]:
    """exp(lse) in fp32, as it is."""
    o, lse = (t.float() for t in split_states(problem))
    weights = torch.exp(lse)
    total = weights.sum(0)
    safe = torch.where(total > 0, total, 1.0)
    yield (weights[..., None] * o).sum(0) / safe[..., None], None


def fp16_partials(problem) -> Iterator[Result]:
    """The o of every split, perhaps also its lse, rounded to fp16."""
    o, lse = split_states(problem)
    yield merged(o.half().double(), lse)
    yield merged(o.half().double(), lse.half().double())


def base_2_lse(problem) -> Iterator[Result]:
    """lse times log2(e), merged as if it were natural; the sum may be turned back in the end."""
    o, lse = split_states(problem)
    o, _ = merged(o, lse / math.log(2))
    yield o, None


def last_split_left_out(problem) -> Iterator[Result]:
    """All splits but the last."""
    o, lse = split_states(problem)
    yield merged(o[:-1], lse[:-1])


def empty_split_nan(problem) -> Iterator[Result]:
    """NaN wherever a split has no token."""
    empty = torch.isneginf(split_states(problem)[1]).any(0)
    yield nan_rows(attention(problem), empty)


def page_end_unbounded(problem) -> Iterator[Result]:
    """Right; or NaN wherever a split of a sequence with tokens walks through empty pages alone."""
    yield attention(problem)
    empty = torch.isneginf(split_states(problem)[1]).any(0)
    has_tokens = torch.tensor([[n > 0] for n in problem.case.lens])
    yield nan_rows(attention(problem), empty & has_tokens)


# By mutant: what it gives, and the sign that it leaves besides (scripts/diagnose.py), if any.
L2_MISTAKES = {
    "interleaved_heads": (interleaved_heads, None),
    "scale_left_out": (scale_left_out, None),
    "scores_not_masked": (scores_not_masked, None),
    "v_not_masked": (v_not_masked, None),
    "nothing_masked": (nothing_masked, None),
    "empty_sequence_unwritten": (empty_sequences_nan, "unwritten"),
    "padding_rows_stored": (right, "padding"),
    "table_past_end": (right_or_empty_nan, "table"),
    "page_id_clamped": (right, "page_0"),
    "int32_page_offset": (right, "far_page"),
    "tf32": (right, "tf32"),
    "tile_of_8_tokens": (right, "small_tile"),
}
L3_MISTAKES = {
    "merge_without_lse": (merge_without_lse, None),
    "merge_without_max": (merge_without_max, None),
    "fp16_partials": (fp16_partials, None),
    "ranges_rounded_down": (of_ranges(rounded_down), None),
    "cut_page_counted_twice": (of_ranges(twice_at_cuts), None),
    "cut_page_lost": (of_ranges(lost_at_cuts), None),
    "base_2_lse": (base_2_lse, None),
    "last_split_left_out": (last_split_left_out, None),
    "empty_split_nan": (empty_split_nan, None),
    "page_end_unbounded": (page_end_unbounded, "table"),
}
