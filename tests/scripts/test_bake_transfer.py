"""Tables and facts of how a table reaches the device, from a made-up record."""

import xml.etree.ElementTree as ET

import pytest

from scripts import bake, records
from scripts.bake_facts import gpu_key
from scripts.bake_text import LANGS, WORDS
from scripts.bake_transfer import (
    LESSON,
    OUTCOMES,
    TRANSFER_TABLES,
    WAYS,
    copies_of,
    size_text,
    transfer_facts,
)
from scripts.transfer_programs import source_hash
from tests.helpers.l7_record import l7_record

SIZES = ((1, 64), (64, 2048), (256, 8192))


def spread(p50: float) -> dict[str, float]:
    return {"p20": p50 - 0.5, "p50": p50, "p80": p50 + 0.5}


def transfer_record(**more) -> dict:
    """Times grow with the way's place; a replay takes a quarter of an eager step."""
    rows = [
        {
            "way": way, "batch_size": size[0], "max_pages": size[1], "host_us": spread(10.0 + i),
            "ready_us": spread(20.0 + i), "host_busy_us": spread(2000.0 if "pageable" in way else 5.0),
            "copy_us": spread(40.0),
        }
        for size in SIZES
        for i, way in enumerate(WAYS)
    ]  # fmt: skip
    right, wrong = [[n, n, n] for n in (1, 2, 3, 4)], [[n, 4, 4] for n in (1, 2, 3, 4)]
    outcomes = {
        name: {"kernels": 4, "wrong": 0, "reads": right}
        for name in ("race_waits", "pinned_in_capture_waits", "static_buffer")
    }
    outcomes |= {name: {"kernels": 4, "wrong": 3, "reads": wrong} for name in ("race", "pinned_in_capture")}
    outcomes["clean_in_capture"] = {"kernels": 4, "wrong": 3, "reads": [[n, 1, 1] for n in (1, 2, 3, 4)]}
    outcomes["race_idle"] = {"kernels": 200, "wrong": 2}
    outcomes["pageable_in_capture"] = {"error": "RuntimeError: no <copy> in a capture"}
    return l7_record() | {
        "lesson": LESSON, "l2": "warm", "problem": {"dtype": "float16", "page_size": 16},
        "copies": [row for row in rows if not row["way"].startswith("cuda")],
        "cuda_cpp": {
            "source_hash": source_hash("cuda"),
            "rows": [row for row in rows if row["way"].startswith("cuda")],
        },
        "outcomes": outcomes,
        "rows": [
            {
                "variant": variant, "batch_size": b, "ctx": 1024, "latency_us": spread(us),
                "host_us": spread(us - 20), "pipelined_us": us - 10, "gpu_us": 15.0,
                "tables_us": spread(30.0),
            }
            for b in (1, 8)
            for variant, us in (("eager", 160.0), ("replay", 40.0))
        ],
        **more,
    }  # fmt: skip


def others() -> list[dict]:
    """The committed records of all else: other lessons' tables need one."""
    return [record for record in records.all_records() if record["lesson"] != LESSON]


def cells(html: str) -> list[list[str]]:
    tree = ET.fromstring(f"<div>{html.replace('<br>', '<br/>')}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in tree.findall(".//tr")]


def test_the_made_up_record_is_one():
    records.validate(transfer_record(), "here")


@pytest.mark.parametrize("lang", LANGS)
def test_bake_has_every_table_in_both_languages(lang: str):
    assert bake.LESSONS[LESSON] is TRANSFER_TABLES
    record = transfer_record()
    for make in TRANSFER_TABLES.values():
        content = bake.panel(record, make(record, lang), lang)
        assert 'data-gpu="nvidia-h200"' in content and WORDS[lang]["warm"] in content
        assert WORDS[lang]["cold"] not in content


def test_copies_have_every_way_and_size():
    head, *rows = cells(TRANSFER_TABLES["copies"](transfer_record(), "en"))
    assert head[1:] == ["1 × 64, 256 B", "64 × 2048, 512 KiB", "256 × 8192, 8 MiB"]
    assert [row[0] for row in rows] == [WORDS["en"][f"way_{way}"] for way in WAYS]
    assert rows[1][1:] == ["11.0 / 21.0"] * 3


def test_without_nvcc_the_rows_of_cuda_are_missing_and_no_others():
    record = transfer_record(cuda_cpp={"source_hash": source_hash("cuda"), "missing": "no nvcc"})
    _, *rows = cells(TRANSFER_TABLES["busy"](record, "en"))
    assert [row[0] for row in rows] == [WORDS["en"][f"way_{way}"] for way in WAYS[:-2]]
    assert len(copies_of(record)[1, 64]) == len(WAYS) - 2


def test_a_program_that_has_changed_since_is_told():
    changed = transfer_record(cuda_cpp={"source_hash": "0", "missing": "no nvcc"})
    warning = WORDS["en"]["stale"].format("snippets/transfer/table_to_device.cu")
    assert warning in TRANSFER_TABLES["copies"](changed, "en")
    assert "stale" not in TRANSFER_TABLES["copies"](transfer_record(), "en")


def test_steps_tell_the_ratio():
    _, row, _ = cells(TRANSFER_TABLES["steps"](transfer_record(), "en"))
    assert row == ["1 × 1024", "15.0", "30.0", "160160–160", "40.039.5–40.5", "4.0×", "150", "30.0", "5.0×"]


def test_outcomes_mark_what_is_wrong_and_quote_the_error():
    html = TRANSFER_TABLES["outcomes"](transfer_record(), "en")
    rows = cells(html)[1:]
    assert [row[0] for row in rows] == [
        WORDS["en"][f"outcome_{name}"] for name in (*OUTCOMES[:3], "pageable_in_capture", *OUTCOMES[3:])
    ]
    assert rows[0][1:] == ["3 of 4 kernels wrong", "4, 4, 4, 4"]
    assert "<strong>4</strong>, <strong>4</strong>, <strong>4</strong>, 4" in html
    assert rows[2][1:] == ["2 of 200 kernels wrong", "–"]
    assert rows[3][1:] == ["no graph", "RuntimeError: no <copy> in a capture"]


def test_facts():
    facts = transfer_facts([transfer_record()], gpu_key)
    assert facts["h200.transfer.64x2048.pageable.busy_us"] == "2000"
    assert facts["h200.transfer.64x2048.cuda_pinned.host_us"] == "18.0"
    assert facts["h200.transfer.64x2048.copy_gbps"] == "13.1"
    assert facts["h200.transfer.step.8x1024.saved_us"] == "120"
    assert facts["h200.transfer.race.wrong"] == "3" and facts["h200.transfer.race_idle.kernels"] == "200"
    assert facts.items() <= bake.facts([*others(), transfer_record()]).items()


@pytest.mark.parametrize(
    ("size", "text"),
    [((1, 64), "1 × 64, 256 B"), ((8, 256), "8 × 256, 8 KiB"), ((256, 8192), "256 × 8192, 8 MiB")],
)
def test_sizes_are_told_in_bytes(size, text):
    assert size_text(size) == text
