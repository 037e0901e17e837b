"""What the bench times for each lesson: a launch, what it writes, how users call it, and how big it is."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from kernels.l2_paged_decode import (
    launch_naive_paged_decode,
    launch_paged_decode,
    naive_paged_decode,
    paged_decode,
)
from kernels.l3_split_kv_decode import (
    launch_combine,
    launch_split,
    new_partials,
    resolve_num_splits,
    split_kv_decode,
)
from kernels.l3_unnormalized_partials import split_kv_decode_unnormalized
from kernels.launch import Launch, choose_launch, new_outputs
from scripts.bench_inputs import PageSet, Pool, Shape

SHAPES = ((1, 32768), (8, 4096), (64, 1024))
PAGE_SIZES = {"l2_paged_decode": (16, 64), "l3_split_kv_decode": (16,)}
L7 = "l7_fast_decode"  # its bench is a contest: scripts/bench_peers.py
KERNELS = {
    "l2_paged_decode": ["kernels/l2_paged_decode.py"],
    "l3_split_kv_decode": ["kernels/l3_split_kv_decode.py", "kernels/l3_unnormalized_partials.py"],
    L7: ["kernels/l7_fast_decode.py", "kernels/l3_split_kv_decode.py", "kernels/l7_rungs.py"],
}
HABIT = Launch(4, 3)  # what one writes without measuring
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 33, 49, 64, 96, 128)
SPLITS_IN_PARTS = (1, 4, 16, 64)  # and the chosen number: split kernel and combine kernel timed apart
FP32_BYTES = 4


@dataclass
class Variant:
    """One row to be. `launch` is what is timed; for the check, `prepare` precedes and `finish` follows it."""

    name: str
    launch: Callable[[PageSet], object]
    result: (
        tuple[torch.Tensor, torch.Tensor] | None
    )  # o, lse after launch and finish; None: `launch` returns them
    num_programs: int
    launched: Launch | None  # None: the launcher fixes it (the combine kernel)
    kv_bytes: int
    bytes_requested: int  # by all programs: KV as often as it is asked for, q, o, lse, tables, partials
    prepare: Callable[[PageSet], object] | None = None
    finish: Callable[[PageSet], object] | None = None
    call: Callable[[PageSet], tuple[torch.Tensor, torch.Tensor]] | None = None  # as users call it
    scratch: tuple[torch.Tensor, ...] = ()
    about: dict = field(default_factory=dict)


def variants_of(lesson: str, pool: Pool) -> list[Variant]:
    """All variants of a lesson at the pool's shape."""
    return (l2_variants if lesson == "l2_paged_decode" else l3_variants)(pool)


def _own_bytes(shape: Shape) -> int:
    """Bytes of q, o, lse and the part of the block table that is read."""
    rows = shape.batch_size * shape.num_qo_heads
    return (
        rows * (2 * shape.head_dim * shape.dtype.itemsize + FP32_BYTES)
        + shape.batch_size * shape.pages_per_seq * 4
    )


def l2_variants(pool: Pool) -> list[Variant]:
    """Naive; packed; packed as launched by habit; packed with K transposed by its strides."""
    if pool.shape.page_size != 16:
        return [packed_variant(pool)]
    shape, inputs = pool.shape, pool.inputs
    o, lse = new_outputs(pool.sets[0].q)
    launch = choose_launch(inputs, pool.sets[0].q, packed=False)
    naive = Variant(
        "naive",
        lambda s: launch_naive_paged_decode(o, lse, s.q, inputs, s.block_table, pool.seq_lens, None, launch),
        (o, lse), shape.batch_size * shape.num_qo_heads, launch, shape.kv_bytes,
        inputs.group_size * shape.kv_bytes + _own_bytes(shape),
        call=lambda s: naive_paged_decode(*pool.arguments(s), return_lse=True),
    )  # fmt: skip
    return [
        naive,
        packed_variant(pool),
        packed_variant(pool, "packed_habit", HABIT),
        packed_variant(pool, "packed_swap_k", swap_k_strides=True),
    ]


def packed_variant(
    pool: Pool, name: str = "packed", launch: Launch | None = None, swap_k_strides: bool = False
) -> Variant:
    """L2's kernel, with the launcher's own warps and stages unless others are given."""
    shape, inputs = pool.shape, pool.inputs
    o, lse = new_outputs(pool.sets[0].q)
    launch = launch or choose_launch(inputs, pool.sets[0].q)
    return Variant(
        name,
        lambda s: launch_paged_decode(
            o, lse, s.q, inputs, s.block_table, pool.seq_lens, None, launch, swap_k_strides
        ),
        (o, lse), shape.batch_size * shape.num_kv_heads, launch, shape.kv_bytes,
        shape.kv_bytes + _own_bytes(shape),
        call=(lambda s: paged_decode(*pool.arguments(s), return_lse=True)) if name == "packed" else None,
    )  # fmt: skip


def l3_variants(pool: Pool) -> list[Variant]:
    """L2 as the base, then split_kv_decode at every number of splits, the chosen one among them."""
    chosen = resolve_num_splits(pool.inputs, pool.sets[0].q, None, pool.shape.ctx)
    # One scratch for all: sized for the most splits, cut down to each number.
    most = max(*SPLITS, chosen)
    o_scratch, lse_scratch = (partial.view(-1) for partial in new_partials(pool.sets[0].q, most))
    variants = [packed_variant(pool)]
    for num_splits in sorted({*SPLITS, chosen}):
        rows = pool.shape.batch_size * pool.shape.num_qo_heads * num_splits
        head_dim = pool.shape.head_dim
        o_partial = o_scratch[: rows * head_dim].view(*pool.sets[0].q.shape[:2], num_splits, head_dim)
        lse_partial = lse_scratch[:rows].view(o_partial.shape[:3])
        in_parts = num_splits in (*SPLITS_IN_PARTS, chosen)
        if num_splits == 1:
            variants.append(unsplit_variant(pool, chosen == 1))
        variants += split_variants(pool, o_partial, lse_partial, in_parts, num_splits == chosen)
    return variants


def unsplit_variant(pool: Pool, chosen: bool) -> Variant:
    """split_kv_decode at one split: L2's launch, without partials."""
    return replace(
        packed_variant(pool, "split"),
        call=lambda s: split_kv_decode(*pool.arguments(s), return_lse=True, num_splits=1),
        about={"num_splits": 1, "chosen": chosen, "partial_bytes": 0},
    )


def split_variants(
    pool: Pool, o_partial: torch.Tensor, lse_partial: torch.Tensor, in_parts: bool, chosen: bool
) -> list[Variant]:
    """The pair; with in_parts also each kernel alone; with chosen also the un-normalised pair.

    At one split the pair is no call of split_kv_decode, nor what it chose: its row is named "pair".
    """
    shape, inputs, num_splits = pool.shape, pool.inputs, o_partial.shape[2]
    o, lse = new_outputs(pool.sets[0].q)
    launch = choose_launch(inputs, pool.sets[0].q)
    rows = shape.batch_size * shape.num_qo_heads
    programs = shape.batch_size * shape.num_kv_heads * num_splits
    partial_bytes = rows * num_splits * (shape.head_dim + 1) * FP32_BYTES
    out_bytes = rows * (shape.head_dim * shape.dtype.itemsize + FP32_BYTES)
    about = {"num_splits": num_splits, "chosen": chosen and num_splits > 1, "partial_bytes": partial_bytes}

    def split(s: PageSet) -> None:
        launch_split(o_partial, lse_partial, None, s.q, inputs, s.block_table, pool.seq_lens, None, launch)

    def combine(_: PageSet | None = None) -> None:
        launch_combine(o, lse, o_partial.permute(2, 0, 1, 3), lse_partial.permute(2, 0, 1))

    def both(s: PageSet) -> None:
        split(s)
        combine()

    def call(s: PageSet) -> tuple[torch.Tensor, torch.Tensor]:
        return split_kv_decode(*pool.arguments(s), return_lse=True, num_splits=num_splits)

    def row(name: str, launch_of: Callable, num_programs: int, launched: Launch | None, **more) -> Variant:
        return Variant(
            name,
            launch_of,
            (o, lse),
            num_programs,
            launched,
            scratch=(o_partial, lse_partial),
            about=about,
            **more,
        )

    whole = {
        "kv_bytes": shape.kv_bytes,
        "bytes_requested": shape.kv_bytes + _own_bytes(shape) + 2 * partial_bytes,
    }
    name, public = ("pair", None) if num_splits == 1 else ("split", call)
    found = [row(name, both, programs, launch, call=public, **whole)]
    if in_parts:
        found += [
            row(
                "split_kernel", split, programs, launch, kv_bytes=shape.kv_bytes,
                bytes_requested=shape.kv_bytes + _own_bytes(shape) - out_bytes + partial_bytes,
                finish=combine,
            ),
            row(
                "combine_kernel", combine, rows, None, kv_bytes=0,
                bytes_requested=partial_bytes + out_bytes, prepare=split,
            ),
        ]  # fmt: skip
    if chosen:
        # This pair allocates its outputs itself, which a captured graph keeps: the call is the launch.
        def unnormalized(s: PageSet) -> tuple[torch.Tensor, torch.Tensor]:
            return split_kv_decode_unnormalized(*pool.arguments(s), return_lse=True, num_splits=num_splits)

        about = about | {"chosen": True}  # a pair even at one split
        found.append(
            Variant(
                "unnormalized", unnormalized, None, programs, launch, **whole, call=unnormalized, about=about
            )
        )
    return found
