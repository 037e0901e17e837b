"""Compile all that L7's bench will launch before anything is timed, in many processes at once."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from scripts.bench_inputs import Pool, Shape, make_pool
from scripts.bench_peers import Contest
from scripts.peers import Candidate, Missing
from scripts.read_ceiling import paged_reads, pure_reads

DEVICE = "cuda"


def compile_first(contest: Contest, shapes: Sequence[Shape], jobs: int, say: Callable[[str], None]) -> None:
    """Launch every candidate at every shape once, in `jobs` processes: then the caches hold all kernels."""
    start = time.perf_counter()
    # What is compiled differs first of all by dtypes, heads and pages: one shape of each comes first.
    seen: Counter = Counter()
    order = []
    for shape in shapes:
        family = replace(shape, batch_size=0, ctx=0, ragged=False)
        order.append((seen[family], shape))
        seen[family] += 1
    order.sort(key=lambda item: item[0])
    tasks = [(contest, shape, name) for _, shape in order for name in (*contest.contenders(shape), None)]
    with multiprocessing.get_context("spawn").Pool(jobs, contest.set_up) as pool:
        failures = pool.starmap(launch_all, tasks, chunksize=1)
    for line in dict.fromkeys(line for lines in failures for line in lines):
        say(f"  not launched: {line}")
    say(f"{len(tasks)} x all settings compiled in {time.perf_counter() - start:.0f} s")


def launch_all(contest: Contest, shape: Shape, name: str | None) -> list[str]:
    """Every candidate of one variant once, or the ceilings' kernels; a line for each failure.

    The run itself records what fails; this is to see it early.
    """
    pool = make_pool(shape, DEVICE, 0, num_sets=1)
    failures = []
    if name is None:
        sums = torch.empty(2**20, dtype=torch.float32, device=DEVICE)
        reads = pure_reads(pool, sums) | paged_reads(pool, sums)
        launches = {config: run for config, (_, (run, *_)) in reads.items()}
    else:
        try:
            candidates = contest.contenders(shape)[name](pool)
        except Missing:
            return []
        except Exception as error:
            return [f"{shape}: {name}: {type(error).__name__}: {error}".splitlines()[0][:200]]
        launches = {c.setting: lambda c=c: launch_once(c, pool) for c in candidates}
    for setting, run in launches.items():
        try:
            run()
            torch.cuda.synchronize()
        except Exception as error:
            failures.append(
                f"{shape}: {name} {setting}: {type(error).__name__}: {error}".splitlines()[0][:200]
            )
    return failures


def launch_once(candidate: Candidate, pool: Pool) -> None:
    """As the run launches it, on the first page set."""
    with candidate.context():
        candidate.launch(pool.sets[0])
