"""Measure how a block table reaches this GPU: snippets/results/<gpu>/l1_table_to_device.json.

    python scripts/bench_transfer.py
    python scripts/bench_transfer.py --out DIR

Every way of copying, the same in CUDA C++ where nvcc is, a decode step run eagerly and replayed, the race for
a pinned buffer, and what a CUDA graph makes of the acquire / release interface. Under two minutes.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
from rich.console import Console

from kernels.l1_outcomes import OUTCOMES
from scripts import bench_copies, bench_step, records, transfer_programs

LESSON = "l1_table_to_device"
FILES = ["kernels/l1_table_to_device.py", "kernels/l1_decode_step.py", "kernels/l1_outcomes.py"]
# The capture that raises, in a process of its own: what an error leaves behind is nobody's business here.
PAGEABLE = """
from kernels.l1_outcomes import pageable_in_capture
try:
    pageable_in_capture()
except RuntimeError as error:
    while error.__context__ is not None:
        error = error.__context__
    print(type(error).__name__, str(error).strip().splitlines()[0], sep=": ")
"""

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def pageable_error() -> str:
    """The first line of the error that a captured copy from pageable memory raises; "" if it raises none."""
    command = [sys.executable, "-c", PAGEABLE]
    done = subprocess.run(command, cwd=records.ROOT, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def measure_outcomes() -> dict[str, dict]:
    """What each kernel of the race and of the captures found, by the names of kernels.l1_outcomes."""
    found: dict[str, dict] = {"pageable_in_capture": {"error": pageable_error()}}
    for name, outcome in OUTCOMES.items():
        reads = outcome()
        found[name] = {"kernels": len(reads), "wrong": sum(not read.right for read in reads)}
        if len(reads) <= 8:
            found[name]["reads"] = [list(read) for read in reads]
        console.print(f"{name}: {found[name]['wrong']} of {len(reads)} kernels read another table")
    console.print(f"pageable_in_capture: {found['pageable_in_capture']['error']}")
    return found


def measure_cuda(repeats: int) -> dict:
    """The CUDA C++ program's figures, or why there are none."""
    found = {"source_hash": transfer_programs.source_hash("cuda")}
    try:
        return found | transfer_programs.run("cuda", str(repeats))
    except transfer_programs.MissingToolError as error:
        return found | {"missing": str(error)}


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=records.RESULTS, help="default: snippets/results")
    parser.add_argument("--quick", action="store_true", help="few repeats; the record says so")
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        console.print("bench_transfer.py: no CUDA GPU here; the published record is in snippets/results/")
        return 2
    begin, repeats = time.monotonic(), 7 if args.quick else 50
    record = records.provenance(LESSON, FILES) | {
        "quick": args.quick, "l2": "warm", "problem": bench_step.PROBLEM,
        "method": {"step": bench_step.METHOD, "copies": bench_copies.METHOD, "repeats": repeats},
    }  # fmt: skip
    record["outcomes"] = measure_outcomes()
    record["copies"] = bench_copies.measure_copies(repeats, console.print)
    record["cuda_cpp"] = measure_cuda(repeats)
    record["rows"] = bench_step.measure_steps(repeats, console.print)
    target = args.out / record["gpu"]["slug"] / f"{LESSON}.json"
    records.save(target, record)
    console.print(f"{target} in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
