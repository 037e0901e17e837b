"""Measure the lesson kernels on this GPU, and write one record a lesson into snippets/results/<gpu>/.

    python scripts/bench.py                                 all lessons, all shapes
    python scripts/bench.py --lesson l3_split_kv_decode --shapes 1x32768,64x1024
    python scripts/bench.py --lesson l7_fast_decode --vllm path/to/vllm --jobs 8

L7's bench measures its kernel beside FlashInfer, vLLM, torch and FlashAttention, where they are installed;
who is missing is named in the record, with the reason. --vllm takes a checkout of vLLM, or a folder with
its Triton kernels, in place of an installed vLLM.

Every variant is first held against the float64 reference, with poisoned outputs; what is wrong is not timed,
stands in the record as failed, and makes the exit status 1. An interrupted run goes on where it stopped;
--fresh starts over.
"""

import argparse
import sys
from functools import partial as partial_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from scripts import records
from scripts.bench_compile import compile_first
from scripts.bench_inputs import K_SCALE, V_SCALE, Shape, name_of
from scripts.bench_matrix import DTYPES, select
from scripts.bench_peers import PEERS_METHOD, VARIANTS, Contest, collapse
from scripts.bench_peers import bench_shape as bench_contest
from scripts.bench_rows import METHOD, GpuLostError, bench_shape
from scripts.bench_variants import KERNELS, L7, PAGE_SIZES, SHAPES
from scripts.peers import Missing
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
    try:
        args.contest.set_up()
    except Missing as reason:
        console.print(f"bench.py: --vllm: {reason}")
        return 2
    failed = sum(bench_lesson(lesson, args) for lesson in args.lesson or KERNELS)
    return 1 if failed else 0


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lesson", action="append", choices=KERNELS, help="may be given again; default: all")
    parser.add_argument(
        "--shapes", type=parse_shapes, metavar="BxCTX,...",
        help=f"sequences x tokens; default {','.join(f'{b}x{n}' for b, n in SHAPES)}; L7: its whole matrix",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=records.RESULTS, help="folder of records; default snippets/results"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds in place of {ROUNDS}; marked so"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what an interrupted run has measured")
    contest = parser.add_argument_group("L7 only")
    contest.add_argument("--vllm", type=Path, metavar="PATH", help="take vLLM's kernels from here")
    contest.add_argument(
        "--variants", type=parse_variants, metavar="NAME,...", help=f"of {', '.join(VARIANTS)}; default: all"
    )
    contest.add_argument("--dtype", action="append", choices=DTYPES, help="of the queries; default: all")
    contest.add_argument(
        "--jobs", type=int, default=0, help="processes that compile everything first; default: none"
    )
    args = parser.parse_args(argv)
    args.contest = Contest(args.variants, args.vllm)
    return args


def parse_variants(text: str) -> tuple[str, ...]:
    """ "fast_decode,sdpa_cudnn" -> ("fast_decode", "sdpa_cudnn")."""
    names = tuple(text.split(","))
    for name in names:
        if name not in VARIANTS:
            raise argparse.ArgumentTypeError(f"{name!r} is no variant; wanted some of {', '.join(VARIANTS)}")
    return names


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
    contest = args.contest if lesson == L7 else None
    shapes = shapes_of(lesson, args)
    record = records.provenance(lesson, KERNELS[lesson]) | {
        "quick": args.quick,
        "method": (PEERS_METHOD if contest else METHOD) | {"rounds": rounds, "replays": rounds * REPLAYS},
        "problem": problem_of(contest, shapes[0]),
    }
    if contest:
        record["software"]["peers"] = contest.versions()
    target = args.out / record["gpu"]["slug"] / f"{lesson}.json"
    partial = target.with_suffix(".partial.json")
    # Figures of two runs stand in one record only where all of this is the same.
    run = {key: record[key] for key in ("gpu", "software", "code_hash", "method", "problem")}
    done = {} if args.fresh else finished_shapes(partial, run)
    todo = [shape for shape in shapes if str(shape) not in done]
    console.print(
        f"{lesson} on {record['gpu']['name']}: {len(shapes)} shapes, {len(done)} of them measured before"
    )
    if contest and args.jobs and todo:
        compile_first(contest, todo, args.jobs, console.print)

    with progress() as bar:
        task = bar.add_task(lesson, total=len(shapes), completed=len(shapes) - len(todo))
        for shape in todo:
            bench = partial_of(bench_contest, contest) if contest else partial_of(bench_shape, lesson)
            result = bench(shape, rounds, record["gpu"]["l2_bytes"], console.print)
            done[str(shape)] = {"shape": str(shape), "run": run} | result
            records.save_rows(partial, [block for block in done.values() if not failed_rows(block)])
            bar.advance(task)
        if lesson == "l2_paged_decode":
            record["matmul_tflops"] = measure_matmul(rounds)
    blocks = [done[str(shape)] for shape in shapes]
    record["ceilings"] = [block["ceilings"] for block in blocks]
    record["rows"] = [row for block in blocks for row in block["rows"]]
    if contest:
        record["missing"] = collapse([entry for block in blocks for entry in block["missing"]], len(shapes))
    records.save(target, record)
    failed = failed_rows(record)
    if not failed:
        partial.unlink(missing_ok=True)
    console.print(f"{target}: {len(record['rows'])} rows, {len(failed)} failed")
    return len(failed)


def shapes_of(lesson: str, args: argparse.Namespace) -> list[Shape]:
    """The shapes to measure; of L7, those of its matrix that the arguments leave."""
    if lesson == L7:
        return select(args.shapes, args.dtype)
    return [Shape(b, n, page) for page in PAGE_SIZES[lesson] for b, n in args.shapes or SHAPES]


def problem_of(contest: Contest | None, shape: Shape) -> dict:
    """What all rows share; L7's rows carry the rest themselves."""
    if contest:
        return {
            "head_dim": shape.head_dim, "block_table": "shuffled", "k_scale": K_SCALE, "v_scale": V_SCALE,
            "variants": contest.variants or "all",
        }  # fmt: skip
    return {
        "dtype": name_of(shape.dtype), "num_qo_heads": shape.num_qo_heads,
        "num_kv_heads": shape.num_kv_heads, "head_dim": shape.head_dim, "block_table": "shuffled",
    }  # fmt: skip


def failed_rows(block: dict) -> list[dict]:
    """Our rows that a check or a launch kept from being timed; what fails a peer stands in its row."""
    return [row for row in block["rows"] if "error" in row and row.get("kind") != "peer"]


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
