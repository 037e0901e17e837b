"""This project's kernels as candidates beside their peers: L7's, and the lessons' at their best."""

from collections.abc import Callable
from functools import partial

from kernels.checks import check_lesson_inputs
from kernels.l2_paged_decode import launch_paged_decode, paged_decode
from kernels.l3_split_kv_decode import (
    choose_num_splits,
    launch_split_kv,
    new_partials,
    resolve_num_splits,
    split_kv_decode,
)
from kernels.l7_fast_decode import FastCall, fast_decode
from kernels.l7_launch import has_dependent_launch
from kernels.l7_plan import DecodePlan, make_plan
from kernels.launch import Launch, choose_launch, new_outputs, num_sms
from scripts.bench_inputs import Pool
from scripts.peers import Candidate, labelled, need

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 33, 49, 66, 99, 132)
MOST_PROGRAMS = 16384  # (sequence, KV head, split)
FEWEST_TOKENS = 32  # of a split
LAUNCHES = (Launch(1, 5), Launch(1, 7), Launch(2, 5), Launch(4, 3))  # beside the recorded sweep's


def fast(pool: Pool, pdl: bool) -> list[Candidate]:
    """L7's kernel: as it splits by itself, with other uniform splits, and with a work list made beforehand.

    The public function decides on dependent launch itself, so only with it is there a call to time.
    """
    shape, q = pool.shape, pool.sets[0].q
    need(not pdl or has_dependent_launch(q.device), "this card has no programmatic dependent launch")
    programs = shape.batch_size * shape.num_kv_heads
    most = max(1, min(MOST_PROGRAMS // programs, shape.ctx // FEWEST_TOKENS))
    plans = {"its own splits": None, "work list": make_plan(pool.seq_lens, shape.num_kv_heads)}
    plans |= {labelled(splits=n): DecodePlan(n) for n in SPLITS if n <= most}
    return [_fast_candidate(pool, setting, plan, pdl) for setting, plan in plans.items()]


def _fast_candidate(pool: Pool, setting: str, plan: DecodePlan | None, pdl: bool) -> Candidate:
    shape, q = pool.shape, pool.sets[0].q
    k_scale, v_scale = shape.scales if shape.is_fp8 else (None, None)
    launched = plan or DecodePlan(
        choose_num_splits(shape.batch_size, shape.num_kv_heads, shape.ctx, shape.page_size, num_sms(q.device))
    )
    run = FastCall(q, pool.inputs, pool.sets[0].block_table, launched, pdl=pdl)
    o, lse, scratch = run.new_outputs()

    def launch(s) -> None:
        run(o, lse, scratch, *pool.arguments(s), None, k_scale, v_scale, launched)

    def call(s):
        return fast_decode(*pool.arguments(s), return_lse=True, k_scale=k_scale, v_scale=v_scale, plan=plan)

    return Candidate(setting, launch, o, lse=lse, call=call if pdl else None, eager=pdl)


def _launches(pool: Pool) -> list[Launch]:
    """The recorded sweep's choice, then others worth trying."""
    need(not pool.shape.is_fp8, "the lesson kernels take no 8-bit KV")
    check_lesson_inputs(*pool.arguments(pool.sets[0]), "NHD")
    return list(dict.fromkeys((choose_launch(pool.inputs, pool.sets[0].q), *LAUNCHES)))


def _label(launch: Launch, **settings) -> str:
    return labelled(**settings, warps=launch.num_warps, stages=launch.num_stages)


def packed(pool: Pool) -> list[Candidate]:
    """L2's kernel."""
    found = []
    for launch in _launches(pool):
        o, lse = new_outputs(pool.sets[0].q)
        found.append(
            Candidate(
                _label(launch),
                lambda s, o=o, lse=lse, launch=launch: launch_paged_decode(
                    o, lse, s.q, pool.inputs, s.block_table, pool.seq_lens, None, launch
                ),
                o,
                lse=lse,
                call=lambda s: paged_decode(*pool.arguments(s), return_lse=True),
            )
        )
    return found


def split(pool: Pool) -> list[Candidate]:
    """L3's pair of kernels: every number of splits at the recorded launch, the chosen one at the others."""
    shape, q = pool.shape, pool.sets[0].q
    recorded, *others = _launches(pool)
    chosen = resolve_num_splits(pool.inputs, q, None, shape.ctx)
    programs = shape.batch_size * shape.num_kv_heads
    most = max(1, min(MOST_PROGRAMS // programs, shape.pages_per_seq))
    counts = sorted({chosen, *(n for n in SPLITS if n <= most)})
    return [_pair(pool, recorded, n) for n in counts] + [_pair(pool, launch, chosen) for launch in others]


def _pair(pool: Pool, launch: Launch, num_splits: int) -> Candidate:
    """L3's split kernel and combine kernel, at one number of splits."""
    q = pool.sets[0].q
    o, lse = new_outputs(q)
    partials = new_partials(q, num_splits) if num_splits > 1 else None

    def both(s) -> None:
        launch_split_kv(o, lse, partials, s.q, pool.inputs, s.block_table, pool.seq_lens, None, launch)

    def call(s):
        return split_kv_decode(*pool.arguments(s), return_lse=True, num_splits=num_splits)

    return Candidate(_label(launch, splits=num_splits), both, o, lse=lse, call=call)


OURS: dict[str, Callable[[Pool], list[Candidate]]] = {
    "fast_decode": partial(fast, pdl=True),
    "fast_decode_no_pdl": partial(fast, pdl=False),
    "split_kv_decode": split,
    "paged_decode": packed,
}
