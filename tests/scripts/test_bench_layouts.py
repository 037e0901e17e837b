"""bench_layouts.py from command line to record, on tiny shapes: real kernels and checks, no real clock."""

import json
from functools import partial

import pytest
import torch

from tests.helpers.mode import DEVICE  # before anything imports triton

from kernels.l1_write_kv import write_kv  # isort: skip
from scripts import bench_layouts, layout_variants, read_ceiling, records  # isort: skip
from scripts.bench_inputs import make_pool  # isort: skip
from tests.helpers.made_up_gpu import make_up  # isort: skip


@pytest.fixture
def fake_gpu(monkeypatch):
    make_up(monkeypatch, "bench_layouts.py", bench_layouts, read_ceiling)
    monkeypatch.setattr(layout_variants, "DEVICE", str(DEVICE))
    for name, value in {"NUM_QO_HEADS": 4, "NUM_KV_HEADS": 2, "HEAD_DIM": 16}.items():
        monkeypatch.setattr(layout_variants, name, value)
        monkeypatch.setattr(bench_layouts, name, value)
    monkeypatch.setattr(bench_layouts, "POOL_BYTES", 2**16)
    monkeypatch.setattr(bench_layouts, "WRITES", ((1, 1), (3, 1), (1, 40)))
    monkeypatch.setattr(bench_layouts, "READS", ((2, 20),))
    monkeypatch.setattr(bench_layouts, "READ_PAGES", (16,))
    monkeypatch.setattr(bench_layouts, "make_pool", partial(make_pool, num_sets=2))
    monkeypatch.setattr(bench_layouts, "eager_latency", lambda calls: ({"p50": 50.0}, {"p50": 20.0}))


def run(tmp_path):
    status = bench_layouts.main(["--out", str(tmp_path)])
    return status, json.loads((tmp_path / "test-gpu/l1_paged_cache.json").read_text())


def test_record(fake_gpu, tmp_path):
    status, record = run(tmp_path)
    assert status == 0
    records.validate(record, "record")
    writes = [
        ("write_kv", "NHD"), ("index_put", "NHD"), ("write_kv", "HND"), ("index_put", "HND"), ("copy", "-")
    ]  # fmt: skip
    rows = [(r["variant"], r["kv_layout"], r["batch_size"], r["ctx"]) for r in record["rows"]]
    assert rows == [
        *((*w, b, n) for b, n in ((1, 1), (3, 1), (1, 40)) for w in writes),
        ("paged_decode", "NHD", 2, 20), ("paged_decode", "HND", 2, 20),
    ]  # fmt: skip
    prompt = next(r for r in record["rows"] if r["ctx"] == 40 and r["variant"] == "write_kv")
    assert prompt["moved_bytes"] == 2 * 40 * 2 * 2 * 16 * 2  # read and written: 40 tokens, K and V, fp16
    assert record["rows"][-1]["moved_bytes"] == record["rows"][-1]["kv_bytes"] == 2 * 2 * 20 * 2 * 16 * 2
    assert record["problem"]["num_kv_heads"] == 2 and len(record["ceilings"]) == 1


def test_a_wrong_write_is_not_timed(fake_gpu, tmp_path, monkeypatch):
    """A write that also touches the slot beside its own: in the record as failed, exit status 1."""

    def wrong(k, v, k_cache, v_cache, slots, *, kv_layout):
        write_kv(k, v, k_cache, v_cache, slots, kv_layout=kv_layout)
        k_cache.view(-1)[:1] = torch.zeros(1)

    monkeypatch.setattr(layout_variants, "write_kv", wrong)
    status, record = run(tmp_path)
    failed = [row for row in record["rows"] if "error" in row]
    assert status == 1 and {row["variant"] for row in failed} == {"write_kv"} and len(failed) == 6
    assert all("latency_us" not in row and "reference leaves it" in row["error"] for row in failed)
