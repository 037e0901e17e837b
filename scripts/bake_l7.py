"""The measured tables of L7: fast_decode beside its peers, at every case of the record.

A case is one problem (shape, dtypes, heads, page size). Its rows are those of kind "ours" and "peer", one a
variant; rungs of the ladder belong to the chart of scripts/bake_l7_charts.py.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass, field

from scripts.bake_tables import gbps_cell, p50, share_cell, us_cell
from scripts.bake_text import WORDS, percent, ratio, shape_name, shape_text, table, us

LESSON = "l7_fast_decode"
OURS = "fast_decode"
SHORT = {"float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}
NO_BREAK = "\u00a0"
SMALL_BYTES = 100e6  # of KV: below it, launches and the combine are what is left


@dataclass
class Case:
    """One problem. name: of its facts, "8x4096" or "8x4096_bf16"; plain: fp16, heads and page as in L3."""

    name: str
    plain: bool
    first: dict
    rows: dict[str, dict] = field(default_factory=dict)

    def text(self, lang: str) -> str:
        return case_text(self.first, lang)

    def times(self, row: dict) -> float | None:
        """How many times fast_decode's time a row takes."""
        ours = self.rows.get(OURS)
        return p50(row) / p50(ours) if ours and p50(ours) and p50(row) else None

    @property
    def kv_bytes(self) -> int:
        return self.first["kv_bytes"]


def differences(row: dict) -> list[tuple[str, str]]:
    """(name, text) of what sets a row apart from fp16, Hq 32, Hkv 8, D 128, page 16."""
    dtype, kv_dtype = (SHORT.get(name, name) for name in (row["dtype"], row.get("kv_dtype", row["dtype"])))
    heads, page_size = (row["num_qo_heads"], row["num_kv_heads"]), row["page_size"]
    found = []
    if dtype != "fp16":
        found.append((dtype, dtype))
    if kv_dtype != dtype:
        found.append((kv_dtype, f"{kv_dtype} KV"))
    if heads != (32, 8):
        found.append((f"h{heads[0]}_{heads[1]}", f"Hq {heads[0]}, Hkv {heads[1]}"))
    if row["head_dim"] != 128:
        found.append((f"d{row['head_dim']}", f"D {row['head_dim']}"))
    if page_size != 16:
        found.append((f"page{page_size}", f"page {page_size}"))
    return found


def case_text(row: dict, lang: str) -> str:
    """How a row's case is called in tables."""
    plain = shape_text(row).replace(" ", NO_BREAK)
    shape = WORDS[lang]["ragged_shape"].format(**row) if row.get("ragged") else plain
    return ", ".join([shape, *(text for _, text in differences(row))])


def case_name(row: dict) -> str:
    """How a row's case is called in facts."""
    shape = "ragged" if row.get("ragged") else shape_name(row)
    return "_".join([shape, *(name for name, _ in differences(row))])


def cases(record: dict) -> list[Case]:
    """Every case of a record, in its order."""
    found: dict[str, Case] = {}
    for row in record["rows"]:
        if row["kind"] != "rung":
            name = case_name(row)
            case = found.setdefault(name, Case(name, not differences(row), row))
            case.rows[row["variant"]] = row
    return list(found.values())


def variants(found: list[Case]) -> list[str]:
    """Every variant of these cases: ours first, then in the record's order."""
    rows = {name: row for case in found for name, row in case.rows.items()}
    return sorted(rows, key=lambda name: rows[name]["kind"] != "ours")


def name_of(variant: str, lang: str) -> str:
    return WORDS[lang].get(variant, variant)


def ceiling_of(record: dict, row: dict) -> dict | None:
    """The ceilings that were measured in the same run at a row's shape; dtypes of one size share them."""
    keys = ("batch_size", "ctx", "page_size", "kv_bytes")
    return next((c for c in record.get("ceilings", []) if all(c[key] == row[key] for key in keys)), None)


def is_fp8(case: Case) -> bool:
    return SHORT.get(case.first.get("kv_dtype", ""), case.first.get("kv_dtype")) == "fp8"


def is_ragged(case: Case) -> bool:
    return bool(case.first.get("ragged"))


def is_small(case: Case) -> bool:
    return case.plain and not is_ragged(case) and case.kv_bytes < SMALL_BYTES


def latency(record: dict, lang: str) -> str | None:
    """Every case and every implementation."""
    words, found = WORDS[lang], cases(record)
    if not found:
        return None
    names = variants(found)
    rows = []
    for case in found:
        least = min((p50(row) for row in case.rows.values() if p50(row)), default=None)
        rows.append(
            [case.text(lang), *(_latency_cell(case, case.rows.get(name), least, lang) for name in names)]
        )
    head = [words["shape"], *(name_of(name, lang) for name in names)]
    note = f"<p><small>{html.escape(words['least_note'])}</small></p>"
    return table(head, rows) + "\n" + note + missing(record, lang)


def _latency_cell(case: Case, row: dict | None, least: float | None, lang: str) -> str:
    text = us_cell(row, lang, row is not None and p50(row) == least)
    if row and (times := case.times(row)):
        text += f"<br><small>{ratio(times)} · {row['relative_error']:.1e}</small>"
    return text


def missing(record: dict, lang: str) -> str:
    """The peers that were not there, with the reason; never left out in silence."""
    words = WORDS[lang]
    items = ""
    for entry in record.get("missing", []):
        name = ", ".join([name_of(entry["variant"], lang), *([entry["shape"]] if "shape" in entry else [])])
        items += f"<li>{html.escape(name)}: {html.escape(entry['missing'].removeprefix('missing: '))}</li>"
    return f"\n<p>{words['missing']}</p>\n<ul>{items}</ul>" if items else ""


def detail(chosen: Callable[[Case], bool]) -> Callable[[dict, str], str | None]:
    """A table of one line for each case and implementation, its setting too, of the cases that are chosen."""

    def make(record: dict, lang: str) -> str | None:
        words, rows = WORDS[lang], []
        found = [case for case in cases(record) if chosen(case)]
        for case in found:
            least = min((p50(row) for row in case.rows.values() if p50(row)), default=None)
            for name in variants([case]):
                row = case.rows[name]
                times = case.times(row)
                rows.append([
                    case.text(lang), html.escape(name_of(name, lang)), setting_cell(row),
                    us_cell(row, lang, p50(row) == least), ratio(times) if times else "–", gbps_cell(row),
                    share_cell(row), paged_share_cell(row), error_cell(row),
                ])  # fmt: skip
        keys = (
            "shape", "implementation", "setting", "us", "times_fast", "gbps", "share", "paged_share", "error",
        )  # fmt: skip
        return table([words[key] for key in keys], rows, texts=3) if rows else None

    return make


def setting_cell(row: dict) -> str:
    return html.escape(row.get("setting") or "–")


def paged_share_cell(row: dict) -> str:
    return percent(row["share_of_paged_read"]) if "share_of_paged_read" in row else "–"


def error_cell(row: dict) -> str:
    return f"{row['relative_error']:.1e}" if "relative_error" in row else "–"


def eager(record: dict, lang: str) -> str | None:
    """One call without a CUDA graph at the small cases: until it is done, and of that on the host.

    Peers are timed prepared, with outputs given; where ours was, too, that is a row of its own.
    """
    words, rows = WORDS[lang], []
    for case in filter(is_small, cases(record)):
        for name in variants([case]):
            row = case.rows[name]
            for prefix, label in (("", "{}"), ("prepared_", words["prepared"])):
                if f"{prefix}host_us" in row and p50(row):
                    total, host = (
                        us(row[key]["p50"]) if key in row else "–"
                        for key in (f"{prefix}eager_us", f"{prefix}host_us")
                    )
                    name_cell = label.format(html.escape(name_of(name, lang)))
                    rows.append([case.text(lang), name_cell, us(p50(row)), total, host])
    keys = ("shape", "implementation", "kernel_us", "eager_us", "host_us")
    return table([words[key] for key in keys], rows, texts=2) if rows else None


L7_TABLES: dict[str, Callable[[dict, str], str | None]] = {
    "latency": latency,
    "small": detail(is_small),
    "ragged": detail(is_ragged),
    "fp8": detail(is_fp8),
    "eager": eager,
}
