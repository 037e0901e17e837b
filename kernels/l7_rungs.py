"""The rungs from naive_paged_decode to fast_decode: what each changes, and how it is launched.

Lesson: l7_fast_decode. The kernels are those of L2 and L3, then the one in kernels/l7_ladder.py.
"""

from typing import NamedTuple

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.checks import PagedInputs, check_lesson_inputs, check_offsets, require
from kernels.l2_paged_decode import launch_naive_paged_decode, launch_paged_decode
from kernels.l3_split_kv_decode import (
    combine_tile,
    launch_combine,
    launch_split,
    new_partials,
    resolve_num_splits,
)
from kernels.l7_ladder import _dependent_combine_kernel, _ladder_kernel
from kernels.l7_launch import Tile, has_dependent_launch
from kernels.launch import Launch, choose_launch, input_arguments, new_outputs, num_sms


class Rung(NamedTuple):
    """One change of the rung `base`; launch: a Launch, a Tile, or None (the table's)."""

    base: str | None
    change: str
    launch: Launch | Tile | None
    switches: dict  # what differs from OFF, all rungs below included; the ladder kernel's alone
    kept: bool = True  # on the way to fast_decode


OFF = {
    "EXP2": False, "PREFETCH": False, "UNMASKED": False, "EVEN_SPLITS": False, "TRIGGER": "end",
    "EVICT_FIRST": False, "INT32_OFFSETS": False, "TMA": False, "LAST_COMBINES": False,
}

# region rungs
HABIT = Launch(4, 3)
PREFETCHED = {"EXP2": True, "PREFETCH": True}
WHOLE = PREFETCHED | {"UNMASKED": True}
FILLED = WHOLE | {"EVEN_SPLITS": True}

RUNGS = {
    "naive": Rung(None, "one program a query head", None, {}),
    "packed_habit": Rung("naive", "a group's rows share K and V; launched by habit", HABIT, {}),
    "packed": Rung("packed_habit", "warps and stages from a sweep", None, {}),
    "split_habit": Rung("packed", "several programs a sequence; launched by habit", HABIT, {}),
    "split": Rung("split_habit", "warps and stages from a sweep", None, {}),
    "vector_table": Rung("split", "several pages an iteration, ids as a vector", Tile(32, 1, 5), {}),
    "exp2": Rung("vector_table", "exp2, log2(e) in the scale", Tile(32, 1, 5), {"EXP2": True}),
    "prefetch": Rung("exp2", "page ids one iteration ahead", Tile(32, 2, 3), PREFETCHED),
    "unmasked": Rung("prefetch", "no masks but in the tail", Tile(32, 2, 3), WHOLE),
    "fill_sms": Rung("unmasked", "even splits, whole programs an SM", Tile(64, 2, 3), FILLED),
    "dependent_launch": Rung(
        "fill_sms", "the combine is launched early", Tile(64, 2, 3), FILLED | {"TRIGGER": "late"}
    ),
    "early_trigger": Rung(
        "dependent_launch", "and at once", Tile(64, 2, 3), FILLED | {"TRIGGER": "early"}
    ),
    # Off the ladder: changes of one rung that were not kept.
    "evict_first": Rung(
        "unmasked", "K and V leave the L2 cache first", Tile(32, 1, 4), WHOLE | {"EVICT_FIRST": True},
        False,
    ),
    "int32_offsets": Rung(
        "unmasked", "page offsets in int32", Tile(32, 1, 3), WHOLE | {"INT32_OFFSETS": True}, False
    ),
    "tma": Rung(
        "unmasked", "TMA copies a page an iteration", Tile(16, 1, 3), WHOLE | {"TMA": True}, False
    ),
    "last_combines": Rung(
        "fill_sms", "the last program combines", Tile(32, 1, 3), FILLED | {"LAST_COMBINES": True}, False
    ),
}
# endregion rungs


# region fill
PROGRAMS_PER_SM = 2  # of the ladder's tile, from EVEN_SPLITS on  #: programs_per_sm


def fill_num_splits(
    batch_size: int, num_kv_heads: int, max_seq_len: int, block_n: int, num_sms: int,
    programs_per_sm: int = PROGRAMS_PER_SM,
) -> int:
    """Splits a sequence for at most programs_per_sm programs an SM, and nearly as many."""
    wanted = programs_per_sm * num_sms // max(1, batch_size * num_kv_heads)  #: fill
    return max(1, min(wanted, -(-max_seq_len // block_n)))  # no more than there are tiles
# endregion fill


# region decode
def ladder_decode(
    rung, q, k_cache, v_cache, block_table, seq_lens, *, sm_scale=None, kv_layout="NHD",
    return_lse=False, num_splits=None, max_seq_len=None, launch=None,
):
    """Decode attention by one rung, a key of RUNGS; the contract is L3's, `split_kv_decode`.

    Args:
        num_splits, max_seq_len: as there; None: L3's choice, from fill_sms on `fill_num_splits`.
        launch: a Tile (of the first five rungs: a Launch) in place of the rung's own.
    """
    require(rung in RUNGS, "rung", rung, f"one of {', '.join(RUNGS)}")
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, kv_layout)
    launch = resolve_launch(rung, q, inputs, launch)
    num_splits = resolve_splits(rung, q, inputs, num_splits, max_seq_len, launch)
    o, lse = new_outputs(q)
    partials = new_partials(q, num_splits) if num_splits else None
    counters = new_counters(q, inputs) if RUNGS[rung].switches.get("LAST_COMBINES") else None
    arguments = (q, inputs, block_table, seq_lens, sm_scale, launch)
    launch_rung(rung, o, lse, partials, counters, *arguments)
    return (o, lse) if return_lse else o


def new_counters(q, inputs: PagedInputs) -> torch.Tensor:
    """[B, Hkv] int32 zeros; each launch leaves them zeros, so that one tensor serves for all."""
    return torch.zeros(inputs.batch_size, inputs.num_kv_heads, dtype=torch.int32, device=q.device)
# endregion decode


# region launches
def launch_rung(
    rung: str, o, lse, partials, counters, q, inputs: PagedInputs, block_table, seq_lens, sm_scale,
    launch: Launch | Tile,
):
    """The launches alone, into given outputs and scratch. Returns the compiled first kernel."""
    arguments = (q, inputs, block_table, seq_lens, sm_scale)
    if rung == "naive":
        return launch_naive_paged_decode(o, lse, *arguments, launch)
    if rung.startswith("packed"):
        return launch_paged_decode(o, lse, *arguments, launch)
    o_partial, lse_partial = partials
    dependent = False
    if isinstance(launch, Launch):
        compiled = launch_split(o_partial, lse_partial, None, *arguments, launch)
    else:
        switches = OFF | RUNGS[rung].switches
        if switches["TRIGGER"] != "end":
            dependent = has_dependent_launch(q.device)
            switches["TRIGGER"] = switches["TRIGGER"] if dependent else "end"
        compiled = launch_ladder(o, lse, *partials, counters, *arguments, launch, switches)
        if switches["LAST_COMBINES"]:
            return compiled
    states = o_partial.permute(2, 0, 1, 3), lse_partial.permute(2, 0, 1)
    (launch_dependent_combine if dependent else launch_combine)(o, lse, *states)
    return compiled


def launch_ladder(
    o, lse, o_partial, lse_partial, counters, q, inputs: PagedInputs, block_table, seq_lens,
    sm_scale, tile: Tile, switches: dict,
):
    """The ladder's kernel alone, with every switch given."""
    if switches["INT32_OFFSETS"]:
        for name, cache in (("k_cache", inputs.k_cache), ("v_cache", inputs.v_cache)):
            check_offsets(name, cache.shape, cache.stride())  #: int32_fits
    q, k, v, *rest = input_arguments(q, inputs, block_table, seq_lens, sm_scale)
    if switches["TMA"]:
        k, v = page_descriptor("k_cache", k), page_descriptor("v_cache", v)
    in_place = switches["LAST_COMBINES"]
    return _ladder_kernel[(inputs.batch_size, inputs.num_kv_heads, o_partial.shape[2])](
        o_partial, lse_partial, o if in_place else None, lse if in_place else None, counters,
        q, k, v, *rest,
        GROUP_SIZE=inputs.group_size, HEAD_DIM=inputs.head_dim, PAGE_SIZE=inputs.page_size,
        BLOCK_G=inputs.block_g, BLOCK_N=tile.block_n, **switches,
        num_warps=tile.num_warps, num_stages=tile.num_stages,
    )


def launch_dependent_combine(o, lse, o_partial, lse_partial):
    """L3's combine, which may start while the kernel before it still runs; needs sm_90 or newer."""
    num_splits, batch_size, num_qo_heads, head_dim = o_partial.shape
    block_s, block_d = combine_tile(num_splits, head_dim)
    _dependent_combine_kernel[(batch_size, num_qo_heads, triton.cdiv(head_dim, block_d))](
        o, lse, o_partial, lse_partial, num_splits, head_dim,
        *o_partial.stride()[:3], *lse_partial.stride(),
        BLOCK_S=block_s, BLOCK_D=block_d, num_warps=1, launch_pdl=True,  #: launch_pdl
    )


def page_descriptor(name: str, cache: torch.Tensor) -> TensorDescriptor:
    """What TMA needs to find a page of one KV head in a cache [num_pages, page_size, Hkv, D]."""
    size = cache.element_size()
    places = cache.data_ptr(), *(stride * size for stride in cache.stride()[:3])
    aligned = all(place % 16 == 0 for place in places)
    wanted = "multiples of 16 bytes, for TMA"
    require(aligned, f"the address or a stride of {name}", cache.stride(), wanted)
    return TensorDescriptor.from_tensor(cache, [1, cache.shape[1], 1, cache.shape[3]])
# endregion launches


# region choose
def resolve_launch(rung: str, q, inputs: PagedInputs, launch=None) -> Launch | Tile:
    """The given launch, the rung's, or the table's."""
    launch = launch or RUNGS[rung].launch
    if launch is None:
        return choose_launch(inputs, q, packed=rung != "naive")
    return fit_tile(launch, q, inputs, rung == "tma") if isinstance(launch, Tile) else launch


def fit_tile(tile: Tile, q, inputs: PagedInputs, one_page: bool = False) -> Tile:
    """The tile where a token has 256 bytes (D 128 in fp16); elsewhere one as large in bytes.

    Warps for at most 2048 elements each, and one buffer in place of several, where a page alone
    makes it larger.
    """
    size, head_dim = q.element_size(), inputs.head_dim
    page_bytes = inputs.page_size * head_dim * size
    wanted = "at most 65536: a page of K and one of V, and no more, fit into shared memory"
    require(page_bytes <= 2**16, "page_size * head_dim in bytes", page_bytes, wanted)
    block_n = min(tile.block_n, 64 * 256 // (head_dim * size))
    block_n = inputs.page_size if one_page else max(16, inputs.page_size, block_n)
    rows = max(block_n * (4 if size == 4 else 1), inputs.block_g)  # products of fp32 take registers
    num_warps = max(tile.num_warps, min(16, rows * head_dim // 2048))
    fits = block_n * head_dim * size <= 2**15
    # Of ordinary copies two stages are one buffer, of TMA's two.
    return Tile(block_n, num_warps, tile.num_stages if fits else 1 if one_page else 2)


def resolve_splits(rung: str, q, inputs: PagedInputs, num_splits, max_seq_len, launch) -> int:
    """The number of splits to launch, as in L3; 0 for the rungs below it, which have none."""
    if rung in ("naive", "packed_habit", "packed"):
        return 0
    if num_splits is None and RUNGS[rung].switches.get("EVEN_SPLITS"):
        capacity = inputs.max_pages * inputs.page_size
        longest = capacity if max_seq_len is None else min(max_seq_len, capacity)
        sizes = inputs.batch_size, inputs.num_kv_heads, longest, launch.block_n
        return fill_num_splits(*sizes, num_sms(q.device))
    return resolve_num_splits(inputs, q, num_splits, max_seq_len)
# endregion choose
