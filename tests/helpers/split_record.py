"""A made-up record of scripts/sweep_splits.py: times by a simple model of 132 SMs."""

from scripts.split_regret import Point, grid

SMS = 132


def model_us(point: Point, splits: int) -> float:
    """us: bytes at 4 TB/s or the pages of one program at 0.5 us, by waves of 4 an SM; and a combine."""
    programs = point.batch_size * point.num_kv_heads * splits
    waves = -(-programs // (4 * SMS))
    read = max(point.kv_bytes / 4e6, waves * -(-point.num_pages // splits) * 0.5)
    return round(4 + read + (splits > 1) * (2 + 0.02 * splits + programs / 5000), 2)


def fill(point: Point) -> int:
    """A rule: 4 programs an SM, 4 pages a split at least."""
    wanted = 4 * SMS // (point.batch_size * point.num_kv_heads)
    return max(1, min(wanted, point.num_pages // 4))


def split_record(kernels=("l3", "fast"), points: list[Point] | None = None, name: str = "Test GPU") -> dict:
    """Rows of these kernels at these points; the second always splits in 8."""
    rows = []
    for kernel in kernels:
        for point in grid() if points is None else points:
            chosen = fill(point) if kernel == "l3" else 8
            us = {str(s): model_us(point, s) for s in sorted({*point.splits(), chosen})}
            rows.append({"kernel": kernel, **point._asdict(), "chosen": chosen, "us": us})
    return {
        "schema": 1, "kind": "measured", "lesson": "split_choice",
        "gpu": {"name": name, "slug": name.lower().replace(" ", "-"), "num_sms": SMS,
                "l2_bytes": 2**26, "memory_bytes": 10**11},
        "software": {"driver": "1", "cuda": "1", "torch": "1", "triton": "1", "python": "1"},
        "date": "2026-01-01", "command": "python scripts/sweep_splits.py --kernel l3", "code_hash": {},
        "measured_code": {}, "method": {}, "quick": False,
        "problem": {"dtype": "float16", "group_size": 4, "head_dim": 128, "page_size": 16}, "rows": rows,
    }  # fmt: skip
