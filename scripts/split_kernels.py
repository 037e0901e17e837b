"""What scripts/sweep_splits.py times: each kernel with a number of splits given, buffers made beforehand."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch

from kernels.checks import check_fast_inputs, check_lesson_inputs
from kernels.l3_split_kv_decode import (
    choose_num_splits,
    launch_split_kv,
    new_partials,
    resolve_num_splits,
)
from kernels.l7_fast_decode import FastCall
from kernels.l7_plan import DecodePlan
from kernels.launch import choose_launch, new_outputs, num_sms
from scripts.split_regret import Rule


class Subject(NamedTuple):
    """call(num_splits, block_table) fills o and lse; chosen: the number that the kernel itself takes."""

    call: Callable[[int, torch.Tensor], object]
    o: torch.Tensor  # [B, Hq, D]
    lse: torch.Tensor  # [B, Hq] fp32
    chosen: int


def l3(q, k_cache, v_cache, block_table, seq_lens, ctx: int) -> Subject:
    """L3's two launches, or the one of a single split."""
    inputs = check_lesson_inputs(q, k_cache, v_cache, block_table, seq_lens, "NHD")
    launch = choose_launch(inputs, q)
    o, lse = new_outputs(q)

    @functools.cache
    def partials(num_splits: int) -> tuple[torch.Tensor, ...] | None:
        if num_splits == 1:
            return None
        return tuple(partial.fill_(float("nan")) for partial in new_partials(q, num_splits))

    def call(num_splits: int, table: torch.Tensor) -> None:
        launch_split_kv(o, lse, partials(num_splits), q, inputs, table, seq_lens, None, launch)

    return Subject(call, o, lse, resolve_num_splits(inputs, q, None, ctx))


def fast(q, k_cache, v_cache, block_table, seq_lens, ctx: int) -> Subject:
    """L7's kernel with a plan of one number for all; one split is one launch."""
    inputs = check_fast_inputs(q, k_cache, v_cache, block_table, seq_lens, "NHD", None, None)
    o, lse = new_outputs(q)

    @functools.cache
    def prepared(num_splits: int) -> tuple[FastCall, torch.Tensor | None]:
        launch = FastCall(q, inputs, block_table, DecodePlan(num_splits))
        _, _, scratch = launch.new_outputs()
        return launch, scratch if scratch is None else scratch.fill_(float("nan"))

    def call(num_splits: int, table: torch.Tensor) -> None:
        launch, scratch = prepared(num_splits)
        launch(o, lse, scratch, q, k_cache, v_cache, table, seq_lens)

    sizes = (inputs.batch_size, inputs.num_kv_heads, ctx, inputs.page_size, num_sms(q.device))
    return Subject(call, o, lse, RULES["fast"](*sizes))


# What a record of a kernel's times depends on; its rule, in `# region choose`, apart.
FILES = {
    "l3": ("kernels/l3_split_kv_decode.py",),
    "fast": ("kernels/l7_fast_decode.py", "kernels/l7_tile.py", "kernels/l7_launch.py"),
}
SUBJECTS: dict[str, Callable[..., Subject]] = {"l3": l3, "fast": fast}
RULES: dict[str, Rule] = {"l3": choose_num_splits, "fast": choose_num_splits}
