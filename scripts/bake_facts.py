"""The facts that pages print: one flat table of names and texts, from the records and from arithmetic.

<gpu>.<lesson>.<shape>.<row>.<what>: "h200" (the cited card: "rtx5090"), "l2", "l3" or "l7", "64x1024", then

  what          us p20 p80 gbps share paged_share tflops programs warps stages eager_us host_us overhead_us
  rows of l2    naive packed habit swap_k packed_page64, and read, paged_read (the ceilings: us, gbps)
  rows of l3    l2 (the base), every number of splits ("64"), chosen, best, unnormalized; where both kernels
                were timed apart also split_us, combine_us, rest_us, partial_mib; chosen.splits, best.splits
  rows of l7    its variants and rungs, read, paged_read; a shape that is not plain says how: 8x4096_bf16,
                8x4096_h32_32, 16x8192_page64, 64x1024_fp8, ragged; ratio: times fast_decode, over: its
                inverse; predicted_us of a rung; <gpu>.l7.targets.{met,missed,unknown}
  rules         <gpu>.splits.<kernel>.<rule>.<what>, of scripts/bake_splits.py
  ratios        <gpu>.<lesson>.<shape>.naive_over_packed, l2_over_64, l2_over_best, chosen_over_best, ...

Without a GPU: kv_bytes.<shape>, flop.<shape>, programs.<shape>, partial_mib.<shape>.<splits> and their like.
"""

from scripts.bake_charts import nominal
from scripts.bake_l7 import LESSON as L7
from scripts.bake_l7 import OURS, case_name, cases, ceiling_of
from scripts.bake_l7_targets import status_counts
from scripts.bake_splits import split_facts
from scripts.bake_tables import find, one, p50, pair_of, shapes, us_text
from scripts.bake_text import percent, ratio, shape_name, us
from scripts.split_regret import LESSON as SPLITS
from scripts.targets import judge

# The lessons' problem: fp16, Hq 32, Hkv 8, D 128, page 16.
SHAPES = ((1, 32768), (8, 4096), (64, 1024))
NUM_QO_HEADS, NUM_KV_HEADS, HEAD_DIM, PAGE_SIZE, ITEM = 32, 8, 128, 16, 2
VARIANTS = {"naive": "naive", "packed": "packed", "packed_habit": "habit", "packed_swap_k": "swap_k"}

Facts = dict[str, str]


def gpu_key(record: dict) -> str:
    """A card's short name; a cited card's is shorter still, so that it never meets a measured one."""
    key = record["gpu"]["slug"].removeprefix("nvidia-")
    if record["kind"] == "cited":
        key = key.removesuffix("-cited").removeprefix("geforce-")
    return key.replace("-", "")


def all_facts(records: list[dict]) -> Facts:
    """Every fact, sorted by name."""
    facts = arithmetic()
    for record in records:
        facts |= gpu_facts(record)
        if record["lesson"] == "l2_paged_decode":
            facts |= l2_facts(record, f"{gpu_key(record)}.l2")
        elif record["lesson"] == "l3_split_kv_decode":
            facts |= l3_facts(record, f"{gpu_key(record)}.l3")
        elif record["lesson"] == L7:
            facts |= l7_facts(record, f"{gpu_key(record)}.l7")
        elif record["lesson"] == SPLITS:
            facts |= split_facts(record, f"{gpu_key(record)}.splits")
    return dict(sorted(facts.items()))


def arithmetic() -> Facts:
    """What follows from the shapes alone."""
    facts = {"group_size": str(NUM_QO_HEADS // NUM_KV_HEADS)}
    for batch_size, ctx in SHAPES:
        shape = f"{batch_size}x{ctx}"
        kv_bytes = 2 * batch_size * ctx * NUM_KV_HEADS * HEAD_DIM * ITEM
        facts |= {
            f"kv_bytes.{shape}": f"{kv_bytes:,}",
            f"kv_mb.{shape}": f"{kv_bytes / 1e6:.1f}",
            f"kv_mib.{shape}": f"{kv_bytes / 2**20:.0f}",
            f"flop.{shape}": f"{4 * batch_size * NUM_QO_HEADS * ctx * HEAD_DIM:,}",
            f"pages.{shape}": str(ctx // PAGE_SIZE),
            f"programs.{shape}": str(batch_size * NUM_KV_HEADS),
            f"programs_naive.{shape}": str(batch_size * NUM_QO_HEADS),
        }
        for splits in (4, 16, 64):
            partial = batch_size * NUM_QO_HEADS * splits * HEAD_DIM * 4
            facts |= {
                f"programs.{shape}.{splits}": str(batch_size * NUM_KV_HEADS * splits),
                f"pages_per_split.{shape}.{splits}": str(-(-ctx // PAGE_SIZE // splits)),
                f"partial_mib.{shape}.{splits}": f"{partial / 2**20:g}",
                f"partial_share.{shape}.{splits}": percent(partial / kv_bytes),
            }
    page_stride = PAGE_SIZE * NUM_KV_HEADS * HEAD_DIM
    return facts | {
        "page_stride": f"{page_stride:,}",
        "int32_wraps_at_page": f"{2**31 // page_stride:,}",
        "int32_wraps_at_gib": f"{2**31 * ITEM / 2**30:g}",
        "combine_kib.64": f"{64 * HEAD_DIM * 4 / 1024:g}",
    }


def gpu_facts(record: dict) -> Facts:
    """The card, the software, and the vendor's figures with their ridges."""
    key, gpu = gpu_key(record), record["gpu"]
    facts = {f"{key}.name": gpu["name"], f"{key}.sms": str(gpu["num_sms"])}
    if record["kind"] == "measured":
        software = record["software"]
        facts |= {f"{key}.{name}": text for name, text in software.items() if name != "peers"}
        facts |= {f"{key}.{name}": text for name, text in software.get("peers", {}).items()}
        facts |= {
            f"{key}.date": record["date"],
            f"{key}.l2_mb": f"{gpu['l2_bytes'] / 1e6:.0f}",
            f"{key}.l2_mib": f"{gpu['l2_bytes'] / 2**20:.0f}",
            f"{key}.memory_gb": f"{gpu['memory_bytes'] / 1e9:.0f}",
        }
    if figures := nominal(gpu["name"]):
        bandwidth = figures["memory_gb_per_s"]
        facts |= {
            f"{key}.nominal.gbps": f"{bandwidth}",
            f"{key}.nominal.tensor_tflops": f"{figures['fp16_tensor_tflops']:g}",
            f"{key}.nominal.fp32_tflops": f"{figures['fp32_tflops']:g}",
            f"{key}.ridge": f"{1e3 * figures['fp16_tensor_tflops'] / bandwidth:.0f}",
            f"{key}.ridge_cuda_cores": f"{1e3 * figures['fp32_tflops'] / bandwidth:.0f}",
        }
    return facts


def row_facts(key: str, row: dict, peak_gbps: float | None = None) -> Facts:
    """All that one row gives; nothing where it failed."""
    if p50(row) is None:
        return {}
    facts = {f"{key}.us": us_text(row)}
    gbps = row.get("bandwidth_gbps", row.get("printed_gbps"))
    if gbps is not None:
        facts[f"{key}.gbps"] = f"{gbps:.0f}"
        if peak_gbps:
            facts[f"{key}.share_of_peak"] = percent(gbps / peak_gbps)
    if "latency_us" in row:
        facts |= {f"{key}.p20": us(row["latency_us"]["p20"]), f"{key}.p80": us(row["latency_us"]["p80"])}
    for name, field in (("share", "share_of_read_ceiling"), ("paged_share", "share_of_paged_read")):
        if field in row:
            facts[f"{key}.{name}"] = percent(row[field])
    for name in ("num_programs", "num_warps", "num_stages", "num_splits"):
        if row.get(name) is not None:
            facts[f"{key}.{name.removeprefix('num_')}"] = str(row[name])
    if row.get("flop"):
        facts[f"{key}.tflops"] = ratio(row["flop"] / p50(row) / 1e6)
        if "bytes_requested" in row:  # nobody counts a peer's
            facts[f"{key}.flop_per_byte"] = ratio(row["flop"] / row["bytes_requested"])
    if "eager_us" in row:
        eager = row["eager_us"]["p50"]
        facts |= {
            f"{key}.eager_us": us(eager), f"{key}.host_us": us(row["host_us"]["p50"]),
            f"{key}.overhead_us": us(max(0.0, eager - p50(row))),
        }  # fmt: skip
    if "prepared_host_us" in row:
        facts[f"{key}.prepared_host_us"] = us(row["prepared_host_us"]["p50"])
    for name, field in (
        ("error", "max_abs_error"),
        ("allowed_error", "allowed_abs_error"),
        ("rel_error", "relative_error"),
    ):
        if field in row:
            facts[f"{key}.{name}"] = f"{row[field]:.1e}"
    return facts


def ratios(key: str, times: dict[str, float | None], pairs: tuple[tuple[str, str], ...]) -> Facts:
    """{"key.a_over_b": time of a / time of b} where both are known."""
    return {
        f"{key}.{a}_over_{b}": ratio(times[a] / times[b]) for a, b in pairs if times.get(a) and times.get(b)
    }


def l2_facts(record: dict, key: str) -> Facts:
    facts, peak = {}, record["gpu"].get("peak_bandwidth_gbps")
    if "matmul_tflops" in record:
        facts[f"{key.split('.')[0]}.matmul_tflops"] = f"{record['matmul_tflops']:.0f}"
    for row in record["rows"]:
        name = VARIANTS[row["variant"]] + ("_page64" if row.get("page_size") == 64 else "")
        facts |= row_facts(f"{key}.{shape_name(row)}.{name}", row, peak)
    for ceiling in record.get("ceilings", []):
        page = "" if ceiling["page_size"] == PAGE_SIZE else f"_page{ceiling['page_size']}"
        facts |= ceiling_facts(f"{key}.{shape_name(ceiling)}", ceiling, page)
    for shape in shapes(record):
        times = {
            VARIANTS[row["variant"]] + ("_page64" if row.get("page_size") == 64 else ""): p50(row)
            for row in record["rows"]
            if (row["batch_size"], row["ctx"]) == (shape["batch_size"], shape["ctx"])
        }
        pairs = (("naive", "packed"), ("habit", "packed"), ("swap_k", "packed"), ("packed", "packed_page64"))
        facts |= ratios(f"{key}.{shape_name(shape)}", times, pairs)
    return facts


def l3_facts(record: dict, key: str) -> Facts:
    facts: Facts = {}
    for shape in shapes(record):
        at = f"{key}.{shape_name(shape)}"
        splits = [row for row in find(record, "split", **shape) if p50(row)]
        named = {str(row["num_splits"]): row for row in splits}
        if splits:
            named["best"] = min(splits, key=p50)
        for name, row in (
            ("l2", one(record, "packed", **shape)),
            ("chosen", next((row for row in splits if row.get("chosen")), None)),
            ("unnormalized", one(record, "unnormalized", **shape)),
        ):
            if row:
                named[name] = row
        for name, row in named.items():
            facts |= row_facts(f"{at}.{name}", row)
        times = {name: p50(row) for name, row in named.items()}
        pairs = [("l2", name) for name in named if name != "l2"]
        pairs += [("chosen", "best"), ("unnormalized", "chosen")]
        facts |= ratios(at, times, tuple(pairs))
        facts |= parts_facts(record, shape, at)
    return facts


def parts_facts(record: dict, shape: dict, at: str) -> Facts:
    """Split and combine apart, for each number of splits that has them."""
    facts: Facts = {}
    for alone in find(record, "split_kernel", **shape):
        same = {**shape, "num_splits": alone["num_splits"]}
        pair, combine = pair_of(record, **same), one(record, "combine_kernel", **same)
        if not (pair and combine and p50(pair) and p50(combine) and p50(alone)):
            continue
        for name in (str(alone["num_splits"]), *(["chosen"] if alone["chosen"] else [])):
            facts |= {
                f"{at}.{name}.split_us": us(p50(alone)),
                f"{at}.{name}.combine_us": us(p50(combine)),
                f"{at}.{name}.rest_us": us(p50(pair) - p50(alone)),
                f"{at}.{name}.partial_mib": f"{alone['partial_bytes'] / 2**20:.2f}",
            }
    return facts


def l7_facts(record: dict, key: str) -> Facts:
    facts: Facts = {}
    for row in record["rows"]:
        facts |= row_facts(f"{key}.{case_name(row)}.{row['variant']}", row)
        if predicted := row.get("prediction", {}).get("us"):
            facts[f"{key}.{case_name(row)}.{row['variant']}.predicted_us"] = us(predicted)
    for case in cases(record):
        for name, row in case.rows.items():
            if name != OURS and (times := case.times(row)):
                at = f"{key}.{case.name}.{name}"
                facts |= {f"{at}.ratio": ratio(times), f"{at}.over": f"{1 / times:.2f}"}
        facts |= ceiling_facts(f"{key}.{case.name}", ceiling_of(record, case.first))
    counts = status_counts(judge(record))
    return facts | {f"{key}.targets.{status}": str(count) for status, count in counts.items()}


def ceiling_facts(key: str, ceiling: dict | None, page: str = "") -> Facts:
    """us and GB/s of the pure and of the paged read."""
    facts: Facts = {}
    for kind in ("read", "paged_read") if ceiling else ():
        facts[f"{key}.{kind}{page}.us"] = us(ceiling[f"{kind}_us"]["p50"])
        facts[f"{key}.{kind}{page}.gbps"] = f"{ceiling[f'{kind}_gbps']:.0f}"
    return facts
