"""Random cases for the judge of scripts/token_edits.py: each draws a call, makes it, and compares.

A case takes a generator of choices, one of tensors, and the name of the kernel that is judged; it raises
DifferenceError where the kernel is wrong.
"""

import math
import random

import torch

from scripts.token_edit_memory import INF, NAN, check, far, inside, largest_of, run, softmax_sum


def _dtype(rng: random.Random) -> torch.dtype:
    return rng.choice((torch.float32, torch.float16))


def row_case(rng: random.Random, draw: torch.Generator, kernel: str) -> None:
    """online_softmax on a row, often with a gap of -inf, often from the first score on."""
    from kernels import online_softmax

    n, head_dim, dtype = rng.randrange(40), rng.choice((1, 3, 8, 17)), _dtype(rng)
    scale, level = rng.choice((0.1, 3.0, 30.0)), rng.choice((0, 0, 900, -900))
    scores = (scale * torch.randn(n, generator=draw) + level).to(dtype)
    end = rng.randrange(n + 1)
    scores[rng.choice((0, 0, end, end // 2)) : end] = -INF
    values = torch.randn(n, head_dim, generator=draw).to(dtype)
    block_size = 2 ** rng.randrange(6)
    result = run(
        lambda: online_softmax(inside(scores), inside(values), block_size=block_size, return_lse=True)
    )
    right = softmax_sum(scores.double(), values.double())
    check(result, right, dtype, largest_of(scores), largest_of(values))


def merge_case(rng: random.Random, draw: torch.Generator, kernel: str) -> None:
    """merge_states of states that are partly empty, in strides of their own; or a whole split decode."""
    if rng.random() < 0.3:
        return paged_case(rng, draw, kernel)
    from kernels import merge_states

    splits, batch, heads = rng.choice((1, 2, 3, 5, 17, 70)), rng.choice((0, 1, 2)), rng.choice((1, 2, 3))
    head_dim, dtype = rng.choice((1, 7, 16, 40, 130)), _dtype(rng)
    o = torch.randn(splits, batch, heads, head_dim, generator=draw).to(dtype)
    scale, level = rng.choice((1.0, 10.0)), rng.choice((0, 0, 1e3, -1e3))
    lse = scale * torch.randn(splits, batch, heads, generator=draw) + level
    for _ in range(rng.randrange(3)):  # neighbours that hold nothing, often from the first on
        begin = rng.choice((0, rng.randrange(splits)))
        lse[begin : rng.randrange(splits) + 1, :, rng.randrange(heads) :] = -INF
    right = softmax_sum(lse.double().permute(1, 2, 0), o.double().permute(1, 2, 0, 3))
    axes = rng.choice(((0, 1, 2, 3), (1, 2, 0, 3), (2, 0, 1, 3)))  # as they lie in memory
    states = inside(o.permute(axes)).permute(*(axes.index(i) for i in range(4)))
    if splits <= 3 and dtype == torch.float16 and rng.random() < 0.2:
        states = far(o, 0)
    result = run(lambda: merge_states(states, inside(lse)))
    return check(result, right, dtype, largest_of(lse), largest_of(o))


def paged_case(rng: random.Random, draw: torch.Generator, kernel: str) -> None:
    """A paged decode: odd groups, empty sequences, both layouts, views, tables with -1 past the end."""
    few_heads = kernel not in ("l2_paged", "l3_split")  # a program a query head
    group = rng.choice((1, 2, 3) if few_heads or rng.random() < 0.7 else (5, 7, 16, 17))
    splits = kernel.startswith("l3")  # more programs a sequence
    kv_heads = rng.choice((1, 1, 1, 2) if splits else (1, 1, 2, 3))
    head_dim, page = rng.choice((16, 16, 32)), rng.choice((16, 16, 32))
    lens = _lengths(rng, page, most=2 if splits else 3)
    if splits and rng.random() < 0.05:  # more splits that hold something than a step of a combine takes
        kv_heads, page, lens = 1, 16, [rng.randrange(17 * 16, 23 * 16)]
    is_far = rng.random() < 0.05
    if is_far:
        lens = [min(n, page) for n in lens]
    dtype = torch.float16 if is_far else _dtype(rng)
    q = torch.randn(len(lens), group * kv_heads, head_dim, generator=draw).to(dtype)
    table, used = _pages(rng, lens, page, spare=0 if is_far else 2)
    shape = (len(used), page, kv_heads, head_dim)
    k, v = (torch.randn(shape, generator=draw).to(dtype) for _ in range(2))
    scale = rng.choice((None, None, 0.3, -0.5, 1.0, 60.0))
    right, largest = _attention(q, k, v, table, lens, 1 / math.sqrt(head_dim) if scale is None else scale)

    k, v = (torch.where(used[..., None, None], c, rng.choice((NAN, NAN, INF))) for c in (k, v))
    layout = rng.choice(("NHD", "HND"))
    if layout == "HND":
        k, v = k.transpose(1, 2), v.transpose(1, 2)
    k, v = _stored(rng, k.contiguous(), v.contiguous(), is_far)
    seq_lens = inside(torch.tensor(lens, dtype=torch.int32), 5)
    arguments = (far(q, 2**18) if is_far else inside(q), k, v, inside(table, -1), seq_lens)
    result = run(lambda: _call(rng, kernel, arguments, {"sm_scale": scale, "kv_layout": layout}))
    check(result, right, dtype, largest, 4.0)


def _lengths(rng: random.Random, page: int, most: int) -> list[int]:
    """Of one to `most` sequences: around a page's edges, or anything up to a few pages."""
    some = rng.randrange(1, most + 1)
    lens = [rng.choice((0, 1, page - 1, page, page + 1, rng.randrange(70))) for _ in range(some)]
    return lens if rng.random() < 0.8 else [rng.randrange(4 * page), *lens[1:]]


def _pages(rng: random.Random, lens: list[int], page: int, spare: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A block table over scattered pages, and which slots [num_pages, page] hold tokens."""
    counts = [-(-n // page) for n in lens]
    ids = rng.sample(range(sum(counts) + spare), sum(counts) + spare)
    used = torch.zeros(len(ids), page, dtype=torch.bool)
    columns, beyond = max(counts) + rng.randrange(3), rng.choice((-1, -1, 2**31 - 1))
    table = torch.full((len(lens), columns), beyond, dtype=torch.int32)
    for b, (n, count) in enumerate(zip(lens, counts, strict=True)):
        for i in range(count):
            table[b, i] = page_id = ids.pop()
            used[page_id, : n - i * page] = True
    return table, used


def _attention(q, k, v, table, lens: list[int], scale: float):
    """((o, lse), the largest |score|) in float64, one sequence after the other; K and V as NHD."""
    group, results, largest = q.shape[1] // k.shape[2], [], 0.0
    for b, n in enumerate(lens):
        pages = table[b, : -(-n // k.shape[1])].long()
        keys, values = (
            cache[pages].flatten(0, 1)[:n].double().repeat_interleave(group, 1).transpose(0, 1)
            for cache in (k, v)
        )  # [Hq, n, D]
        scores = (keys @ q[b].double()[..., None])[..., 0] * scale
        largest = max(largest, largest_of(scores))
        results.append(softmax_sum(scores, values))
    return tuple(torch.stack(part) for part in zip(*results, strict=True)), largest


def _stored(rng: random.Random, k: torch.Tensor, v: torch.Tensor, is_far: bool):
    """Both caches: pages far apart; or interleaved by page or by row; or V alone with gaps."""
    if is_far:
        return far(k, 2**17), far(v, 2**19)
    storage = rng.choice(("apart", "pages", "rows"))
    if storage == "apart":
        return inside(k), inside(torch.cat([v, torch.full_like(v, NAN)], -1))[..., : v.shape[-1]]
    axis = 1 if storage == "pages" else 3
    both = inside(torch.stack([k, v], axis))
    return both.select(axis, 0), both.select(axis, 1)


def _call(rng: random.Random, kernel: str, arguments: tuple, options: dict):
    """(o, lse) of a public function that runs the kernel."""
    import kernels

    options["return_lse"] = True
    if kernel == "l2_naive":
        return kernels.naive_paged_decode(*arguments, **options)
    if kernel == "l2_paged" and rng.random() < 0.8:  # else by the split kernel, which has the same loop
        swapped = rng.random() < 0.3
        return (_swapped if swapped else kernels.paged_decode)(*arguments, **options)
    few, many = (2, 2, 3, 3, 4, 5), (40, 25)
    options["num_splits"] = rng.choice(many if max(arguments[-1]) > 256 else few)
    unnormalized = kernel == "l3_combine_unnormalized" or (kernel == "l3_split" and rng.random() < 0.5)
    function = kernels.split_kv_decode_unnormalized if unnormalized else kernels.split_kv_decode
    return function(*arguments, **options)


def _swapped(q, k_cache, v_cache, table, seq_lens, *, sm_scale, kv_layout, return_lse):
    """paged_decode by the kernel's other way to transpose K, which no public function takes."""
    from kernels.checks import check_lesson_inputs
    from kernels.l2_paged_decode import launch_paged_decode
    from kernels.launch import choose_launch, new_outputs

    inputs = check_lesson_inputs(q, k_cache, v_cache, table, seq_lens, kv_layout)
    o, lse = new_outputs(q)
    launch = choose_launch(inputs, q)
    launch_paged_decode(o, lse, q, inputs, table, seq_lens, sm_scale, launch, swap_k_strides=True)
    return o, lse
