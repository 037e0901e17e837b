"""How much a rule for the number of splits loses against the best number measured; no GPU needed.

    python scripts/split_regret.py snippets/results/nvidia-h200/split_choice.json
    python scripts/split_regret.py RECORD --rule kernels.l3_split_kv_decode:choose_num_splits

The record is what scripts/sweep_splits.py writes. Without --rule it judges the numbers that the kernels chose
in the sweep. A rule is any callable (batch_size, num_kv_heads, max_seq_len, page_size, num_sms) -> int.
"""

import argparse
import bisect
import importlib
import itertools
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

from scripts import records

LESSON = "split_choice"
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 33, 49, 66, 99, 132)
MOST_SPLITS = (
    256  # of the rules in scripts/split_rules.py; it is timed for them, and never counts as the best
)
BATCH_SIZES = tuple(2**e for e in range(9))
CTXS = tuple(2**e for e in range(9, 18))
KV_HEADS = (1, 2, 8)
GROUP_SIZE, HEAD_DIM, PAGE_SIZE, ITEM = 4, 128, 16, 2
MAX_KV_BYTES = 64e9
WIDE = 16  # how many times wider than its sequences the table of a wide point is

Rule = Callable[[int, int, int, int, int], int]


class Point(NamedTuple):
    """B sequences of ctx tokens over Hkv KV heads; wide: in a table WIDE times wider than they need."""

    batch_size: int
    ctx: int
    num_kv_heads: int
    wide: bool = False

    @property
    def num_pages(self) -> int:
        """Pages of one sequence."""
        return -(-self.ctx // PAGE_SIZE)

    @property
    def kv_bytes(self) -> int:
        return 2 * self.batch_size * self.ctx * self.num_kv_heads * HEAD_DIM * ITEM

    def splits(self) -> list[int]:
        """What is timed here: SPLITS as far as there are pages, and the most that any rule asks for."""
        return sorted({*(s for s in SPLITS if s <= self.num_pages), min(self.num_pages, MOST_SPLITS)})


def grid() -> list[Point]:
    """Every point of the map, then a thin grid with a wide table."""
    every = itertools.product(KV_HEADS, BATCH_SIZES, CTXS)
    points = [Point(b, ctx, heads) for heads, b, ctx in every]
    return [point for point in points if point.kv_bytes <= MAX_KV_BYTES] + thin_grid(wide=True)


def thin_grid(wide: bool = False) -> list[Point]:
    """A few points from all over the map."""
    every = itertools.product((1, 8), (1, 8, 64), (512, 4096, 32768))
    return [Point(b, ctx, heads, wide) for heads, b, ctx in every]


# region regret
def time_of(row: dict, num_splits: int) -> float:
    """us at this number of splits: measured, or log-linear between its measured neighbours.

    Beyond the largest measured number, MOST_SPLITS or a split a page, it is that one's time.
    """
    measured = {int(splits): us for splits, us in row["us"].items()}
    if num_splits in measured:
        return measured[num_splits]
    known = sorted(measured)
    place = bisect.bisect(known, num_splits)
    if place == len(known):
        return measured[known[-1]]
    if place == 0:
        raise ValueError(f"num_splits is {num_splits}; wanted at least {known[0]}, the least measured")
    low, high = known[place - 1], known[place]
    weight = math.log(num_splits / low) / math.log(high / low)
    return measured[low] ** (1 - weight) * measured[high] ** weight


def best_splits(row: dict) -> int:
    """The fastest of SPLITS; other numbers, though measured, are no part of the comparison."""
    return min((s for s in SPLITS if str(s) in row["us"]), key=lambda s: row["us"][str(s)])


def regret(
    rule: Rule | None, record: dict, kernel: str = "l3", wide: bool = False
) -> dict[Point, tuple[float, int, int]]:
    """{point: (time / best time - 1, the rule's splits, the best splits)}; rule None: the sweep's choice."""
    found = {}
    for row in record["rows"]:
        if row["kernel"] != kernel or row["wide"] != wide:
            continue
        point = point_of(row)
        sizes = (point.batch_size, point.num_kv_heads, point.ctx, PAGE_SIZE, record["gpu"]["num_sms"])
        splits, best = rule(*sizes) if rule else row["chosen"], best_splits(row)
        found[point] = (time_of(row, splits) / row["us"][str(best)] - 1, splits, best)
    return found


def summary(found: dict[Point, tuple[float, int, int]]) -> dict[str, float]:
    """Points, the share within 5 % and within 15 %, quantiles and the worst; all of regret."""
    values = sorted(value for value, *_ in found.values())
    return {
        "points": len(values),
        "within_5": sum(value <= 0.05 for value in values) / len(values),
        "within_15": sum(value <= 0.15 for value in values) / len(values),
        **{f"p{q}": values[round((len(values) - 1) * q / 100)] for q in (50, 80, 90)},
        "worst": values[-1],
    }


# endregion regret


def point_of(row: dict) -> Point:
    """The point that a row measured."""
    return Point(*(row[name] for name in Point._fields))


def load(path: Path) -> dict:
    """A record of the sweep; RecordError where it is none."""
    record = records.load(path)
    if record["lesson"] != LESSON:
        raise records.RecordError(f"{path}: lesson is {record['lesson']!r}; wanted {LESSON!r}")
    return record


def save(path: Path, record: dict) -> None:
    """Write a record with one row a line; a reader never sees half of it."""
    records.validate(record, str(path))
    head = json.dumps({name: value for name, value in record.items() if name != "rows"}, indent=1)
    rows = ",\n  ".join(map(json.dumps, record["rows"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")
    temporary.replace(path)


def report(name: str, found: dict[Point, tuple[float, int, int]], worst: int) -> str:
    """The summary in a line, then the worst points."""
    told = summary(found)
    lines = [
        f"{name}: {told['points']} points, {told['within_5']:.1%} within 5 %, "
        f"{told['within_15']:.1%} within 15 %, p50 {told['p50']:.1%}, "
        f"p80 {told['p80']:.1%}, p90 {told['p90']:.1%}, worst {told['worst']:.1%}"
    ]
    for point, (value, splits, best) in sorted(found.items(), key=lambda item: -item[1][0])[:worst]:
        lines.append(
            f"  B {point.batch_size:<4} ctx {point.ctx:<7} Hkv {point.num_kv_heads:<2} "
            f"splits {splits:<4} best {best:<4} {value:+.1%}"
        )
    return "\n".join(lines)


def load_rule(text: str) -> Rule:
    """ "package.module:function" -> that function."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=Path)
    parser.add_argument(
        "--rule", action="append", default=[], metavar="MODULE:FUNCTION", help="may be given again"
    )
    parser.add_argument("--kernel", help="default: every kernel of the record")
    parser.add_argument("--worst", type=int, default=8, help="points to name a rule (default 8)")
    args = parser.parse_args(argv)
    record = load(args.record)
    for kernel in dict.fromkeys(row["kernel"] for row in record["rows"]):
        if args.kernel not in (None, kernel):
            continue
        for wide in (False, True):
            for name in args.rule or ["chosen"]:
                found = regret(load_rule(name) if args.rule else None, record, kernel, wide)
                if found:
                    print(report(f"{kernel}{', wide table' * wide}, {name}", found, args.worst))
    return 0


if __name__ == "__main__":
    sys.exit(main())
