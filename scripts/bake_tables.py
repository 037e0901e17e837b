"""The measured tables of the lessons: from one record to the HTML of one GPU's panel."""

import html
from collections.abc import Callable

from scripts.bake_text import WORDS, percent, ratio, shape_text, table, us

Rows = list[dict]


def find(record: dict, variant: str, **wanted: object) -> Rows:
    """The rows of a variant with these fields, in the record's order."""
    return [
        row
        for row in record["rows"]
        if row["variant"] == variant and all(row.get(key) == value for key, value in wanted.items())
    ]


def shapes(record: dict) -> list[dict]:
    """{"batch_size", "ctx"} of every shape, in the record's order."""
    seen = dict.fromkeys((row["batch_size"], row["ctx"]) for row in record["rows"])
    return [{"batch_size": b, "ctx": n} for b, n in seen]


def one(record: dict, variant: str, **wanted: object) -> dict | None:
    """The row of a variant with these fields, if there is one."""
    return next(iter(find(record, variant, **wanted)), None)


def pair_of(record: dict, **wanted: object) -> dict | None:
    """Split kernel and combine kernel together; at one split that is not what split_kv_decode launches."""
    return one(record, "pair", **wanted) or one(record, "split", **wanted)


def p50(row: dict) -> float | None:
    """The one figure of a row: our p50, or what was printed; None where it failed."""
    return row.get("printed_us") or (row["latency_us"]["p50"] if "latency_us" in row else None)


def us_text(row: dict) -> str:
    """The one figure of a row as text; a printed one stays as it was printed."""
    return f"{row['printed_us']:g}" if "printed_us" in row else us(p50(row))


def us_cell(row: dict | None, lang: str, best: bool = False) -> str:
    """ "65.9" and below it, small, its p20 and p80."""
    if row is None:
        return "–"
    if p50(row) is None:
        return html.escape(WORDS[lang]["failed"])
    text = f"<strong>{us_text(row)}</strong>" if best else us_text(row)
    if quantiles := row.get("latency_us"):
        text += f"<br><small>{us(quantiles['p20'])}–{us(quantiles['p80'])}</small>"
    return text


def gbps_cell(row: dict) -> str:
    value = row.get("bandwidth_gbps", row.get("printed_gbps"))
    return "–" if value is None else f"{value:.0f}"


def share_cell(row: dict) -> str:
    return percent(row["share_of_read_ceiling"]) if "share_of_read_ceiling" in row else "–"


def l2_latency(record: dict, lang: str) -> str | None:
    """Every variant of L2 at every shape."""
    words = WORDS[lang]
    cited = record["kind"] == "cited"
    rows = []
    for shape in shapes(record):
        for variant in ("naive", "packed", "packed_habit"):
            for row in find(record, variant, **shape, **({} if cited else {"page_size": 16})):
                launched = {"warps": row.get("num_warps"), "stages": row.get("num_stages")}
                name = html.escape(words[variant].format(**launched))
                if variant == "packed" and not cited:
                    name += f"<br><small>{words['launch'].format(**launched)}</small>"
                cells = [shape_text(shape), name, us_cell(row, lang), gbps_cell(row)]
                rows.append(cells if cited else [*cells, share_cell(row)])
    head = [
        words["shape"],
        words["kernel"],
        words["printed"] + ", us" if cited else words["us"],
        words["gbps"],
    ]
    return table(head if cited else [*head, words["share"]], rows, texts=2) if rows else None


def l2_k_transpose(record: dict, lang: str) -> str | None:
    """K transposed by tl.trans against K loaded through swapped strides."""
    words, rows = WORDS[lang], []
    for shape in shapes(record):
        trans, swap = one(record, "packed", **shape, page_size=16), one(record, "packed_swap_k", **shape)
        if trans and swap:
            both = p50(trans) and p50(swap)
            rows.append([
                shape_text(shape), us_cell(trans, lang), us_cell(swap, lang),
                ratio(p50(swap) / p50(trans)) if both else "–",
            ])  # fmt: skip
    return table([words["shape"], words["trans"], words["swap"], words["ratio"]], rows) if rows else None


def l3_latency(record: dict, lang: str) -> str | None:
    """L2, 4, 16, 64 and the chosen number of splits; the least of a shape is bold."""
    words, rows = WORDS[lang], []
    has_chosen = bool(find(record, "split", chosen=True))
    for shape in shapes(record):
        cells = [one(record, "packed", **shape)]
        cells += [one(record, "split", **shape, num_splits=n) for n in (4, 16, 64)]
        chosen = one(record, "split", **shape, chosen=True)
        least = min((p50(row) for row in [*cells, chosen] if row and p50(row)), default=None)
        texts = [us_cell(row, lang, row is not None and p50(row) == least) for row in cells]
        if has_chosen:
            texts.append(us_cell(chosen, lang, chosen is not None and p50(chosen) == least))
            texts += (
                [str(chosen["num_splits"]), gbps_cell(chosen), share_cell(chosen)] if chosen else ["–"] * 3
            )
        rows.append([shape_text(shape), *texts])
    head = [words["shape"], words["l2"], *(words["splits"].format(n) for n in (4, 16, 64))]
    if has_chosen:
        head += [words["chosen"], words["num_splits"], words["gbps"], words["share"]]
    return table(head, rows) if rows else None


def l3_cost_of_combine(record: dict, lang: str) -> str | None:
    """The pair, the split kernel alone, the combine kernel alone, and what the second launch adds."""
    words, rows = WORDS[lang], []
    for shape in shapes(record):
        for alone in sorted(find(record, "split_kernel", **shape), key=lambda row: row["num_splits"]):
            same = {**shape, "num_splits": alone["num_splits"]}
            pair, combine = pair_of(record, **same), one(record, "combine_kernel", **same)
            both = pair and p50(pair) and p50(alone)
            name = str(alone["num_splits"]) + (f" ({words['chosen']})" if alone["chosen"] else "")
            rows.append([
                shape_text(shape), name, us_cell(pair, lang), us_cell(alone, lang), us_cell(combine, lang),
                us(p50(pair) - p50(alone)) if both else "–", f"{alone['partial_bytes'] / 2**20:.2f}",
                percent(alone["partial_bytes"] / alone["kv_bytes"]),
            ])  # fmt: skip
    names = ("num_splits", "pair", "split_kernel", "combine_kernel", "rest", "partials", "partials_share")
    return table([words["shape"], *(words[name] for name in names)], rows) if rows else None


TABLES: dict[str, dict[str, Callable[[dict, str], str | None]]] = {
    "l2_paged_decode": {"latency": l2_latency, "k_transpose": l2_k_transpose},
    "l3_split_kv_decode": {"latency": l3_latency, "cost_of_combine": l3_cost_of_combine},
}
