"""Measure the lesson kernels on this GPU, and write one record a lesson into snippets/results/<gpu>/.

    python scripts/bench.py                                 both lessons, all shapes
    python scripts/bench.py --lesson l3_split_kv_decode --shapes 1x32768,64x1024

Every variant is first held against the float64 reference, with poisoned outputs; what is wrong is not timed,
stands in the record as failed, and makes the exit status 1. An interrupted run goes on where it stopped;
--fresh starts over.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from scripts import records
from scripts.bench_inputs import Shape
from scripts.bench_rows import METHOD, GpuLostError, bench_shape
from scripts.bench_variants import KERNELS, PAGE_SIZES, SHAPES
from scripts.read_ceiling import measure_matmul
from scripts.timing import REPLAYS

ROUNDS, QUICK_ROUNDS = 7, 2

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    args = parse_args(argv)
    if not torch.cuda.is_available():
        console.print("bench.py: no CUDA GPU here; the published records are in snippets/results/")
        return 2
    failed = sum(bench_lesson(lesson, args) for lesson in args.lesson or KERNELS)
    return 1 if failed else 0


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lesson", action="append", choices=KERNELS, help="may be given again; default: all")
    parser.add_argument(
        "--shapes", type=parse_shapes, default=SHAPES, metavar="BxCTX,...",
        help=f"sequences x tokens; default {','.join(f'{b}x{n}' for b, n in SHAPES)}",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=records.RESULTS, help="folder of records; default snippets/results"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds in place of {ROUNDS}; marked so"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what an interrupted run has measured")
    return parser.parse_args(argv)


def parse_shapes(text: str) -> tuple[tuple[int, int], ...]:
    """ "1x32768,8x4096" -> ((1, 32768), (8, 4096))."""
    try:
        shapes = tuple(tuple(map(int, part.split("x"))) for part in text.split(","))
    except ValueError:
        shapes = ()
    if not shapes or not all(len(shape) == 2 and min(shape) >= 1 for shape in shapes):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of shapes; wanted something like 1x32768,8x4096"
        )
    return shapes


def bench_lesson(lesson: str, args: argparse.Namespace) -> int:
    """Measure a lesson shape by shape, keep what is finished, write the record; returns the failed rows."""
    rounds = QUICK_ROUNDS if args.quick else ROUNDS
    shapes = [Shape(b, n, page) for page in PAGE_SIZES[lesson] for b, n in args.shapes]
    record = records.provenance(lesson, KERNELS[lesson]) | {
        "quick": args.quick,
        "method": METHOD | {"rounds": rounds, "replays": rounds * REPLAYS},
        "problem": {
            "dtype": str(shapes[0].dtype).removeprefix("torch."), "num_qo_heads": shapes[0].num_qo_heads,
            "num_kv_heads": shapes[0].num_kv_heads, "head_dim": shapes[0].head_dim, "block_table": "shuffled",
        },
    }  # fmt: skip
    target = args.out / record["gpu"]["slug"] / f"{lesson}.json"
    partial = target.with_suffix(".partial.json")
    # Figures of two runs stand in one record only where all of this is the same.
    run = {key: record[key] for key in ("gpu", "software", "code_hash", "method", "problem")}
    done = {} if args.fresh else finished_shapes(partial, run)
    console.print(
        f"{lesson} on {record['gpu']['name']}: {len(shapes)} shapes, {len(done)} of them measured before"
    )

    with progress() as bar:
        task = bar.add_task(lesson, total=len(shapes))
        for shape in shapes:
            if str(shape) not in done:
                result = bench_shape(lesson, shape, rounds, record["gpu"]["l2_bytes"], console.print)
                done[str(shape)] = {"shape": str(shape), "run": run} | result
                records.save_rows(partial, [block for block in done.values() if not failed_rows(block)])
            bar.advance(task)
        if lesson == "l2_paged_decode":
            record["matmul_tflops"] = measure_matmul(rounds)
    blocks = [done[str(shape)] for shape in shapes]
    record["ceilings"] = [block["ceilings"] for block in blocks]
    record["rows"] = [row for block in blocks for row in block["rows"]]
    records.save(target, record)
    failed = failed_rows(record)
    if not failed:
        partial.unlink(missing_ok=True)
    console.print(f"{target}: {len(record['rows'])} rows, {len(failed)} failed")
    return len(failed)


def failed_rows(block: dict) -> list[dict]:
    """The rows that a check or a launch kept from being timed."""
    return [row for row in block["rows"] if "error" in row]


def finished_shapes(partial: Path, run: dict) -> dict[str, dict]:
    """What an interrupted run has measured of the same code, card and software, in the same way."""
    blocks = records.load_rows(partial)
    same = {block["shape"]: block for block in blocks if block["run"] == run}
    if len(same) < len(blocks):
        console.print(
            f"{partial}: {len(blocks) - len(same)} shapes are of other code or software; measured again"
        )
    return same


def progress() -> Progress:
    """A bar below the finished rows; without a terminal, only the rows."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("interrupted; finished shapes are kept, the same command goes on")
        sys.exit(130)
    except GpuLostError as error:
        console.print(f"{error}; finished shapes are kept, the same command goes on")
        sys.exit(3)
