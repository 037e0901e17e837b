"""Time decode over numbers of splits at many shapes on this GPU: the map that the split rule is judged by.

    python scripts/sweep_splits.py --kernel l3
    python scripts/sweep_splits.py --kernel fast --seconds 240

Every number of splits at a point takes turns with the others, round after round. What --seconds cuts off, the
same command goes on with; after a change of the rule it measures, where the rule has another number now, that
number and the best few again. --fresh measures all anew; --again measures all once more and keeps the lesser
of each two figures, where the card had company. scripts/split_regret.py reads the record.
"""

import argparse
import ast
import hashlib
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

import torch
from rich.console import Console

from scripts import records
from scripts.split_kernels import FILES, RULES
from scripts.split_regret import (
    GROUP_SIZE,
    HEAD_DIM,
    LESSON,
    PAGE_SIZE,
    best_splits,
    grid,
    load,
    point_of,
    save,
    thin_grid,
)
from scripts.split_timing import METHOD, Pool, measure

PROBLEM = {
    "dtype": "float16", "group_size": GROUP_SIZE, "head_dim": HEAD_DIM, "page_size": PAGE_SIZE,
    "block_table": "shuffled",
}  # fmt: skip

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def kept_rows(target: Path, record: dict, kernel: str, fresh: bool) -> dict[tuple, dict]:
    """The rows of an earlier run on this card and software; a kernel's go when its code has changed."""
    if not target.is_file():
        return {}
    old = load(target)
    if any(old[name] != record[name] for name in ("gpu", "software", "problem", "method")):
        if fresh:
            return {}
        raise SystemExit(f"{target} is of another card, software or method; wanted --fresh or another --out")
    fresh = fresh or old["measured_code"].get(kernel) != record["measured_code"][kernel]
    record["measured_code"] = old["measured_code"] | record["measured_code"]
    return {
        (row["kernel"], *point_of(row)): row for row in old["rows"] if row["kernel"] != kernel or not fresh
    }


def measured_code(kernel: str) -> str:
    """A hash of a kernel's files without comments and without `# region choose`, its rule for the splits."""
    digest = hashlib.sha256()
    for path in FILES[kernel]:
        text = (records.ROOT / path).read_text(encoding="utf-8")
        text = re.sub(r"(?ms)^# region choose$.*?^# endregion choose$", "", text)
        digest.update(ast.unparse(ast.parse(text)).encode())
    return digest.hexdigest()[:16]


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    args = parse_args(argv)
    if not torch.cuda.is_available():
        console.print("sweep_splits.py: no CUDA GPU here; the published record is in snippets/results/")
        return 2
    begin = time.monotonic()
    record = records.provenance(LESSON) | {
        "measured_code": {args.kernel: measured_code(args.kernel)},
        "method": METHOD | {"rounds": args.rounds}, "problem": PROBLEM, "quick": args.subset,
    }  # fmt: skip
    gpu = record["gpu"]
    target = args.out / gpu["slug"] / f"{LESSON}.json"
    rows = kept_rows(target, record, args.kernel, args.fresh)
    points = thin_grid() + thin_grid(wide=True) if args.subset else grid()
    points = [point for point in points if point.kv_bytes <= 0.8 * torch.cuda.mem_get_info()[0]]
    todo = [
        p for p in points if args.again or outdated(rows.get((args.kernel, *p)), args.kernel, gpu["num_sms"])
    ]
    console.print(f"{args.kernel} on {gpu['name']}: {len(points)} points, {len(todo)} to do")
    pool = Pool(max((point.kv_bytes for point in todo), default=0) + 8 * gpu["l2_bytes"])
    done = 0
    try:
        for point in todo:
            if time.monotonic() - begin > args.seconds:
                break
            key = (args.kernel, *point)
            known = None if args.again else rows.get(key)
            row = measure(point, pool, args.kernel, args.rounds, gpu["l2_bytes"], known)
            rows[key] = lesser(rows[key], row) if args.again and key in rows else row
            done += 1
            if done % 10 == 0 or done == len(todo):
                console.print(f"{done}/{len(todo)} {time.monotonic() - begin:.0f} s {line_of(rows[key])}")
    finally:
        order = {point: i for i, point in enumerate(grid())}
        record["rows"] = sorted(rows.values(), key=lambda row: (row["kernel"], order[point_of(row)]))
        kernels = dict.fromkeys(row["kernel"] for row in record["rows"])
        record["code_hash"] = records.code_hash([path for kernel in kernels for path in FILES[kernel]])
        save(target, record)
        console.print(f"{target}: {len(record['rows'])} rows, {len(todo) - done} points still to do")
    return 0


def outdated(row: dict | None, kernel: str, num_sms: int) -> bool:
    """Whether a point is still to be measured, or its rule chooses another number now."""
    if row is None:
        return True
    point = point_of(row)
    sizes = (point.batch_size, point.num_kv_heads, point.ctx, PAGE_SIZE, num_sms)
    return row["chosen"] != RULES[kernel](*sizes)


def lesser(one: dict, other: dict) -> dict:
    """Two rows of a point as one, with the lesser of each two figures."""
    us = {
        splits: min(row["us"][splits] for row in (one, other) if splits in row["us"])
        for splits in sorted(one["us"] | other["us"], key=int)
    }
    return other | {"us": us, "passes": one.get("passes", 1) + 1}


def line_of(row: dict) -> str:
    """A finished row, in one line."""
    best, wide = best_splits(row), " wide" * row["wide"]
    loss = row["us"][str(row["chosen"])] / row["us"][str(best)] - 1
    return (
        f"B {row['batch_size']} ctx {row['ctx']} Hkv {row['num_kv_heads']}{wide}: "
        f"best {best} {row['us'][str(best)]} us, chosen {row['chosen']} {loss:+.1%}"
    )


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", choices=FILES, required=True)
    parser.add_argument("--subset", action="store_true", help="a thin grid: tens of seconds")
    parser.add_argument("--seconds", type=float, default=240, help="start no point after this (default 240)")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of a point (default 3)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--fresh", action="store_true", help="measure this kernel's points anew")
    how.add_argument("--again", action="store_true", help="and once more; the lesser figure counts")
    parser.add_argument(
        "--out", type=Path, default=records.RESULTS, help="folder of records; default snippets/results"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
