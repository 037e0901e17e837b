"""How a block table reaches the device, measured: tables of the l1_table_to_device record, and its facts.

Facts, <gpu>.transfer.<what>:
  <B>x<max_pages>.<way>.{host_us,ready_us,busy_us}   ways of scripts/bench_copies.py, cuda_{pageable,pinned}
  <B>x<max_pages>.{copy_us,copy_gbps}                of the copy alone
  step.<B>x<ctx>.{eager,replay}.{us,host_us,pipelined_us}
  step.<B>x<ctx>.{gpu_us,tables_us,saved_us,ratio,pipelined_ratio}
  <outcome>.{kernels,wrong}                          outcomes of kernels/l1_outcomes.py
"""

import html
from collections.abc import Callable

from scripts.bake_tables import us_cell
from scripts.bake_text import WORDS, ratio, shape_name, shape_text, table, us
from scripts.generated import ROOT
from scripts.transfer_programs import SOURCES, source_hash

LESSON = "l1_table_to_device"
WAYS = (
    "pageable", "pageable_async", "pinned", "refill", "stream", "interface", "interface_clean",
    "cuda_pageable", "cuda_pinned",
)  # fmt: skip
OUTCOMES = (
    "race", "race_waits", "race_idle", "pinned_in_capture", "pinned_in_capture_waits", "clean_in_capture",
    "static_buffer",
)  # fmt: skip
Size = tuple[int, int]


def copies_of(record: dict) -> dict[Size, dict[str, dict]]:
    """{(B, max_pages): {way: row}}, those of the CUDA C++ program among them."""
    found: dict[Size, dict[str, dict]] = {}
    for row in [*record["copies"], *record["cuda_cpp"].get("rows", [])]:
        found.setdefault((row["batch_size"], row["max_pages"]), {})[row["way"]] = row
    return found


def size_text(size: Size) -> str:
    """A table's shape and bytes: 64 × 2048, 512 KiB."""
    batch_size, max_pages = size
    num_bytes = 4 * batch_size * max_pages
    text = f"{num_bytes / 2**20:g} MiB" if num_bytes >= 2**20 else f"{num_bytes / 2**10:g} KiB"
    if num_bytes < 2**10:
        text = f"{num_bytes} B"
    return f"{batch_size} × {max_pages}, {text}"


def copies(record: dict, lang: str) -> str:
    """Every way and size: host time and time until the table is there, idle GPU."""
    return ways_table(record, lang, lambda row: f"{us(row['host_us']['p50'])} / {us(row['ready_us']['p50'])}")


def busy(record: dict, lang: str) -> str:
    """Every way and size: host time behind another kernel."""
    return ways_table(record, lang, lambda row: us(row["host_busy_us"]["p50"]))


def ways_table(record: dict, lang: str, cell: Callable[[dict], str]) -> str:
    """One row a way, one column a size."""
    words, found = WORDS[lang], copies_of(record)
    rows = [
        [html.escape(words[f"way_{way}"]), *(cell(found[size][way]) for size in found)]
        for way in WAYS
        if all(way in ways for ways in found.values())
    ]
    measured = record["cuda_cpp"]["source_hash"] == source_hash("cuda")
    warning = words["stale"].format(SOURCES["cuda"].relative_to(ROOT))
    stale = "" if measured else f'<p class="stale">{warning}</p>\n'
    return stale + table([words["way"], *map(size_text, found)], rows)


def step_pairs(record: dict) -> list[tuple[dict, dict]]:
    """(eager, replay) of every shape."""
    found: dict[str, dict[str, dict]] = {}
    for row in record["rows"]:
        found.setdefault(shape_name(row), {})[row["variant"]] = row
    return [(pair["eager"], pair["replay"]) for pair in found.values()]


def steps(record: dict, lang: str) -> str:
    """One decode step of one layer, eager and replayed, one row a shape."""
    words, rows = WORDS[lang], []
    for eager, replay in step_pairs(record):
        single = eager["latency_us"]["p50"], replay["latency_us"]["p50"]
        many = eager["pipelined_us"], replay["pipelined_us"]
        rows.append([
            shape_text(eager), us(eager["gpu_us"]), us(eager["tables_us"]["p50"]),
            us_cell(eager, lang), us_cell(replay, lang), f"{ratio(single[0] / single[1])}×",
            *map(us, many), f"{ratio(many[0] / many[1])}×",
        ])  # fmt: skip
    names = ("shape", "step_kernels", "step_tables", "step_eager", "step_replay", "step_ratio")
    many = ("step_eager_many", "step_replay_many", "step_ratio")
    return table([words[name] for name in (*names, *many)], rows)


def outcomes(record: dict, lang: str) -> str:
    """What the kernels found on the GPU: the race, and the captures."""
    words = WORDS[lang]
    error = record["outcomes"]["pageable_in_capture"]["error"].partition(". ")[0]  # its first sentence
    refused = [html.escape(text) for text in (words["outcome_pageable_in_capture"], error)]
    rows = [[refused[0], words["outcome_none"], refused[1]]]
    for name in OUTCOMES:
        found = record["outcomes"][name]
        reads = ", ".join(read_text(*read) for read in found["reads"]) if "reads" in found else "–"
        told = words["outcome_wrong"].format(wrong=found["wrong"], kernels=found["kernels"])
        rows.append([html.escape(words[f"outcome_{name}"]), told, reads])
    # The race stands first: it needs no graph.
    rows = [*rows[1:4], rows[0], *rows[4:]]
    return table([words["outcome"], words["outcome_judged"], words["outcome_found"]], rows, texts=3)


def read_text(wanted: int, least: int, most: int) -> str:
    """The table that a kernel found; torn: two of them."""
    found = str(least) if least == most else f"{least}–{most}"
    return found if least == most == wanted else f"<strong>{found}</strong>"


def transfer_facts(loaded: list[dict], gpu_key: Callable[[dict], str]) -> dict[str, str]:
    """All facts of the records of this lesson."""
    facts: dict[str, str] = {}
    for record in loaded:
        if record["lesson"] == LESSON:
            facts |= facts_of(record, f"{gpu_key(record)}.transfer")
    return facts


def facts_of(record: dict, key: str) -> dict[str, str]:
    """The facts of one record."""
    facts = {}
    for (batch_size, max_pages), ways in copies_of(record).items():
        at = f"{key}.{batch_size}x{max_pages}"
        for way, row in ways.items():
            for name, field in (("host", "host_us"), ("ready", "ready_us"), ("busy", "host_busy_us")):
                facts[f"{at}.{way}.{name}_us"] = us(row[field]["p50"])
        copy_us = ways["refill"]["copy_us"]["p50"]
        facts[f"{at}.copy_us"] = us(copy_us)
        facts[f"{at}.copy_gbps"] = f"{4 * batch_size * max_pages / copy_us / 1e3:.1f}"
    for eager, replay in step_pairs(record):
        at = f"{key}.step.{shape_name(eager)}"
        for name, row in (("eager", eager), ("replay", replay)):
            facts |= {
                f"{at}.{name}.us": us(row["latency_us"]["p50"]),
                f"{at}.{name}.host_us": us(row["host_us"]["p50"]),
                f"{at}.{name}.pipelined_us": us(row["pipelined_us"]),
            }
        single = eager["latency_us"]["p50"], replay["latency_us"]["p50"]
        facts |= {
            f"{at}.gpu_us": us(eager["gpu_us"]),
            f"{at}.tables_us": us(eager["tables_us"]["p50"]),
            f"{at}.saved_us": us(single[0] - single[1]),
            f"{at}.ratio": ratio(single[0] / single[1]),
            f"{at}.pipelined_ratio": ratio(eager["pipelined_us"] / replay["pipelined_us"]),
        }
    for name in OUTCOMES:
        for what in ("kernels", "wrong"):
            facts[f"{key}.{name}.{what}"] = str(record["outcomes"][name][what])
    return facts


TRANSFER_TABLES: dict[str, Callable[[dict, str], str | None]] = {
    "copies": copies,
    "busy": busy,
    "steps": steps,
    "outcomes": outcomes,
}
