"""Hold a record of L7's bench against the targets that its kernel was built for, and say which are met.

    python scripts/targets.py                                  the H200's record
    python scripts/targets.py path/to/l7_fast_decode.json --json

Ratios are of medians; where the kernel stands with and without dependent launch, the better counts; a peer
counts at its fastest. Exit status 1 where a target is missed, or cannot be judged from this record.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `scripts`, from anywhere

from scripts import records

RECORD = records.RESULTS / "nvidia-h200/l7_fast_decode.json"
OURS = ("fast_decode", "fast_decode_no_pdl")
PUBLIC = ("fast_decode",)  # what users call; without dependent launch it is not called, only launched
LESSON = ("split_kv_decode",)
RIVALS = {
    "flashinfer": ("flashinfer_tc", "flashinfer_cuda", "flashinfer_xqa"),
    "vllm": ("vllm_decode", "vllm_unified"),
    "cudnn": ("sdpa_cudnn",),
}
FP8 = "float8_e4m3fn"
# The key of a problem: sequences, tokens, page size, query heads, KV heads, dtype, cache dtype, ragged.
FIELDS = ("batch_size", "ctx", "page_size", "num_qo_heads", "num_kv_heads", "dtype", "kv_dtype", "ragged")
UNTIL_MB = 270  # KV up to here: no slower than cuDNN; beyond, CUDNN_LARGE is allowed
CUDNN_SMALL, CUDNN_LARGE = 1.0, 1.02


class Problem(NamedTuple):
    """What a target is about; its fields are those of a row."""

    batch_size: int
    ctx: int
    page_size: int = 16
    num_qo_heads: int = 32
    num_kv_heads: int = 8
    dtype: str = "float16"
    kv_dtype: str = "float16"
    ragged: bool = False

    def __str__(self) -> str:
        text = f"{self.batch_size}x{self.ctx} page {self.page_size}" + (" ragged" if self.ragged else "")
        if (self.num_qo_heads, self.num_kv_heads) != (32, 8):
            text += f" {self.num_qo_heads}/{self.num_kv_heads} heads"
        text += f" {self.dtype}" if self.dtype != "float16" else ""
        return text + (f" KV {self.kv_dtype}" if self.kv_dtype != self.dtype else "")


class Target(NamedTuple):
    """One measure of one problem, and its bound: at least `limit` of a share, at most `limit` of the rest."""

    problem: Problem
    measure: str  # share_of_paged_read, share_of_read_ceiling, a rival, lesson/<rival>, error, host_us
    limit: float

    @property
    def at_least(self) -> bool:
        return self.measure.startswith("share")


# Sizes: share of the paged read (None: reported only), ratio to FlashInfer, ratio to vLLM.
BY_SIZE = {
    ((1, 32768), (8, 4096)): (0.93, 0.88, 0.80),
    ((64, 1024),): (0.97, 0.89, 0.86),
    ((16, 8192), (1, 131072), (256, 512)): (0.96, 0.95, 0.85),
    ((128, 2048),): (0.98, 0.96, 0.86),
    ((1, 1024), (1, 4096), (4, 2048), (32, 256)): (None, 0.75, 0.65),
}


def targets() -> Iterator[Target]:
    """The whole table, and what stands below it; bf16 as fp16."""
    for dtype in ("float16", "bfloat16"):
        for sizes, (share, flashinfer, vllm) in BY_SIZE.items():
            for size in sizes:
                problem = Problem(*size, dtype=dtype, kv_dtype=dtype)
                if share:
                    yield Target(problem, "share_of_paged_read", share)
                yield Target(problem, "flashinfer", flashinfer)
                yield Target(problem, "vllm", vllm)
        ragged = Problem(64, 16384, dtype=dtype, kv_dtype=dtype, ragged=True)
        yield Target(ragged, "share_of_read_ceiling", 0.90)
        yield Target(ragged, "flashinfer", 0.64)
        yield Target(ragged, "vllm", 0.71)
    for heads, flashinfer, vllm in (((64, 8), 0.88, 0.86), ((32, 32), 0.98, 0.62)):
        yield Target(Problem(8, 4096, 16, *heads), "flashinfer", flashinfer)
        yield Target(Problem(8, 4096, 16, *heads), "vllm", vllm)
    fp8 = Problem(64, 1024, kv_dtype=FP8)
    yield Target(fp8, "share_of_paged_read", 0.85)
    yield Target(fp8, "flashinfer", 0.85)
    yield Target(fp8, "error", 1e-3)
    yield Target(Problem(1, 1024), "host_us", 25.0)
    for size in ((1, 32768), (8, 4096)):
        for rival in ("flashinfer", "vllm"):
            yield Target(Problem(*size), f"lesson/{rival}", 1.0)


def cudnn_targets(record: dict) -> Iterator[Target]:
    """Every fp16 problem that cuDNN ran in this record."""
    for row in record["rows"]:
        if row["variant"] in RIVALS["cudnn"] and row["dtype"] == "float16" and "latency_us" in row:
            yield Target(
                key_of(row), "cudnn", CUDNN_SMALL if row["kv_bytes"] < UNTIL_MB * 1e6 else CUDNN_LARGE
            )


def key_of(row: dict) -> Problem:
    """The problem of a row."""
    return Problem(*(row.get(field, False) for field in FIELDS))


def judge(record: dict) -> list[dict]:
    """One entry a target: problem, measure, limit, value, status ("met", "missed", "unknown"), and who."""
    rows: dict[Problem, dict[str, dict]] = {}
    for row in record["rows"]:
        rows.setdefault(key_of(row), {})[row["variant"]] = row
    return [
        judge_one(target, rows.get(target.problem, {})) for target in [*targets(), *cudnn_targets(record)]
    ]


def judge_one(target: Target, rows: dict[str, dict]) -> dict:
    """A target against the rows of its problem."""
    entry = {
        "problem": str(target.problem), "measure": target.measure, "limit": target.limit,
        "at_least": target.at_least,
    }  # fmt: skip
    ours = fastest(rows, LESSON if target.measure.startswith("lesson/") else OURS)
    if not ours:
        return entry | {"status": "unknown", "reason": "our kernel has no figure at this shape"}
    if target.measure.startswith("share"):
        value, who = ours[target.measure], [ours["variant"]]
    elif target.measure == "error":
        worst = max(timed(rows, OURS), key=lambda row: row["relative_error"])
        value, who = worst["relative_error"], [worst["variant"]]
    elif target.measure == "host_us":
        if not (ours := fastest(rows, PUBLIC)):
            return entry | {"status": "unknown", "reason": "the public call has no figure at this shape"}
        value, who = ours["host_us"]["p50"], [ours["variant"]]
    else:
        rival = fastest(rows, RIVALS[target.measure.removeprefix("lesson/")])
        if not rival:
            return entry | {"status": "unknown", "reason": "no such peer has a figure at this shape"}
        value = ours["latency_us"]["p50"] / rival["latency_us"]["p50"]
        who = [ours["variant"], rival["variant"]]
    met = value >= target.limit if target.at_least else value <= target.limit
    return entry | {"status": "met" if met else "missed", "value": round(value, 5), "of": who}


def timed(rows: dict[str, dict], names: tuple[str, ...]) -> list[dict]:
    """The rows of these variants that have a figure."""
    return [rows[name] for name in names if "latency_us" in rows.get(name, {})]


def fastest(rows: dict[str, dict], names: tuple[str, ...]) -> dict | None:
    """The row with the least median of these variants."""
    return min(timed(rows, names), key=lambda row: row["latency_us"]["p50"], default=None)


def line_of(entry: dict) -> str:
    """One target, in columns."""
    bound = f"{'>=' if entry['at_least'] else '<='} {entry['limit']:g}"
    found = f"{entry['value']:8.4g}" if "value" in entry else f"{'-':>8}"
    why = " / ".join(entry["of"]) if "of" in entry else entry["reason"]
    what = f"{entry['status']:<8} {entry['problem']:<38} {entry['measure']:<22}"
    return f"{what} {found} (wanted {bound:<8}) {why}"


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=Path, nargs="?", default=RECORD, help="default: the H200's")
    parser.add_argument("--json", action="store_true", help="a JSON list in place of lines")
    args = parser.parse_args(argv)
    try:
        entries = judge(records.load(args.record))
    except (OSError, records.RecordError) as error:
        print(f"targets.py: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(entries, indent=1))
    else:
        print("\n".join(map(line_of, entries)))
        counts = [f"{sum(e['status'] == s for e in entries)} {s}" for s in ("met", "missed", "unknown")]
        print(f"{len(entries)} targets: {', '.join(counts)}")
    return 0 if all(entry["status"] == "met" for entry in entries) else 1


if __name__ == "__main__":
    sys.exit(main())
