"""The facts of lesson L1: of the recorded trace (scripts/bake_l1.py), and of the measured layouts."""

from scripts.bake_facts import gpu_key
from scripts.bake_l1 import GIB, LESSON, RESERVE, figures_of, read_ceiling, trace
from scripts.bake_text import percent, ratio, shape_name, us


def record_facts(record: dict) -> dict[str, str]:
    """<gpu>.l1.<kind>.<sequences>x<tokens>.<what>: of a write write_kv_nhd.us, of a read page16_nhd.us."""
    key, facts = f"{gpu_key(record)}.l1", {}
    for row in record["rows"]:
        if "latency_us" not in row:
            continue
        layout = "" if row["kv_layout"] == "-" else f"_{row['kv_layout'].lower()}"
        what = row["variant"] if row["kind"] == "write" else f"page{row['page_size']}"
        name = f"{key}.{row['kind']}.{shape_name(row)}.{what}{layout}"
        facts |= {f"{name}.us": us(row["latency_us"]["p50"]), f"{name}.gbps": f"{row['bandwidth_gbps']:.0f}"}
        if "host_us" in row:
            facts |= {f"{name}.host_us": us(row["host_us"]["p50"])}
    return facts


def l1_facts(loaded: list[dict]) -> dict[str, str]:
    """l1.<policy>.<what>, l1.trace.<what>, l1.prefix.<requests>.<what>; with a record `record_facts`."""
    told = trace()
    simulation = told["simulation"]
    card, gbps = read_ceiling(loaded)
    policy, token_bytes = simulation["policies"][RESERVE], simulation["bytes_per_token"]
    mean = policy["used"] / policy["steps"] * token_bytes
    facts = {
        "l1.trace.steps": f"{policy['steps']:,}", "l1.trace.generated": f"{policy['generated']:,}",
        "l1.trace.mean_used_gib": f"{mean / GIB:.2f}", "l1.trace.read_us": us(mean / gbps / 1e3),
        "l1.trace.peak_used_gib": f"{policy['peak_used'] * token_bytes / GIB:.2f}",
        "l1.trace.shortest": str(simulation["shortest"]), "l1.trace.longest": str(simulation["longest"]),
        "l1.trace.bytes_per_token": f"{token_bytes:,}", "l1.model.card": card, "l1.model.gbps": f"{gbps:.0f}",
    }  # fmt: skip
    for name, summary in simulation["policies"].items():
        f = figures_of(summary, simulation, gbps)
        key = f"l1.{name.replace(' ', '_')}"
        facts |= {
            f"{key}.share": percent(f["share"]), f"{key}.unused": percent(1 - f["share"]),
            f"{key}.needed_gib": f"{f['needed_gib']:.1f}", f"{key}.over": f"{f['over']:.2f}",
            f"{key}.holes": percent(f["holes"]),
        }  # fmt: skip
        if summary["copied"]:
            facts |= {
                f"{key}.copied": f"{f['copied']:.2f}", f"{key}.copied_gib": f"{f['copied_gib']:.1f}",
                f"{key}.copy_steps": percent(f["copy_steps"]), f"{key}.worst_mib": f"{f['worst_mib']:.0f}",
                f"{key}.worst_tokens": f"{summary['worst_copy']:,}", f"{key}.stall_us": us(f["stall_us"]),
                f"{key}.stall_share": percent(f["stall_us"] / f["read_us"]),
            }  # fmt: skip
    for record in loaded:
        facts |= record_facts(record) if record["lesson"] == LESSON else {}
    for row in told["prefix"]["rows"]:
        key = f"l1.prefix.{row['requests']}"
        facts |= {
            f"{key}.pages": str(row["pages"]), f"{key}.apart": str(row["pages_apart"]),
            f"{key}.ratio": ratio(row["pages_apart"] / row["pages"]),
        }  # fmt: skip
    return facts
