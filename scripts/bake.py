"""Turn the records in snippets/results into what pages include: tables, charts, facts (snippets/generated).

    python scripts/bake.py            write what has changed
    python scripts/bake.py --check    write nothing; exit 1 if anything is out of date
    python scripts/bake.py --list     print every fact

A card's record appears in every table and chart, behind the picker, with no page edited.
"""

import argparse
import html
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `scripts`, from anywhere

from scripts import records
from scripts.bake_charts import CHARTS
from scripts.bake_facts import all_facts, gpu_key
from scripts.bake_l0 import L0_TABLES
from scripts.bake_l1 import L1_TABLES, l1_pages
from scripts.bake_l1 import LESSON as L1
from scripts.bake_l1_facts import l1_facts
from scripts.bake_l7 import L7_TABLES
from scripts.bake_l7 import LESSON as L7
from scripts.bake_l7_charts import L7_CHARTS
from scripts.bake_l7_targets import targets as l7_targets
from scripts.bake_ladder import predictions
from scripts.bake_runner import RUNNER_TABLES
from scripts.bake_site import SITE_TABLES
from scripts.bake_splits import SPLIT_TABLES
from scripts.bake_tables import TABLES
from scripts.bake_text import LANGS, WORDS
from scripts.bake_transfer import LESSON as TRANSFER
from scripts.bake_transfer import TRANSFER_TABLES, transfer_facts
from scripts.generated import write_or_check
from scripts.split_regret import LESSON as SPLITS

RESULTS = records.RESULTS
GENERATED = records.ROOT / "snippets/generated"
LESSONS = {lesson: TABLES[lesson] | CHARTS[lesson] for lesson in TABLES} | {
    L7: L7_TABLES | L7_CHARTS | {"targets": l7_targets, "predictions": predictions}
}
LESSONS |= {SPLITS: SPLIT_TABLES, L1: L1_TABLES, TRANSFER: TRANSFER_TABLES}
FOLDERS = {SPLITS: L7}  # where the tables of a record that is no lesson's own stand


def bake(loaded: list[dict]) -> dict[str, str]:
    """{path below snippets/generated: content} of all that follows from the records and the kernels' code."""
    files = {"facts.json": json.dumps(facts(loaded), indent=1, ensure_ascii=False) + "\n", **l1_pages(loaded)}
    for name, make in (SITE_TABLES | L0_TABLES | RUNNER_TABLES).items():
        for lang in LANGS:
            files[f"{name}.{lang}.html"] = f'<div class="table-scroll">\n{make(loaded, lang)}\n</div>\n'
    for lesson, tables in LESSONS.items():
        for name, make in tables.items():
            for lang in LANGS:
                panels = [
                    panel(record, body, lang)
                    for record in loaded
                    if record["lesson"] == lesson and (body := make(record, lang))
                ]
                content = "\n".join(panels) or f"<p>{WORDS[lang]['none']}</p>"
                path = f"{FOLDERS.get(lesson, lesson)}/{name}.{lang}.html"
                files[path] = f'<div class="gpu-set">\n{content}\n</div>\n'
    return files


def facts(loaded: list[dict]) -> dict[str, str]:
    """Every fact, sorted by name."""
    return dict(sorted((all_facts(loaded) | l1_facts(loaded) | transfer_facts(loaded, gpu_key)).items()))


def panel(record: dict, body: str, lang: str) -> str:
    """One GPU's figures, what is to be known of them, and where they are from."""
    words = WORDS[lang]
    cited = record["kind"] == "cited"
    label = html.escape(record["gpu"]["name"] + (f" ({words['cited']})" if cited else ""))
    stale = [] if cited else records.outdated(record)
    warning = f'<p class="stale">{words["stale"].format(", ".join(stale))}</p>\n' if stale else ""
    return (
        f'<div class="gpu-panel" data-gpu="{record["gpu"]["slug"]}" data-label="{label}">\n'
        f'<p class="gpu-name">{label}</p>\n{warning}{body}\n'
        f'<p class="provenance"><small>{source(record, lang)}</small></p>\n</div>'
    )


def source(record: dict, lang: str) -> str:
    """The provenance line, as HTML: all that house rules ask of a measured number, or whose number it is."""
    words, gpu, problem = WORDS[lang], record["gpu"], record["problem"]
    # L7's rows differ in dtype and heads, and say so themselves.
    named = (("Hq", "num_qo_heads"), ("Hkv", "num_kv_heads"), ("D", "head_dim"))
    heads = [f"{name} {problem[key]}" for name, key in named if key in problem]
    shape = ", ".join([*([problem["dtype"]] if "dtype" in problem else []), *heads])
    if record["kind"] == "cited":
        text = html.escape(record["source"][lang])
        if url := record["source"]["url"]:
            text = f'<a href="{html.escape(url)}">{text}</a>'
        parts = [words["cited"], f"{words['source']}: {text}", f"{gpu['num_sms']} SM", shape]
        return " · ".join(parts)
    software = record["software"]
    sizes = {row.get("page_size", problem.get("page_size")) for row in record["rows"]}
    pages = "/".join(map(str, sorted(sizes)))
    peers = [(name, version) for name, version in software.get("peers", {}).items() if name not in software]
    parts = [
        f"{gpu['name']}, {gpu['num_sms']} SM",
        f"{words['driver']} {software['driver']}",
        *(f"{name} {software[name.lower()]}" for name in ("CUDA", "torch", "triton", "Python")),
        *(f"{name} {version}" for name, version in peers if not version.startswith("missing")),
        record["date"],
        f"{shape}, {words['page']} {pages}",
        # Of the L2 cache: cold, unless the record says warm, or its lesson how it was.
        words["l1_l2_cache" if record["lesson"] == L1 else record.get("l2", "cold")],
    ]
    if record["quick"]:
        parts.append(words["quick"])
    return " · ".join(map(html.escape, parts)) + f" · <code>{html.escape(record['command'])}</code>"


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare byte for byte; write nothing")
    parser.add_argument("--list", action="store_true", help="print every fact; write nothing")
    args = parser.parse_args(argv)
    try:
        loaded = records.all_records(RESULTS)
    except records.RecordError as error:
        print(f"bake.py: {error}", file=sys.stderr)
        return 1
    if args.list:
        print("\n".join(f"{name} = {text}" for name, text in facts(loaded).items()))
        return 0
    files = {GENERATED / name: content for name, content in bake(loaded).items()}
    return write_or_check(files, GENERATED.glob("*/*.html"), args.check, "python scripts/bake.py")


if __name__ == "__main__":
    sys.exit(main())
