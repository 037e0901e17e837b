"""L7's tables and facts, from a made-up record."""

import xml.etree.ElementTree as ET

import pytest

from scripts import bake, bake_facts, records
from scripts.bake_l7 import L7_TABLES, case_name, cases
from scripts.bake_l7_charts import L7_CHARTS
from scripts.bake_l7_targets import targets
from scripts.bake_text import LANGS, WORDS
from tests.helpers.l7_record import VARIANTS, l7_record

CASES = [
    "1x32768", "8x4096", "64x1024", "1x131072", "16x8192", "1x1024", "1x4096", "ragged", "8x4096_bf16",
    "8x4096_h64_8", "16x8192_page64", "64x1024_fp8",
]  # fmt: skip


def cells(html: str) -> list[list[str]]:
    tree = ET.fromstring(f"<div>{html.replace('<br>', '<br/>')}</div>")
    return [["|".join(cell.itertext()) for cell in row] for row in tree.findall(".//tr")]


def made(name: str, lang: str = "en", **more) -> list[list[str]]:
    return cells(L7_TABLES[name](l7_record(**more), lang))


def test_the_made_up_record_is_one():
    records.validate(l7_record(), "here")


def test_a_case_is_a_problem_and_its_name_says_how_it_differs():
    record = l7_record()
    found = cases(record)
    assert [case.name for case in found] == CASES
    assert all(list(case.rows) == list(VARIANTS) for case in found)
    assert [case.name for case in found if case.plain] == CASES[:8]
    contiguous = next(row for row in record["rows"] if row["contiguous"] and row["page_size"] == 64)
    assert case_name(contiguous) == "16x8192_page64"


@pytest.mark.parametrize("lang", LANGS)
def test_bake_makes_all_of_l7_in_both_languages(lang: str):
    files = bake.bake([l7_record()])
    for name in [*L7_TABLES, *L7_CHARTS, "targets"]:
        content = files[f"l7_fast_decode/{name}.{lang}.html"]
        assert 'data-gpu="nvidia-h200"' in content
        assert "flashinfer 0.6.13" in content and "vllm missing" not in content


def test_without_a_record_bake_says_so():
    files = bake.bake([])
    for name in [*L7_TABLES, *L7_CHARTS, "targets"]:
        assert WORDS["zh"]["none"] in files[f"l7_fast_decode/{name}.zh.html"]


def test_latency_has_every_case_and_implementation():
    head, *rows = made("latency")
    assert head[1:] == [WORDS["en"][name] for name in VARIANTS]
    assert len(rows) == len(CASES)
    assert rows[0][1] == "37.6|36.8–38.7|1.00 · 3.0e-04"
    assert rows[0][head.index("FlashInfer, XQA")].endswith("1.20 · 3.0e-04")
    assert rows[7][0] == "ragged, 64 sequences up to 16384"
    assert rows[-1][0].replace("\u00a0", " ") == "64 × 1024, fp8 KV"


def test_the_fastest_is_bold_even_where_it_is_not_ours():
    record = l7_record()
    peer = next(row for row in record["rows"] if row["variant"] == "sdpa_cudnn")
    peer["latency_us"] = {"p20": 30.0, "p50": 31.0, "p80": 32.0}
    first = L7_TABLES["latency"](record, "en").split("<tbody>")[1].split("</tr>")[0]
    assert first.count("<strong>") == 1 and "<strong>31.0</strong>" in first


def test_what_is_missing_is_said():
    html = L7_TABLES["latency"](l7_record(), "en")
    assert "<li>FlashAttention, paged: flash_attn is not installed</li>" in html
    one = [{"variant": "flashinfer_xqa", "shape": "8x4096 page 16", "missing": "missing: needs <= 8 rows"}]
    html = L7_TABLES["latency"](l7_record(missing=one), "en")
    assert "<li>FlashInfer, XQA, 8x4096 page 16: needs &lt;= 8 rows</li>" in html


def test_a_failed_row_is_shown_as_failed():
    record = l7_record()
    row = next(row for row in record["rows"] if row["variant"] == "vllm_unified" and row["ctx"] == 1024)
    for key in ("latency_us", "bandwidth_gbps", "share_of_read_ceiling", "share_of_paged_read", "setting"):
        del row[key]
    row["error"] = "RuntimeError: out of shared memory"
    for name in ("latency", "small", "eager"):
        assert L7_TABLES[name](record, "en")
    assert "failed its check" in L7_TABLES["latency"](record, "en")
    assert L7_CHARTS["bandwidth"](record, "en")


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("small", {"1 × 1024", "1 × 4096"}), ("ragged", {"ragged, 64 sequences up to 16384"}),
     ("fp8", {"64 × 1024, fp8 KV"}), ("eager", {"1 × 1024", "1 × 4096"})],
)  # fmt: skip
def test_each_table_has_its_cases(name: str, shapes: set[str]):
    _, *rows = made(name)
    assert {row[0].replace("\u00a0", " ") for row in rows} == shapes
    assert len(rows) == len(shapes) * len(VARIANTS)


def test_a_prepared_call_is_a_row_of_its_own():
    record = l7_record()
    of_1x1024 = next(row for row in record["rows"] if (row["batch_size"], row["ctx"]) == (1, 1024))
    of_1x1024 |= {"prepared_eager_us": {"p50": 31.0}, "prepared_host_us": {"p50": 14.0}}
    rows = cells(L7_TABLES["eager"](record, "en"))
    assert [row[3:] for row in rows if row[1].endswith("prepared, outputs given")] == [["31.0", "14.0"]]
    key = f"h200.l7.{case_name(of_1x1024)}.{of_1x1024['variant']}.prepared_host_us"
    assert bake_facts.l7_facts(record, "h200.l7")[key] == "14.0"


def test_targets_say_what_was_reached_and_wanted():
    html = targets(l7_record(), "en")
    head, *rows = cells(f"<div>{html}</div>")
    assert head[1] == "of the paged read"
    first = rows[0]
    assert first[0].replace("\u00a0", " ") == "1 × 32768"
    assert first[1].endswith("|≥ 93.0% · missed") and first[2] == "0.877|≤ 0.880 · met"
    assert first[4] == "0.980|≤ 1.000 · met"
    lesson = next(row for row in rows if "split_kv_decode" in row[0])
    assert lesson[2] == "0.930|≤ 1.000 · met"
    ragged = next(row for row in rows if row[0].startswith("ragged"))
    assert ragged[1].startswith("90.2%|of the plain read ≥ 90.0% · met")
    assert any("unknown" in cell for row in rows for cell in row)
    facts = bake_facts.all_facts([l7_record()])
    counts = [int(facts[f"h200.l7.targets.{status}"]) for status in ("met", "missed", "unknown")]
    assert f"{sum(counts)} targets: {counts[0]} met, {counts[1]} missed" in html


def test_facts():
    facts = bake_facts.all_facts([l7_record()])
    wanted = {
        "h200.flashinfer": "0.6.13", "h200.l7.1x32768.fast_decode.us": "37.6",
        "h200.l7.1x32768.flashinfer_tc.ratio": "1.14", "h200.l7.1x32768.flashinfer_tc.over": "0.88",
        "h200.l7.1x32768.read.gbps": "4400", "h200.l7.ragged.paged_read.gbps": "4100",
        "h200.l7.64x1024_fp8.fast_decode.us": "39.6", "h200.l7.8x4096_bf16.fast_decode.us": "37.0",
        "h200.l7.1x32768.naive.us": "4500", "h200.l7.1x32768.naive.predicted_us": "4400",
        "h200.l7.1x1024.fast_decode.host_us": "22.0", "h200.l7.1x32768.fast_decode.paged_share": "87%",
    }  # fmt: skip
    assert {name: facts.get(name) for name in wanted} == wanted
    assert "h200.peers" not in facts
