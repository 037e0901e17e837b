"""bench.py from its command line to its record, on tiny shapes: real kernels and checks, a made-up clock."""

import json
import subprocess
import sys
from functools import partial

import pytest
import torch

from tests.helpers.mode import DEVICE  # before anything imports triton

from scripts import bench, bench_rows, bench_variants, read_ceiling, records  # isort: skip
from scripts.bench_inputs import Shape, make_pool  # isort: skip
from scripts.bench_truth import make_truth  # isort: skip
from tests.helpers.made_up_gpu import make_up  # isort: skip

SMALL = partial(Shape, num_qo_heads=4, num_kv_heads=2, head_dim=16)


@pytest.fixture
def fake_gpu(monkeypatch):
    make_up(monkeypatch, "bench.py", bench_rows, read_ceiling)
    monkeypatch.setattr(bench, "Shape", SMALL)
    monkeypatch.setattr(bench, "measure_matmul", lambda rounds: 500.0)
    monkeypatch.setattr(bench_rows, "DEVICE", str(DEVICE))
    monkeypatch.setattr(bench_rows, "make_pool", partial(make_pool, pool_bytes=1))
    monkeypatch.setattr(bench_rows, "eager_latency", lambda calls: ({"p50": 50.0}, {"p50": 20.0}))
    monkeypatch.setattr(bench_variants, "SPLITS", (1, 3))
    monkeypatch.setattr(bench_variants, "SPLITS_IN_PARTS", (3,))


def run(tmp_path, *args, lesson="l3_split_kv_decode", shapes="2x20"):
    status = bench.main(["--lesson", lesson, "--shapes", shapes, "--out", str(tmp_path), *args])
    path = tmp_path / "test-gpu" / f"{lesson}.json"
    return status, json.loads(path.read_text()) if path.exists() else None


def test_l2_record(fake_gpu, tmp_path):
    status, record = run(tmp_path, lesson="l2_paged_decode", shapes="1x20,2x16")
    assert status == 0
    assert [(r["variant"], r["batch_size"], r["page_size"]) for r in record["rows"]] == [
        *((name, b, 16) for b in (1, 2) for name in ("naive", "packed", "packed_habit", "packed_swap_k")),
        ("packed", 1, 64), ("packed", 2, 64),
    ]  # fmt: skip
    naive, packed = record["rows"][:2]
    assert naive["kv_bytes"] == packed["kv_bytes"] == 2 * 20 * 2 * 16 * 2
    own = 4 * (2 * 16 * 2 + 4) + 2 * 4  # q, o and lse of 4 heads; 2 table entries
    assert naive["bytes_requested"] == 2 * naive["kv_bytes"] + own
    assert packed["bytes_requested"] == packed["kv_bytes"] + own
    assert (naive["num_programs"], packed["num_programs"]) == (4, 2)
    assert packed["flop"] == 4 * 20 * 4 * 16
    assert packed["bandwidth_gbps"] == round(packed["kv_bytes"] / 11 / 1e3, 1)
    assert packed["max_abs_error"] <= packed["allowed_abs_error"]
    assert packed["eager_us"] == {"p50": 50.0}
    assert "eager_us" not in record["rows"][2]  # no public call launches by habit
    assert record["matmul_tflops"] == 500.0
    assert [c["page_size"] for c in record["ceilings"]] == [16, 16, 64, 64]
    assert not list(tmp_path.rglob("*.partial.json"))


def test_l3_record(fake_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_variants, "resolve_num_splits", lambda *args: 3)
    status, record = run(tmp_path)
    assert status == 0
    rows = record["rows"]
    assert rows[0]["variant"] == "packed"
    splits = {row["num_splits"] for row in rows if row["variant"] == "split"}
    chosen = [row for row in rows if row.get("chosen")]
    assert {1, 3} <= splits
    assert {row["variant"] for row in chosen} == {"split", "split_kernel", "combine_kernel", "unnormalized"}
    combine = next(r for r in rows if r["variant"] == "combine_kernel" and r["num_splits"] == 3)
    assert combine["partial_bytes"] == 2 * 4 * 3 * (16 + 1) * 4
    assert combine["bytes_requested"] == combine["partial_bytes"] + 2 * 4 * (16 * 2 + 4)
    assert "bandwidth_gbps" not in combine
    # At one split the function launches L2's kernel; the pair is timed beside it, under its own name.
    whole, pair = (
        next(r for r in rows if r["variant"] == n and r["num_splits"] == 1) for n in ("split", "pair")
    )
    assert whole["partial_bytes"] == 0 and whole["bytes_requested"] == rows[0]["bytes_requested"]
    assert pair["partial_bytes"] == 2 * 4 * (16 + 1) * 4 and not pair["chosen"]
    assert "eager_us" in whole and "eager_us" not in pair


def test_l3_record_where_one_split_is_chosen(fake_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_variants, "resolve_num_splits", lambda *args: 1)
    status, record = run(tmp_path)
    assert status == 0
    chosen = [row for row in record["rows"] if row.get("chosen")]
    assert [(row["variant"], row["num_splits"]) for row in chosen] == [("split", 1), ("unnormalized", 1)]
    assert record["rows"][0]["num_programs"] == chosen[0]["num_programs"] == 4


def test_wrong_result_is_reported_and_not_timed(fake_gpu, tmp_path, monkeypatch, capsys):
    right = bench_variants.launch_combine
    monkeypatch.setattr(
        bench_variants, "launch_combine", lambda o, *rest: (right(o, *rest), o[0, 0].mul_(1.5))
    )
    status, record = run(tmp_path)
    assert status == 1
    failed = [row for row in record["rows"] if "error" in row]
    assert {row["variant"] for row in failed} == {"pair", "split", "split_kernel", "combine_kernel"}
    assert all("twice plain PyTorch" in row["error"] and "latency_us" not in row for row in failed)
    assert "FAILED" in capsys.readouterr().out
    assert all("latency_us" in row for row in record["rows"] if row not in failed)


def test_unwritten_output_is_reported(fake_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_variants, "launch_paged_decode", lambda *args: None)
    _, record = run(tmp_path, lesson="l2_paged_decode")
    assert "nan" in next(row["error"] for row in record["rows"] if row["variant"] == "packed")


def test_interrupted_run_goes_on(fake_gpu, tmp_path, monkeypatch):
    measured = []
    whole = bench.bench_shape

    def interrupted(lesson, shape, *rest):
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(str(shape))
        return whole(lesson, shape, *rest)

    monkeypatch.setattr(bench, "bench_shape", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, shapes="1x20,2x16")

    def again(lesson, shape, *rest):
        measured.append(str(shape))
        return whole(lesson, shape, *rest)

    monkeypatch.setattr(bench, "bench_shape", again)
    status, record = run(tmp_path, shapes="1x20,2x16")
    assert status == 0
    assert measured == ["1x20 page 16 4/2 heads", "2x16 page 16 4/2 heads"]
    assert {row["batch_size"] for row in record["rows"]} == {1, 2}


def test_interrupted_run_of_other_code_is_measured_again(fake_gpu, tmp_path, capsys):
    partial_file = tmp_path / "test-gpu" / "l3_split_kv_decode.partial.json"
    block = {"shape": "1x20 page 16 4/2 heads", "run": {"code_hash": {}}, "rows": [], "ceilings": {}}
    records.save_rows(partial_file, [block])
    status, record = run(tmp_path, shapes="1x20,2x16")
    assert status == 0
    assert {row["batch_size"] for row in record["rows"]} == {1, 2}
    assert "of other code or software" in capsys.readouterr().out


def test_quick_is_marked(fake_gpu, tmp_path):
    _, record = run(tmp_path, "--quick")
    assert record["quick"] is True
    assert record["method"]["rounds"] == bench.QUICK_ROUNDS


@pytest.mark.parametrize("text", ["", "1", "1x", "0x16", "1x2x3", "axb"])
def test_bad_shapes_are_refused(text, capsys):
    with pytest.raises(SystemExit):
        bench.parse_args(["--shapes", text])
    assert "wanted something like" in capsys.readouterr().err


def test_help_from_anywhere(tmp_path):
    script = records.ROOT / "scripts/bench.py"
    result = subprocess.run(
        [sys.executable, script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for option in ("--lesson", "--shapes", "--out", "--quick", "--fresh", "--vllm", "--jobs"):
        assert option in result.stdout


def test_paged_read_reads_every_element():
    pool = make_pool(SMALL(2, 40), str(DEVICE), 1, pool_bytes=1)
    sums = torch.full((2 * 2 * 3,), float("nan"), device=DEVICE)
    walk = read_ceiling.Sequences(pool.sets[0].block_table, pool.seq_lens, pool.shape.lens)
    read_ceiling.paged_read(sums, pool, walk, 3, 32, 1, 1)
    pages = pool.sets[0].block_table.long()
    kv = (pool.k_cache[pages].float() + pool.v_cache[pages].float()).flatten(1, 2)[:, :40]
    torch.testing.assert_close(sums.view(2, 2, 3).sum(2), kv.sum((1, 3)), rtol=1e-3, atol=1e-2)
    assert make_truth(pool, pool.sets[0]).plain_o_error > 0


def test_pure_read_says_what_it_reads():
    x = torch.arange(100, device=DEVICE).half()
    sums = torch.full((3,), float("nan"), device=DEVICE)
    assert read_ceiling.read(sums, x, 3, 16, 1, 1) == 96 * 2  # 32 elements a program, 4 left over
    assert sums.sum().item() == sum(range(96))
    assert read_ceiling.read(sums, x, 3, 64, 1, 1) == 0
