"""One shape of one lesson, from check to row: all variants are checked, then those that passed are timed."""

from collections.abc import Callable

import torch

from scripts.bench_inputs import Pool, Shape, make_pool
from scripts.bench_truth import Truth, make_truth, poisoned_allocations
from scripts.bench_variants import Variant, variants_of
from scripts.read_ceiling import gbps, measure_ceilings
from scripts.timing import LaunchGraph, eager_latency, interleaved_latency

METHOD = {
    "latency_us": "us a launch (of a pair: both launches), from replays of a CUDA graph of back-to-back "
    "launches; p20, p50 and p80 over all replays; the variants of a shape take turns, round after round",
    "cache": "cold L2: launches rotate over disjoint page sets; partials stay warm, as in use",
    "eager_us": "us of one call of the public function on an idle GPU, until its work is done; "
    "host_us: until it returns",
    "bandwidth_gbps": "kv_bytes / p50, GB = 1e9",
    "ceilings": "read: as many bytes in one piece; paged read: the same pages through the same block tables; "
    "no arithmetic but a sum; the best of several configurations, by p50",
    "check": "o and lse against float64, outputs poisoned with NaN before; at most twice the error of plain "
    "PyTorch in the inputs' dtype",
}


DEVICE = "cuda"


class GpuLostError(RuntimeError):
    """A failed launch has taken the CUDA context with it: nothing more can run in this process."""


def bench_shape(lesson: str, shape: Shape, rounds: int, l2_bytes: int, say: Callable[[str], None]) -> dict:
    """{"ceilings": {...}, "rows": [...]} of one shape; `say` gets one line for each finished row.

    A variant that fails its check or its launch gives a row with "error" in place of figures.
    """
    pool = make_pool(shape, DEVICE, l2_bytes)
    truth = make_truth(pool, pool.sets[0])
    ceilings = measure_ceilings(pool, rounds)
    say(
        f"{shape}: read {ceilings['read_gbps']:.0f} GB/s ({ceilings['read_us']['p50']:.1f} us), "
        f"paged read {ceilings['paged_read_gbps']:.0f} GB/s ({ceilings['paged_read_us']['p50']:.1f} us)"
    )
    variants = variants_of(lesson, pool)
    rows, graphs = [describe(variant, shape) for variant in variants], {}
    for i, (variant, row) in enumerate(zip(variants, rows, strict=True)):
        try:
            row |= check(variant, pool, truth)
            if variant.prepare:
                variant.prepare(pool.sets[0])
            graphs[str(i)] = LaunchGraph([lambda v=variant, s=s: v.launch(s) for s in pool.sets])
            if variant.call:
                row["eager_us"], row["host_us"] = eager_latency(
                    [lambda v=variant, s=s: v.call(s) for s in pool.sets]
                )
        except (
            Exception
        ) as error:  # whatever it is, it belongs in the record, and the next variant may be well
            row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            graphs.pop(str(i), None)
            say(f"{line_head(row)}FAILED {row['error']}")
            check_gpu_alive(row)
    latency = interleaved_latency(graphs, rounds)
    for i, row in enumerate(rows):
        if str(i) in latency:
            row |= figures(row, latency[str(i)], ceilings)
            say(line_of(row))
    return {"ceilings": ceilings, "rows": rows}


def check(variant: Variant, pool: Pool, truth: Truth) -> dict[str, float]:
    """Errors of the launch that will be timed, and of the public call; raises where one is too large."""
    page_set = pool.sets[0]
    errors: dict[str, float] = {}
    if variant.result:
        for tensor in (*variant.result, *variant.scratch):
            tensor.fill_(float("nan"))
        for step in (variant.prepare, variant.launch, variant.finish):
            if step:
                step(page_set)
        errors = truth.judge(*variant.result)
    if variant.call:
        with poisoned_allocations():
            o, lse = variant.call(page_set)
        errors = truth.judge(o, lse) | errors
    return {name: float(f"{value:.3g}") for name, value in errors.items()}


def check_gpu_alive(row: dict) -> None:
    """Raise GpuLostError where the failure of a row has made the GPU unusable for this process."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        raise GpuLostError(f"the GPU was lost at {line_head(row).strip()}: {row['error']}") from error


def describe(variant: Variant, shape: Shape) -> dict:
    """What is known of a row before anything runs."""
    launched = variant.launched
    return {
        "variant": variant.name,
        "batch_size": shape.batch_size, "ctx": shape.ctx, "page_size": shape.page_size,
        **variant.about,
        "num_programs": variant.num_programs,
        "num_warps": launched.num_warps if launched else None,
        "num_stages": launched.num_stages if launched else None,
        "kv_bytes": variant.kv_bytes, "bytes_requested": variant.bytes_requested,
        "flop": shape.flop if variant.kv_bytes else 0,
    }  # fmt: skip


def figures(row: dict, latency: dict[str, float], ceilings: dict) -> dict:
    """What follows from the latency; a row that reads no KV has no bandwidth."""
    result: dict = {"latency_us": latency}
    if row["kv_bytes"]:
        bandwidth = row["kv_bytes"] / latency["p50"] / 1e3
        result |= {
            "bandwidth_gbps": gbps(row["kv_bytes"], latency["p50"]),
            "share_of_read_ceiling": round(bandwidth / ceilings["read_gbps"], 4),
            "share_of_paged_read": round(ceilings["paged_read_us"]["p50"] / latency["p50"], 4),
        }
    return result


def line_head(row: dict) -> str:
    """Which row it is, in columns."""
    splits = f"S={row['num_splits']}" + ("*" if row["chosen"] else "") if "num_splits" in row else ""
    shape = f"{row['batch_size']}x{row['ctx']}"
    return f"  {shape:<9} page {row['page_size']:<3} {row['variant']:<15} {splits:<6} "


def line_of(row: dict) -> str:
    """A finished row, in one line."""
    us = row["latency_us"]
    text = f"{line_head(row)}{us['p50']:9.2f} us ({us['p20']:.2f}-{us['p80']:.2f})"
    if "bandwidth_gbps" in row:
        text += f" {row['bandwidth_gbps']:7.0f} GB/s {row['share_of_read_ceiling']:7.1%} of read"
    if "eager_us" in row:
        text += f"  eager {row['eager_us']['p50']:.0f} us, host {row['host_us']['p50']:.0f}"
    return f"{text}  err {row['max_abs_error']:.1e}"
