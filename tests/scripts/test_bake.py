"""bake.py: from records to tables, charts and facts, on made-up figures and on the committed ones."""

import json
import xml.etree.ElementTree as ET

import pytest

from scripts import bake, bake_facts, bake_text, generated, records
from scripts.bake_l7 import L7_TABLES
from scripts.bake_l7_charts import L7_CHARTS
from scripts.bake_splits import SPLIT_TABLES
from scripts.bake_tables import TABLES
from scripts.bake_transfer import TRANSFER_TABLES

PROBLEM = {"dtype": "float16", "num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
SPLITS = (1, 4, 16, 30, 64)
CHOSEN = 30


def row(variant: str, us: float, kv_bytes: int = 2**27, **more) -> dict:
    """A measured row at 1 x 32768."""
    return {
        "variant": variant, "batch_size": 1, "ctx": 32768, "page_size": 16, "num_programs": 8, "num_warps": 1,
        "num_stages": 5, "kv_bytes": kv_bytes, "bytes_requested": 2**27, "flop": 2**29 if kv_bytes else 0,
        "max_abs_error": 1e-5, "allowed_abs_error": 2e-5, "relative_error": 1e-3,
        "latency_us": {"p20": us - 1, "p50": us, "p80": us + 1}, **more,
        **({"bandwidth_gbps": 2**27 / us / 1e3, "share_of_read_ceiling": 0.5, "share_of_paged_read": 0.6}
           if kv_bytes else {}),
    }  # fmt: skip


def record(lesson: str, rows: list[dict], name: str = "NVIDIA H200", **more) -> dict:
    return {
        "schema": 1, "kind": "measured", "lesson": lesson,
        "gpu": {"name": name, "slug": records.slug_of(name), "num_sms": 132, "l2_bytes": 60 * 2**20,
                "memory_bytes": 10**11},
        "software": {"driver": "580", "cuda": "13.0", "torch": "2.11", "triton": "3.6", "python": "3.12"},
        "date": "2026-01-02", "command": "python scripts/bench.py",
        "code_hash": {}, "quick": False,
        "problem": PROBLEM, "rows": rows, "matmul_tflops": 700.0,
        "ceilings": [{
            "batch_size": 1, "ctx": 32768, "page_size": 16, "read_us": {"p50": 32.0}, "read_gbps": 4200.0,
            "paged_read_us": {"p50": 34.0}, "paged_read_gbps": 3950.0,
        }], **more,
    }  # fmt: skip


def l2(**more) -> dict:
    rows = [
        row("naive", 4000, bytes_requested=2**29),
        row("packed", 1000, eager_us={"p50": 1050}, host_us={"p50": 40}),
        row("packed_habit", 2000, num_warps=4, num_stages=3), row("packed_swap_k", 1020),
        row("packed", 900, page_size=64),
    ]  # fmt: skip
    return record("l2_paged_decode", rows, **more)


def l3() -> dict:
    rows = [row("packed", 1000)]
    for splits in SPLITS:
        about = {"num_splits": splits, "chosen": splits == CHOSEN, "partial_bytes": splits * 2**14}
        rows.append(row("split", 900 / splits + splits, **about))
        if splits in (4, CHOSEN):
            rows.append(row("split_kernel", 900 / splits + splits - 3, **about))
            rows.append(row("combine_kernel", 4, kv_bytes=0, **about))
    rows.append(row("unnormalized", 61, num_splits=CHOSEN, chosen=True))
    return record("l3_split_kv_decode", rows)


def cited() -> list[dict]:
    return [r for r in records.all_records() if r["kind"] == "cited"]


@pytest.fixture(autouse=True)
def lesson_tables_alone(monkeypatch):
    """The tables of scripts/bake_site.py have a source of their own, and no part here."""
    monkeypatch.setattr(bake, "SITE_TABLES", {})


@pytest.fixture
def files():
    return bake.bake([l2(), l3(), *cited()])


def test_every_table_and_chart_in_both_languages(files):
    names = {
        "l2_paged_decode": ("latency", "k_transpose", "roofline"),
        "l3_split_kv_decode": ("latency", "cost_of_combine", "sweep"),
        "l0_shapes": ("models", "variants"),
        "l1_paged_cache": ("policies", "growth", "over_time", "sharing", "writes", "reads"),
        "l1_table_to_device": tuple(TRANSFER_TABLES),
        "runner": ("parity", "unsupported", "findings", "budgets"),
        "l7_fast_decode": (*L7_TABLES, *L7_CHARTS, "targets", "predictions", *SPLIT_TABLES),
    }
    wanted = {f"{lesson}/{n}.{lang}.html" for lesson in names for n in names[lesson] for lang in ("zh", "en")}
    assert set(files) == wanted | {"facts.json"}


def well_formed(html: str) -> str:
    """HTML's short forms as XML has them."""
    for short, whole in (("<br>", "<br/>"), (" hidden>", ' hidden="">'), ("-exclude>", '-exclude="">')):
        html = html.replace(short, whole)
    return html


def test_fragments_are_well_formed_with_unique_ids(files):
    for name, content in files.items():
        if name.endswith(".html"):
            tree = ET.fromstring(well_formed(content))
            ids = [e.get("id") for e in tree.iter() if e.get("id")]
            assert len(ids) == len(set(ids)), name
            for svg in tree.iter("{http://www.w3.org/2000/svg}svg"):
                if svg.get("aria-hidden"):  # a legend's
                    continue
                assert svg.get("role") == "img"
                assert set(svg.get("aria-labelledby").split()) <= set(ids)


def test_picker_shows_every_gpu_cited_ones_last_and_marked(files):
    for lang, mark in (("zh", "引用，非本站测量"), ("en", "cited, not measured here")):
        tree = ET.fromstring(files[f"l2_paged_decode/latency.{lang}.html"].replace("<br>", "<br/>"))
        assert tree.get("class") == "gpu-set"
        panels = list(tree)
        assert [p.get("data-gpu") for p in panels] == ["nvidia-h200", "nvidia-geforce-rtx-5090-cited"]
        assert mark in panels[1].get("data-label")
        assert mark not in panels[0].get("data-label")
        text = "".join(panels[0].itertext())
        for part in (
            "NVIDIA H200, 132 SM",
            "580",
            "CUDA 13.0",
            "torch 2.11",
            "triton 3.6",
            "2026-01-02",
            "Hkv 8",
        ):
            assert part in text
        assert "python scripts/bench.py" in text


def test_printed_figures_stay_as_printed(files):
    table = files["l2_paged_decode/latency.en.html"].split("rtx-5090-cited")[1]
    assert '<td style="text-align:right">1520</td>' in table
    assert '<td style="text-align:right">73</td>' in table
    assert "1525" not in table
    assert ">96<" in files["l3_split_kv_decode/latency.en.html"]


def test_new_card_needs_no_other_change():
    new = bake.bake([l2(), l2(name="NVIDIA GeForce RTX 5090"), *cited()])
    assert 'data-gpu="nvidia-geforce-rtx-5090"' in new["l2_paged_decode/roofline.en.html"]
    facts = json.loads(new["facts.json"])
    assert facts["geforcertx5090.l2.1x32768.packed.us"] == "1000"
    assert facts["rtx5090.l2.1x32768.packed.us"] == "1838"


def test_card_without_vendor_figures_gets_measured_roofs():
    chart = bake.bake([l2(name="Some GPU")])["l2_paged_decode/roofline.en.html"]
    assert "measured fp16 matrix product, 700 TFLOP/s" in chart
    assert "nominal" not in chart


def test_facts():
    facts = bake_facts.all_facts([l2(), l3(), *cited()])
    assert facts == dict(sorted(facts.items()))
    wanted = {
        "kv_bytes.64x1024": "268,435,456", "int32_wraps_at_page": "131,072", "partial_mib.1x32768.64": "1",
        "programs.1x32768.64": "512", "combine_kib.64": "32", "pages_per_split.1x32768.64": "32",
        "h200.sms": "132", "h200.ridge": "206", "h200.ridge_cuda_cores": "14", "rtx5090.ridge": "117",
        "h200.l2.1x32768.packed.us": "1000", "h200.l2.1x32768.packed.gbps": "134",
        "h200.l2.1x32768.packed.share": "50%", "h200.l2.1x32768.packed.overhead_us": "50.0",
        "h200.l2.1x32768.naive_over_packed": "4.0", "h200.l2.1x32768.habit_over_packed": "2.0",
        "h200.l2.1x32768.swap_k_over_packed": "1.02", "h200.l2.1x32768.packed_over_packed_page64": "1.11",
        "h200.l2.1x32768.read.gbps": "4200", "h200.l2.1x32768.paged_read.us": "34.0",
        "h200.l3.1x32768.best.splits": "30", "h200.l3.1x32768.best.us": "60.0",
        "h200.l3.1x32768.chosen.splits": "30", "h200.l3.1x32768.chosen_over_best": "1.00",
        "h200.l3.1x32768.l2_over_best": "17", "h200.l3.1x32768.4.split_us": "226",
        "h200.l3.1x32768.chosen.combine_us": "4.00", "h200.l3.1x32768.chosen.rest_us": "3.00",
        "h200.l3.1x32768.unnormalized_over_chosen": "1.02",
        "rtx5090.l3.1x32768.64.us": "96", "rtx5090.l3.1x32768.best.splits": "64",
        "rtx5090.l3.1x32768.l2_over_best": "19", "rtx5090.l2.64x1024.packed.share_of_peak": "85%",
    }  # fmt: skip
    assert {name: facts.get(name) for name in wanted} == wanted


def test_failed_rows_are_shown_and_give_no_fact():
    broken = l2()
    broken["rows"][1] = {k: v for k, v in broken["rows"][1].items() if k != "latency_us"} | {"error": "wrong"}
    made = bake.bake([broken])
    assert "failed its check" in made["l2_paged_decode/latency.en.html"]
    facts = json.loads(made["facts.json"])
    assert not any(name.startswith("h200.l2.1x32768.packed.") for name in facts)
    assert "h200.l2.1x32768.naive_over_packed" not in facts


def test_older_than_its_kernel_is_said():
    old = l2(code_hash={"kernels/l2_paged_decode.py": "0" * 16})
    made = bake.bake([old])
    for lang, text in (("zh", "早于当前代码"), ("en", "older than their code: kernels/l2_paged_decode.py")):
        assert text in made[f"l2_paged_decode/latency.{lang}.html"]
    current = l2(code_hash=records.code_hash(["kernels/l2_paged_decode.py"]))
    assert "older than" not in bake.bake([current])["l2_paged_decode/latency.en.html"]


def test_quick_runs_are_marked():
    assert "quick run" in bake.bake([l2(quick=True)])["l2_paged_decode/latency.en.html"]


def test_check_names_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(bake, "GENERATED", tmp_path / "generated")
    assert bake.main(["--check"]) == 1
    assert bake.main([]) == 0
    assert bake.main(["--check"]) == 0
    file = tmp_path / "generated/facts.json"
    file.write_text(file.read_text() + " ")
    capsys.readouterr()
    assert bake.main(["--check"]) == 1
    assert "python scripts/bake.py" in capsys.readouterr().err


def test_broken_record_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bake, "RESULTS", tmp_path)
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu/l2_paged_decode.json").write_text("{}")
    assert bake.main(["--check"]) == 1
    assert "gpu/l2_paged_decode.json: kind is None" in capsys.readouterr().err


def test_no_record_at_all():
    assert "No GPU has a record yet." in bake.bake([])["l2_paged_decode/latency.en.html"]
    assert set(TABLES) == {"l2_paged_decode", "l3_split_kv_decode"}


@pytest.mark.parametrize(
    ("value", "text"), [(1838, "1838"), (99.96, "100"), (65.94, "65.9"), (9.996, "10.0"), (6.711, "6.71")]
)
def test_us(value, text):
    assert bake_text.us(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(19.14, "19"), (9.96, "10"), (4.2, "4.2"), (1.996, "2.0"), (1.02, "1.02")]
)
def test_ratio(value, text):
    assert bake_text.ratio(value) == text


def test_at_one_split_the_parts_are_those_of_the_pair():
    """split_kv_decode launches L2's kernel there, 50 us; the pair that it does without took 63."""
    about = {"num_splits": 1, "chosen": False, "partial_bytes": 2**14}
    rows = [
        row("packed", 50), row("split", 50, num_splits=1, chosen=True, partial_bytes=0),
        row("pair", 63, **about), row("split_kernel", 55, **about),
        row("combine_kernel", 4, kv_bytes=0, **about),
    ]  # fmt: skip
    facts = bake_facts.l3_facts(record("l3_split_kv_decode", rows), "l3")
    wanted = {"1.us": "50.0", "chosen.us": "50.0", "best.us": "50.0", "1.rest_us": "8.00"}
    assert {name: facts.get(f"l3.1x32768.{name}") for name in wanted} == wanted
    assert "l3.1x32768.chosen.rest_us" not in facts
    assert "63" in TABLES["l3_split_kv_decode"]["cost_of_combine"](record("l3_split_kv_decode", rows), "en")
