"""Time every configuration of a grid on this GPU: the loop of scripts/sweep_launch.py and sweep_tiles.py.

Every configuration is compiled first, in parallel; then each is timed alone. Interrupt it at will: finished
rows are kept and skipped next time.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from rich.progress import track

from scripts import records
from scripts.timing import graph_latency

SAVED_EVERY = 100  # rows
POOL_BYTES = 2**28  # of KV that a measurement goes through: more than the L2 cache holds


@dataclass(frozen=True)
class Sweep:
    """One grid.

    name: of the record. fields: of a row, in the order of a point's values. measured: the files of kernels/
    whose code it is, and of no file that they import: the table that the record leads to is in such a one.
    points: of the whole grid, or of the quick one. compile: of a point, in a worker; what went wrong, or
    None. measure: the rest of a point's row.
    """

    name: str
    fields: tuple[str, ...]
    measured: tuple[str, ...]
    points: Callable[[bool], Iterable[tuple]]
    compile: Callable[[tuple], str | None]
    measure: Callable[[tuple], dict]

    def run(self, out: Path, quick: bool, jobs: int) -> None:
        """Compile and time what is not in the partial record; write the record."""
        points = list(dict.fromkeys(self.points(quick)))
        partial = out.with_suffix(".partial.json")
        rows = {tuple(row[f] for f in self.fields): row for row in records.load_rows(partial)}
        todo = [p for p in points if p not in rows]
        failures = self._compile_all(todo, jobs)
        for n, point in enumerate(track(todo, "time")):
            row = dict(zip(self.fields, point, strict=True))
            rows[point] = row | ({"error": failures[point]} if point in failures else self.measure(point))
            if n % SAVED_EVERY == SAVED_EVERY - 1:
                records.save_rows(partial, list(rows.values()))
        record = records.provenance(self.name) | {"rows": [rows[p] for p in points]}
        record["code_hash"] = {path: records.code_hash([path])[path] for path in self.measured}
        records.save(out, record)
        partial.unlink(missing_ok=True)
        print(f"{out}: {len(points)} configurations, {len(failures)} of them not launchable")

    def _compile_all(self, points: list[tuple], jobs: int) -> dict[tuple, str]:
        """{point: why it cannot be launched}."""
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            results = track(pool.imap(self.compile, points, chunksize=4), "compile", total=len(points))
            return {p: error for p, error in zip(points, results, strict=True) if error}

    def main(self, description: str, quick_help: str) -> None:
        """The command line."""
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawTextHelpFormatter
        )
        parser.add_argument("--out", type=Path, required=True, help="the JSON record to write")
        parser.add_argument("--quick", action="store_true", help=quick_help)
        parser.add_argument("--jobs", type=int, default=14, help="processes that compile (default 14)")
        args = parser.parse_args()
        if not torch.cuda.is_available():
            parser.error("needs a CUDA GPU")
        self.run(args.out, args.quick, args.jobs)


def error_of(launch: Callable[[], object]) -> str | None:
    """What a launch raises, in one line; None if it runs."""
    try:
        launch()
        torch.cuda.synchronize()
    except (triton.runtime.errors.OutOfResources, RuntimeError) as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


def num_pools(kv_bytes: int) -> int:
    """How many page pools of this size a measurement goes through."""
    return max(1, POOL_BYTES // kv_bytes)


def latency_us(run: Callable[[int], object], pools: int) -> dict:
    """Latency of run(i), i going round the pools, by graph replay."""
    return graph_latency([lambda i=i: run(i) for i in range(pools)], rounds=2)
