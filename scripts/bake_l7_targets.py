"""The table of L7's targets: a line a problem, what was wanted, what was reached."""

from collections import Counter

from scripts.bake_l7 import case_text
from scripts.bake_text import WORDS, table, us
from scripts.targets import cudnn_targets, judge
from scripts.targets import targets as fixed_targets

COLUMNS = ("share", "flashinfer", "vllm", "cudnn", "error", "host_us")


def targets(record: dict, lang: str) -> str | None:
    """Every target of the record, met or not."""
    words = WORDS[lang]
    lines: dict[str, dict[str, str]] = {}
    entries = judge(record)
    for target, entry in zip([*fixed_targets(), *cudnn_targets(record)], entries, strict=True):
        measure, name = target.measure, case_text(target.problem._asdict() | {"head_dim": 128}, lang)
        if measure.startswith("lesson/"):
            measure, name = measure.removeprefix("lesson/"), f"{name}, {words['split_kv_decode']}"
        column = "share" if target.at_least else measure
        lines.setdefault(name, {})[column] = _cell(entry, lang)
    rows = [[name, *(cells.get(column, "") for column in COLUMNS)] for name, cells in lines.items()]
    told = words["targets_told"].format(all=len(entries), **status_counts(entries))
    head = [words["shape"], *(words[f"target_{column}"] for column in COLUMNS)]
    return f"<p>{told}</p>\n{table(head, rows)}"


def status_counts(entries: list[dict]) -> dict[str, int]:
    """How many targets are met, missed and unknown."""
    counts = Counter(entry["status"] for entry in entries)
    return {status: counts[status] for status in ("met", "missed", "unknown")}


def _cell(entry: dict, lang: str) -> str:
    """What was reached; below it, small, what was wanted, and whether it was reached."""
    words, measure = WORDS[lang], entry["measure"]
    limit, value = (_text(measure, entry.get(key)) for key in ("limit", "value"))
    if entry["status"] == "missed":
        value = f"<strong>{value}</strong>"
    basis = f"{words['pure_read']} " if measure == "share_of_read_ceiling" else ""
    bound = f"{basis}{'≥' if entry['at_least'] else '≤'} {limit}"
    return f"{value}<br><small>{bound} · {words['status_' + entry['status']]}</small>"


def _text(measure: str, value: float | None) -> str:
    if value is None:
        return "–"
    if measure.startswith("share"):
        return f"{value:.1%}"
    return {"error": f"{value:.1e}", "host_us": us(value)}.get(measure, f"{value:.3f}")
