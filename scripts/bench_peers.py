"""One shape, all comers: each finds its best setting, is held against float64, and takes its turns."""

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from scripts import bench_rungs
from scripts.bench_inputs import Pool, Shape, make_pool, name_of
from scripts.bench_ours import OURS
from scripts.bench_rows import METHOD, check_gpu_alive, figures
from scripts.bench_truth import Truth, make_truth, poisoned_allocations
from scripts.peers import Candidate, Missing, flash_attention, flashinfer_decode, torch_sdpa, vllm_triton
from scripts.read_ceiling import SHORTLIST, measure_ceilings
from scripts.timing import LaunchGraph, eager_latency, interleaved_latency, quick_latency

DEVICE = "cuda"
POOL_BYTES = 2**29  # of KV, unless the L2 cache asks for more
QUICK_TURNS = 3  # L2 caches' worth of KV that a quick look rotates over
WRONG = 0.1  # relative error from which a peer's result is no attention; below, its error stands in its row
ADAPTERS = {
    "flashinfer": flashinfer_decode, "vllm": vllm_triton, "torch": torch_sdpa,
    "flash_attention": flash_attention,
}  # fmt: skip
PEERS_METHOD = METHOD | {
    "setting": "the fastest of those tried at a quick look (a short graph replay), ours and peers alike",
    "peers": "FlashInfer's plans are made before, outside of all figures; SDPA reads contiguous copies, "
    "which rotate as the page sets do",
    "check": "ours: o and lse at most twice as far from float64 on the (dequantised) cache as plain PyTorch "
    "in q's dtype; peers: the error is reported",
    "ceilings": METHOD["ceilings"] + "; 8-bit caches are read as 16-bit words, ragged batches in chunks",
}


@dataclass(frozen=True)
class Contest:
    """Who takes part."""

    variants: tuple[str, ...] | None = None  # None: all
    vllm: Path | None = None  # a folder with vLLM's kernels; None: the installed vLLM

    def set_up(self) -> None:
        """Once a process, before the first contender is made."""
        if self.vllm:
            vllm_triton.use_folder(self.vllm)

    def contenders(self, shape: Shape | None = None) -> dict[str, Callable[[Pool], list[Candidate]]]:
        """{variant: a function that gives its candidates}, ours first; the ladder's rungs at its shapes."""
        everyone = OURS | {
            name: make for adapter in ADAPTERS.values() for name, make in adapter.PEERS.items()
        }
        if shape is not None:
            everyone |= bench_rungs.contenders(shape)
        return {
            name: make for name, make in everyone.items() if self.variants is None or name in self.variants
        }

    def versions(self) -> dict[str, str]:
        """{project: version} of the peers that are here."""
        found = {}
        for name, adapter in ADAPTERS.items():
            with suppress(Missing):  # its rows say so
                found[name] = adapter.version()
        return found


VARIANTS = tuple(Contest().contenders())


def bench_shape(
    contest: Contest, shape: Shape, rounds: int, l2_bytes: int, say: Callable[[str], None]
) -> dict:
    """{"ceilings", "rows", "missing", "seconds"} of one shape; `say` gets one line for each finished row."""
    start = time.perf_counter()
    gc.collect()  # the last shape's graphs and planned wrappers
    torch.cuda.empty_cache()
    pool = make_pool(shape, DEVICE, l2_bytes, POOL_BYTES)
    truth = make_truth(pool, pool.sets[0])
    ceilings = {"shape": str(shape)} | measure_ceilings(pool, rounds, SHORTLIST)
    say(
        f"{shape}: {shape.kv_bytes / 1e6:.1f} MB, read {ceilings['read_us']['p50']:.1f} us "
        f"({ceilings['read_gbps']:.0f} GB/s), paged read {ceilings['paged_read_us']['p50']:.1f} us"
    )
    quick_sets = pool.sets[: max(2, -(-QUICK_TURNS * l2_bytes // shape.kv_bytes))]
    rows, missing, graphs = [], [], {}
    for name, make in contest.contenders(shape).items():
        row = describe(name, shape)
        try:
            ranked = rank(make(pool), quick_sets, row["kind"])
            candidate, errors = first_right(ranked, pool, truth, row["kind"])
            row |= {"setting": candidate.setting, "settings_tried": len(ranked)} | errors
            with candidate.context():
                graphs[name] = LaunchGraph([lambda c=candidate, s=s: c.launch(s) for s in pool.sets])
                if candidate.eager:
                    calls = [lambda c=candidate, s=s: (c.call or c.launch)(s) for s in pool.sets]
                    row["eager_us"], row["host_us"] = eager_latency(calls)
                if candidate.eager and candidate.call:  # peers are always timed so: prepared, outputs given
                    calls = [lambda c=candidate, s=s: c.launch(s) for s in pool.sets]
                    row["prepared_eager_us"], row["prepared_host_us"] = eager_latency(calls)
        except Missing as reason:
            missing.append({"variant": name, "shape": str(shape), "missing": str(reason)})
            continue
        except Exception as error:  # whatever it is, it belongs in the record, and the next may be well
            row["error"] = f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]
            graphs.pop(name, None)
            say(f"{head(row)} FAILED {row['error']}")
            check_gpu_alive(row)
        rows.append(row)
    latency = interleaved_latency(graphs, rounds)
    for row in rows:
        if row["variant"] in latency:
            row |= figures(row, latency[row["variant"]], ceilings)
            say(line_of(row))
    seconds = round(time.perf_counter() - start, 1)
    say(f"{shape}: {seconds} s; missing: {', '.join(m['variant'] for m in missing) or 'none'}")
    return {"ceilings": ceilings, "rows": rows, "missing": missing, "seconds": seconds}


def describe(name: str, shape: Shape) -> dict:
    """What is known of a row before anything runs."""
    rung = bench_rungs.about(name, shape) if name in bench_rungs.RUNGS else {}
    kind = "rung" if rung else "ours" if name in OURS else "peer"
    return {
        "variant": name, "kind": kind, **rung,
        "batch_size": shape.batch_size, "ctx": shape.ctx, **({"ragged": True} if shape.ragged else {}),
        "num_qo_heads": shape.num_qo_heads, "num_kv_heads": shape.num_kv_heads, "head_dim": shape.head_dim,
        "page_size": shape.page_size, "dtype": name_of(shape.dtype), "kv_dtype": name_of(shape.cache_dtype),
        "contiguous": name in torch_sdpa.PEERS, "kv_bytes": shape.kv_bytes, "flop": shape.flop,
    }  # fmt: skip


def rank(candidates: Sequence[Candidate], sets: Sequence, kind: str) -> list[Candidate]:
    """Fastest first at a quick look; a peer's that cannot be launched are left out, ours raise."""
    if len(candidates) == 1:
        return list(candidates)
    quick, failure = {}, None
    for i, candidate in enumerate(candidates):
        try:
            with candidate.context():
                quick[i] = quick_latency([lambda c=candidate, s=s: c.launch(s) for s in sets])
        except Exception as error:  # a setting that a peer refuses is no candidate; the others may be well
            if kind != "peer":
                raise
            failure = error
            torch.cuda.synchronize()
    if not quick:
        raise failure or Missing("missing: it offers no setting for this shape")
    return [candidates[i] for i in sorted(quick, key=quick.get)]


def first_right(
    ranked: Sequence[Candidate], pool: Pool, truth: Truth, kind: str
) -> tuple[Candidate, dict[str, float]]:
    """The fastest candidate whose result is right, and its errors; ours must be right at its fastest."""
    for candidate in ranked[:-1] if kind == "peer" else ():
        with suppress(AssertionError):
            return candidate, check(candidate, pool, truth, kind)
    last = ranked[-1 if kind == "peer" else 0]
    return last, check(last, pool, truth, kind)


def check(candidate: Candidate, pool: Pool, truth: Truth, kind: str) -> dict[str, float]:
    """Errors of the launch that will be timed and, for ours, of the public call; raises where it is wrong."""
    page_set = pool.sets[0]
    for tensor in (candidate.result, candidate.lse):
        if tensor is not None:
            tensor.fill_(float("nan"))
    with candidate.context():
        returned = candidate.launch(page_set)
    if candidate.result is not None:
        returned = candidate.result, candidate.lse
    if kind != "peer":
        errors = truth.judge(*returned)
        if candidate.call:
            with candidate.context(), poisoned_allocations():
                truth.judge(*candidate.call(page_set))
    else:
        o = returned[0] if isinstance(returned, tuple) else returned
        errors = truth.errors(o)
        if not errors["relative_error"] <= WRONG:
            raise AssertionError(f"relative error {errors['relative_error']:.3g}: not this attention")
    return {name: float(f"{value:.3g}") for name, value in errors.items()}


def head(row: dict) -> str:
    """Which row it is, in columns."""
    return f"  {row['variant']:<21} {row.get('setting', ''):<28}"


def line_of(row: dict) -> str:
    """A finished row, in one line."""
    us = row["latency_us"]
    text = (
        f"{head(row)} {us['p50']:8.2f} us ({us['p20']:.2f}-{us['p80']:.2f}) "
        f"{row['bandwidth_gbps']:5.0f} GB/s {row['share_of_paged_read']:6.1%} of paged read"
    )
    if "eager_us" in row:
        text += f", eager {row['eager_us']['p50']:.0f} us, host {row['host_us']['p50']:.0f}"
    return f"{text}, err {row['relative_error']:.1e}"


def collapse(missing: Sequence[dict], num_shapes: int) -> list[dict]:
    """Missing at every shape for one reason: one entry, without a shape."""
    shapes: dict[tuple[str, str], list[dict]] = {}
    for entry in missing:
        shapes.setdefault((entry["variant"], entry["missing"]), []).append(entry)
    return [
        entry
        for (variant, reason), entries in shapes.items()
        for entry in (
            [{"variant": variant, "missing": reason}] if len(entries) == num_shapes > 1 else entries
        )
    ]
