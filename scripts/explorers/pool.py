"""Block table and pages: what PagedKVCache gives to sequences of these lengths, and where it refuses."""

from scripts.figures._l1_pool import pool as draw
from scripts.traces import l1_paged_cache

__all__ = ["draw", "trace"]


def trace(values: dict) -> dict:
    return {"pool": l1_paged_cache.pool(**values)}
