"""L7's bench: the matrix, the choice of settings, missing and wrong peers. Made-up peers and clock."""

import json
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from tests.helpers.mode import DEVICE, ON_GPU  # before anything imports triton

from kernels import DecodePlan, fast_decode, paged_decode  # isort: skip
from scripts import bench, bench_compile, bench_inputs, bench_ours, bench_peers  # isort: skip
from scripts import read_ceiling  # isort: skip
from scripts.bench_inputs import Shape, make_pool  # isort: skip
from scripts.bench_matrix import matrix, select  # isort: skip
from scripts.bench_truth import make_truth  # isort: skip
from scripts.peers import Candidate, Missing, load  # isort: skip
from scripts.peers import flash_attention, flashinfer_decode, torch_sdpa, vllm_triton  # isort: skip
from tests.helpers.made_up_gpu import make_up  # isort: skip

FP8 = torch.float8_e4m3fn
SMALL = partial(Shape, num_qo_heads=4, num_kv_heads=2, head_dim=16)
PEERS = ("good", "absent", "broken", "wrong")


def good(pool):
    def launch(s):
        return paged_decode(*pool.arguments(s))

    return [
        Candidate("wrong", lambda s: launch(s) * 2, None),
        Candidate("right", launch, None),
        Candidate("also right", launch, None),
    ]


def broken(pool):
    def launch(s):
        raise RuntimeError("no kernel image\nis available")

    return [Candidate("a", launch, None), Candidate("b", launch, None)]


def absent(pool):
    load("a_package_that_nobody_has")


def wrong(pool):
    out = torch.zeros_like(pool.sets[0].q)
    return [Candidate("zeros", lambda s: out.zero_(), out)]


@pytest.fixture
def fake_gpu(monkeypatch):
    adapter = SimpleNamespace(
        version=lambda: "1.2.3", PEERS=dict(zip(PEERS, (good, absent, broken, wrong), strict=True))
    )
    monkeypatch.setattr(bench_ours, "has_dependent_launch", lambda device: True)
    if not ON_GPU:  # what the interpreter cannot do: launch it so
        whole = bench_ours.FastCall
        monkeypatch.setattr(bench_ours, "FastCall", lambda *args, pdl: whole(*args, pdl=False))
    make_up(monkeypatch, "bench.py", bench_peers, read_ceiling, code_hash=lambda kernels: {})
    monkeypatch.setattr(bench_peers, "ADAPTERS", {"some": adapter})
    monkeypatch.setattr(bench_peers, "DEVICE", str(DEVICE))
    monkeypatch.setattr(bench_peers, "POOL_BYTES", 1)
    monkeypatch.setattr(bench_peers, "eager_latency", lambda calls: (calls[0](), ({"p50": 50.0},) * 2)[1])
    monkeypatch.setattr(bench_peers, "quick_latency", lambda calls: (calls[0](), 5.0)[1])
    monkeypatch.setattr(read_ceiling, "quick_latency", lambda calls: (calls[0](), 5.0)[1])
    monkeypatch.setattr(bench_ours, "SPLITS", ())
    monkeypatch.setattr(bench_ours, "make_plan", lambda *args: DecodePlan(2))
    monkeypatch.setattr(bench_ours, "LAUNCHES", ())
    monkeypatch.setattr(read_ceiling, "PURE_READS", ((1, 16, 1, 1),))
    monkeypatch.setattr(read_ceiling, "SMALL_READS", ())
    monkeypatch.setattr(read_ceiling, "CHUNKS", (16, 32))


def run(monkeypatch, tmp_path, shapes, *args):
    monkeypatch.setattr(bench, "select", lambda sizes, dtypes: shapes)
    status = bench.main(["--lesson", "l7_fast_decode", "--out", str(tmp_path), *args])
    path = tmp_path / "test-gpu" / "l7_fast_decode.json"
    return status, json.loads(path.read_text()) if path.exists() else None


def test_record(fake_gpu, tmp_path, monkeypatch, capsys):
    shapes = [SMALL(1, 40), SMALL(2, 32, ragged=True), SMALL(1, 20, kv_dtype=FP8)]
    status, record = run(monkeypatch, tmp_path, shapes)
    assert status == 0  # what fails a peer is no failure of ours
    ours = ["fast_decode", "fast_decode_no_pdl", "split_kv_decode", "paged_decode"]
    uniform, ragged, fp8 = ([r for r in record["rows"] if r["kv_bytes"] == s.kv_bytes] for s in shapes)
    assert [r["variant"] for r in uniform] == [*ours, "good", "broken", "wrong"]
    assert [r["variant"] for r in ragged] == [*ours, "good", "broken", "wrong"]
    assert [r["variant"] for r in fp8] == [*ours[:2], "good", "broken", "wrong"]
    assert {r["kind"] for r in uniform[:4]} == {"ours"} and {r["kind"] for r in uniform[4:]} == {"peer"}
    assert all("ragged" not in r for r in uniform) and all(r["ragged"] for r in ragged)
    assert (ragged[0]["ctx"], ragged[0]["kv_bytes"]) == (32, 2 * (16 + 32) * 2 * 16 * 2)
    assert (fp8[0]["dtype"], fp8[0]["kv_dtype"]) == ("float16", "float8_e4m3fn")
    peer, failed, zeros = uniform[4:]
    assert peer["setting"] == "right" and peer["settings_tried"] == 3
    assert peer["latency_us"]["p50"] == 14.0 and peer["share_of_paged_read"] == round(11 / 14, 4)
    assert "eager_us" in uniform[0] and "eager_us" not in uniform[1]
    assert peer["eager_us"] == peer["host_us"] == {"p50": 50.0}
    assert failed["error"] == "RuntimeError: no kernel image" and "latency_us" not in failed
    assert "not this attention" in zeros["error"]
    assert fp8[0]["relative_error"] < 1e-2
    reasons = {(m["variant"], m["missing"], m.get("shape")) for m in record["missing"]}
    assert ("absent", "missing: a_package_that_nobody_has is not installed", None) in reasons
    no_fp8 = "missing: the lesson kernels take no 8-bit KV"
    assert ("split_kv_decode", no_fp8, str(shapes[2])) in reasons
    assert record["software"]["peers"] == {"some": "1.2.3"}
    assert [c["shape"] for c in record["ceilings"]] == list(map(str, shapes))
    assert not list(tmp_path.rglob("*.partial.json"))
    assert "missing: absent" in capsys.readouterr().out


def test_our_failure_counts_and_is_measured_again(fake_gpu, tmp_path, monkeypatch):
    def off(*args, **options):
        o, lse = fast_decode(*args, **options)
        return o * 1.5, lse

    monkeypatch.setattr(bench_ours, "fast_decode", off)
    status, record = run(monkeypatch, tmp_path, [SMALL(1, 20)], "--variants", "fast_decode")
    assert status == 1
    assert "twice plain PyTorch" in record["rows"][0]["error"]
    assert json.loads(next(tmp_path.rglob("*.partial.json")).read_text())["rows"] == []


def test_interrupted_matrix_goes_on(fake_gpu, tmp_path, monkeypatch):
    shapes, measured = [SMALL(1, 20), SMALL(1, 20, dtype=torch.float32)], []

    def measure(contest, shape, *rest):
        if len(measured) == 1 and not interrupted:
            interrupted.append(shape)
            raise KeyboardInterrupt
        measured.append(str(shape))
        return {"ceilings": {}, "rows": [], "missing": [], "seconds": 1.0}

    interrupted = []
    monkeypatch.setattr(bench, "bench_contest", measure)
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, tmp_path, shapes)
    run(monkeypatch, tmp_path, shapes)
    assert measured == list(map(str, shapes))


class InProcess:
    """multiprocessing's context and pool, without processes."""

    def __call__(self, jobs, set_up):
        set_up()
        return self

    Pool = __enter__ = lambda self, *args: self(*args) if args else self

    def __exit__(self, *error):
        pass

    def starmap(self, function, tasks, chunksize):
        self.tasks = tasks
        return [function(*task) for task in tasks]


def test_compile_first_launches_every_setting_and_tells_what_fails(fake_gpu, monkeypatch):
    processes, said = InProcess(), []
    monkeypatch.setattr("multiprocessing.get_context", lambda method: processes)
    monkeypatch.setattr(bench_compile, "DEVICE", str(DEVICE))
    shapes = [SMALL(2, 20), SMALL(1, 40), SMALL(2, 20, kv_dtype=FP8)]
    contest = bench_peers.Contest(("good", "absent", "broken"))
    bench_compile.compile_first(contest, shapes, 2, said.append)
    order = [shape for _, shape, name in processes.tasks if name is None]
    assert order == [shapes[0], shapes[2], shapes[1]]  # one of each family first
    assert f"  not launched: {shapes[1]}: broken b: RuntimeError: no kernel image" in said
    assert not any("absent" in line for line in said)


def test_matrix_has_every_shape_of_its_own_name():
    names = list(map(str, matrix()))
    assert len(names) == len(set(names)) == 18 + 12
    assert "64x16384 page 16 ragged" in names and "64x1024 page 16 KV float8_e4m3fn" in names
    lens = Shape(64, 16384, ragged=True).lens
    assert sorted(lens) == sorted(round(16 * 1024 ** (i / 63)) for i in range(64))
    assert list(lens) != sorted(lens)


def test_select():
    assert {s.kv_dtype for s in select([(64, 1024)], ["float16"])} == {None, FP8}
    assert [str(s) for s in select([(3, 5)], None)] == ["3x5 page 16"]
    assert all(s.dtype == torch.bfloat16 for s in select(None, ["bfloat16"]))


def test_truth_of_8_bit_caches_has_the_scales_and_ragged_lengths(monkeypatch):
    monkeypatch.setattr("scripts.bench_truth.TRUTH_BYTES", 1)  # one KV head at a time
    pool = make_pool(SMALL(3, 64, kv_dtype=FP8, ragged=True), str(DEVICE), 1, num_sets=2)
    s = pool.sets[1]
    truth = make_truth(pool, s)
    k, v = (
        cache.float().double() * scale
        for cache, scale in ((pool.k_cache, bench_inputs.K_SCALE), (pool.v_cache, bench_inputs.V_SCALE))
    )
    o, lse = bench_truth_reference(s, k, v, pool)
    torch.testing.assert_close(truth.o, o)
    torch.testing.assert_close(truth.lse, lse)
    used = torch.cat([row[:n] for row, n in zip(s.block_table, pool.shape.pages, strict=True)])
    assert torch.equal(used, s.pages)


def bench_truth_reference(s, k, v, pool):
    from kernels import paged_attention_reference

    return paged_attention_reference(s.q.double(), k, v, s.block_table, pool.seq_lens, return_lse=True)


def test_paged_read_of_a_ragged_8_bit_batch_reads_every_word():
    pool = make_pool(SMALL(3, 64, kv_dtype=FP8, ragged=True), str(DEVICE), 1, num_sets=2)
    pool.flat.copy_(torch.randint(0, 60, pool.flat.shape))  # as fp16 words: small, finite
    walk = read_ceiling.chunked(pool, pool.sets[1], 32)
    assert walk.lens == (32, 32, 32, 16)
    sums = torch.full((4 * 2,), float("nan"), device=DEVICE)
    read_ceiling.paged_read(sums, pool, walk, 1, 32, 1, 1)
    expected = sum(
        x.contiguous().view(torch.float16).double().sum()
        for b in range(3)
        for x in pool.sequence(pool.sets[1], b)
    )
    torch.testing.assert_close(sums.double().sum().cpu(), expected.cpu(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("adapter", [flashinfer_decode, vllm_triton, flash_attention])
def test_what_is_not_installed_is_missing(adapter, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in list(sys.modules):
        if name.split(".")[0] in ("vllm", "flashinfer", "flash_attn"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.import_module", raise_not_found)
    pool = make_pool(SMALL(1, 16), str(DEVICE), 1, num_sets=1)
    for make in (*adapter.PEERS.values(), lambda pool: adapter.version()):
        with pytest.raises(Missing, match="installed"):
            make(pool)


def raise_not_found(name):
    raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        ({"flash_attn"}, "multiples of 256"),
        ({"fa3_fwd_interface", "fa3_fwd_config"}, "no paged KV"),
        (set(), "neither flash_attn"),
    ],
)
def test_flash_attention_says_why_it_cannot(installed, reason, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in installed else None)
    config = SimpleNamespace(CONFIG={"build_flags": {"FLASHATTENTION_DISABLE_PAGEDKV": True}})
    monkeypatch.setitem(sys.modules, "fa3_fwd_config", config)
    pool = make_pool(SMALL(1, 16), str(DEVICE), 1, num_sets=1)
    with pytest.raises(Missing, match=reason):
        flash_attention.paged(pool)


def test_sdpa_copies_each_page_set_out_of_its_pages():
    pool = make_pool(SMALL(2, 20), str(DEVICE), 1, num_sets=2)
    k, v = torch_sdpa.contiguous(pool, pool.sets[1])
    for b in range(2):
        for copy, source in zip((k, v), pool.sequence(pool.sets[1], b), strict=True):
            assert torch.equal(copy[b].transpose(0, 1), source)
    for shape in (SMALL(2, 20, kv_dtype=FP8), SMALL(2, 20, ragged=True)):
        with pytest.raises(Missing):
            torch_sdpa.PEERS["sdpa_flash"](make_pool(shape, str(DEVICE), 1, num_sets=1))


DECODE = """
from vllm.platforms import current_platform
from vllm.triton_utils import tl, triton
assert not current_platform.is_rocm()
calls = []
def decode_attention_fwd(q, k, v, o, lse, table, lens, partials, splits, scale, page_size, cap, ks, vs):
    calls.append((splits, ks.item(), vs.item(), tuple(partials.shape)))
    o.fill_(splits)
"""
UNIFIED = """
import vllm.envs as envs
from vllm.logger import init_logger
from vllm.v1.attention.ops.helpers import nothing
from vllm.v1.kv_cache_interface import KVQuantMode
logger, invariant = init_logger(__name__), envs.VLLM_BATCH_INVARIANT
def unified_attention(**arguments):
    arguments["out"].fill_(arguments.get("num_par_softmax_segments", 0) + arguments["kv_quant_mode"])
"""


@pytest.fixture
def vllm_folder(tmp_path, monkeypatch):
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "vllm"}
    (tmp_path / "triton_decode_attention.py").write_text(DECODE)
    (tmp_path / "triton_unified_attention.py").write_text(UNIFIED)
    (tmp_path / "helpers.py").write_text("nothing = None\n")
    (tmp_path / "VERSION").write_text("9.9\n")
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        del sys.modules[name]
    sys.modules.update(kept)


def test_vllm_from_a_folder(vllm_folder):
    vllm_triton.use_folder(vllm_folder)
    assert vllm_triton.version().startswith("9.9 (sha256 ")
    pool = make_pool(SMALL(2, 256, kv_dtype=FP8), str(DEVICE), 1, num_sets=1)
    decode = vllm_triton.decode(pool)
    assert [c.setting for c in decode] == ["splits 1", "splits 2", "splits 4"]
    decode[1].launch(pool.sets[0])
    assert decode[1].result.unique().tolist() == [2]
    module = sys.modules["vllm.v1.attention.ops.triton_decode_attention"]
    assert module.calls == [(2, bench_inputs.K_SCALE, bench_inputs.V_SCALE, (2, 4, 2, 17))]
    unified = vllm_triton.unified(pool)
    assert [c.setting for c in unified] == ["2D", *(f"3D, {n} segments" for n in vllm_triton.SEGMENTS)]
    unified[1].launch(pool.sets[0])
    assert unified[1].result.unique().tolist() == [8 + 1]


def test_vllm_folder_without_the_files_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert bench.main(["--lesson", "l7_fast_decode", "--vllm", str(tmp_path)]) == 2
    assert "has no triton_decode_attention.py" in capsys.readouterr().out


def test_unknown_variant_is_refused(capsys):
    with pytest.raises(SystemExit):
        bench.parse_args(["--variants", "fast_decode,fasterer"])
    assert "'fasterer' is no variant" in capsys.readouterr().err
