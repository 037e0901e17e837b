"""The rungs of the ladder as contenders, at three shapes: each at the best of a few launches."""

import tomllib
from collections.abc import Callable
from functools import partial

import torch

from kernels.checks import check_lesson_inputs
from kernels.l3_split_kv_decode import new_partials
from kernels.l7_rungs import (
    RUNGS,
    Tile,
    has_dependent_launch,
    ladder_decode,
    launch_rung,
    new_counters,
    resolve_launch,
    resolve_splits,
)
from kernels.launch import Launch, new_outputs
from scripts.bench_inputs import Pool, Shape
from scripts.peers import Candidate, labelled, need
from scripts.records import ROOT

SHAPES = tuple(Shape(*size) for size in ((1, 32768), (8, 4096), (64, 1024)))
TILES = (Tile(16, 1, 3), Tile(16, 1, 5), Tile(32, 1, 3), Tile(32, 1, 5), Tile(32, 2, 3), Tile(64, 2, 3))
PAGE_TILES = (Tile(16, 1, 3), Tile(16, 1, 4), Tile(16, 1, 5))  # TMA copies whole pages
PREDICTIONS = tomllib.loads((ROOT / "snippets/l7_predictions.toml").read_text(encoding="utf-8"))


def contenders(shape: Shape) -> dict[str, Callable[[Pool], list[Candidate]]]:
    """{rung: its candidates} at a shape of the ladder; none elsewhere."""
    return {name: partial(rung, name) for name in RUNGS} if shape in SHAPES else {}


def about(name: str, shape: Shape) -> dict:
    """What a row of a rung says of it: its place, whether the change was kept, what was expected."""
    expected = PREDICTIONS.get(name, {}).get("us", {}).get(f"{shape.batch_size}x{shape.ctx}")
    return {
        "rung": list(RUNGS).index(name),
        "kept": RUNGS[name].kept,
        **({"prediction": {"us": expected}} if expected else {}),
    }


def rung(name: str, pool: Pool) -> list[Candidate]:
    """One rung: as launched by habit or by the recorded sweep, or at the tiles worth trying."""
    q = pool.sets[0].q
    check_lesson_inputs(*pool.arguments(pool.sets[0]), "NHD")
    dependent = RUNGS[name].switches.get("TRIGGER", "end") != "end"
    need(not dependent or has_dependent_launch(q.device), "this card has no programmatic dependent launch")
    own = resolve_launch(name, q, pool.inputs)
    if isinstance(own, Launch):
        launches = [own]
    else:
        launches = list(dict.fromkeys((own, *(PAGE_TILES if name == "tma" else TILES))))
    return [_candidate(name, pool, launch) for launch in launches]


def _candidate(name: str, pool: Pool, launch: Launch | Tile) -> Candidate:
    q = pool.sets[0].q
    num_splits = resolve_splits(name, q, pool.inputs, None, pool.shape.ctx, launch)
    o, lse = new_outputs(q)
    partials = new_partials(q, num_splits) if num_splits else None
    counters = new_counters(q, pool.inputs) if RUNGS[name].switches.get("LAST_COMBINES") else None

    def run(s) -> None:
        launch_rung(
            name, o, lse, partials, counters, s.q, pool.inputs, s.block_table, pool.seq_lens, None, launch
        )

    def call(s) -> tuple[torch.Tensor, torch.Tensor]:
        return ladder_decode(
            name, *pool.arguments(s), return_lse=True, num_splits=num_splits or None, launch=launch
        )

    setting = labelled(splits=num_splits or None, block=getattr(launch, "block_n", None),
                       warps=launch.num_warps, stages=launch.num_stages)  # fmt: skip
    return Candidate(setting, run, o, call=call, eager=False, lse=lse)
