"""targets.py on a made-up record."""

import json

import pytest

from scripts import records, targets

FAST = {
    "share_of_paged_read": 0.985, "share_of_read_ceiling": 0.93, "relative_error": 3e-4,
    "host_us": {"p50": 20.0},
}  # fmt: skip


def row(problem, variant, us, **more):
    kv_bytes = 2 * problem.batch_size * problem.ctx * problem.num_kv_heads * 128 * 2
    latency = {"p20": us, "p50": us, "p80": us}
    fields = dict(zip(targets.FIELDS, problem, strict=True))
    return fields | FAST | {"variant": variant, "kv_bytes": kv_bytes, "latency_us": latency} | more


@pytest.fixture
def record():
    """Every target met: ours takes 10 us, the lesson's 15, rivals 20."""
    problems = dict.fromkeys(target.problem for target in targets.targets())
    us = {"fast_decode": 11.0, "fast_decode_no_pdl": 10.0, "split_kv_decode": 15.0, "flashinfer_tc": 30.0}
    us |= {"flashinfer_xqa": 20.0, "vllm_decode": 20.0, "sdpa_cudnn": 10.0}
    return {
        "schema": 1, "kind": "measured", "lesson": "l7_fast_decode", "date": "2026-01-01", "command": "x",
        "gpu": {"name": "X", "slug": "x", "num_sms": 1, "l2_bytes": 1, "memory_bytes": 1}, "code_hash": {},
        "software": dict.fromkeys(("driver", "cuda", "torch", "triton", "python"), "1"),
        "rows": [row(p, variant, time) for p in problems for variant, time in us.items()],
    }  # fmt: skip


def pick(entries, problem, measure):
    return next(e for e in entries if e["problem"] == str(problem) and e["measure"] == measure)


def change(record, problem, variant, **fields):
    for r in record["rows"]:
        if targets.key_of(r) == problem and r["variant"] == variant:
            r.update(fields)


def test_all_met(record):
    entries = targets.judge(record)
    assert {e["status"] for e in entries} == {"met"}
    measures = [e["measure"] for e in entries]
    assert measures.count("cudnn") == 11 + 1 + 2 + 1  # fp16: the sizes, ragged, the heads, fp8 KV
    assert measures.count("lesson/vllm") == 2 and measures.count("host_us") == 1
    best = pick(entries, targets.Problem(8, 4096), "flashinfer")
    assert (best["value"], best["of"]) == (0.5, ["fast_decode_no_pdl", "flashinfer_xqa"])


def test_missed_and_unknown(record):
    size = targets.Problem(64, 1024)
    change(record, size, "fast_decode_no_pdl", latency_us={"p20": 1, "p50": 17.9, "p80": 1})
    change(record, size, "fast_decode", latency_us={"p20": 1, "p50": 18.1, "p80": 1})
    change(record, size, "fast_decode_no_pdl", share_of_paged_read=0.9699)
    record["rows"] = [
        r for r in record["rows"] if targets.key_of(r) != size or not r["variant"].startswith("vllm")
    ]
    entries = targets.judge(record)
    assert pick(entries, size, "flashinfer") | {"of": 0} == {
        "problem": "64x1024 page 16", "measure": "flashinfer", "limit": 0.89, "at_least": False,
        "status": "missed", "value": 0.895, "of": 0,
    }  # fmt: skip
    assert pick(entries, size, "share_of_paged_read")["status"] == "missed"
    assert pick(entries, size, "vllm")["reason"] == "no such peer has a figure at this shape"
    assert pick(entries, size, "cudnn")["status"] == "missed"


def test_error_counts_for_both_of_ours_and_a_failed_row_for_none(record):
    fp8 = targets.Problem(64, 1024, kv_dtype=targets.FP8)
    change(record, fp8, "fast_decode", relative_error=2e-3)
    assert pick(targets.judge(record), fp8, "error")["status"] == "missed"
    for r in record["rows"]:
        if r["variant"] == "fast_decode":
            del r["latency_us"], r["relative_error"]
            r["error"] = "RuntimeError: lost"
    assert pick(targets.judge(record), fp8, "error")["status"] == "met"


def test_cudnn_limit_by_size(record):
    limits = {e["problem"]: e["limit"] for e in targets.judge(record) if e["measure"] == "cudnn"}
    assert limits["8x4096 page 16"] == limits["64x1024 page 16"] == limits["1x1024 page 16"] == 1.0
    assert limits["16x8192 page 16"] == limits["8x4096 page 16 32/32 heads"] == 1.02


def test_command_line(record, tmp_path, capsys):
    path = tmp_path / "record.json"
    records.save(path, record)
    assert targets.main([str(path)]) == 0
    assert "0 missed, 0 unknown" in capsys.readouterr().out
    change(record, targets.Problem(1, 1024), "fast_decode", host_us={"p50": 26.0})
    records.save(path, record)
    assert targets.main([str(path), "--json"]) == 1
    missed = [e for e in json.loads(capsys.readouterr().out) if e["status"] == "missed"]
    assert [(e["measure"], e["value"]) for e in missed] == [("host_us", 26.0)]
    assert targets.main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
