"""The ladder: every rung is the same function as the reference, and differs from its base by one change."""

import json
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
import torch

from kernels import split_kv_decode
from kernels.checks import check_lesson_inputs
from kernels.l3_split_kv_decode import new_partials
from kernels.l7_rungs import (
    OFF,
    RUNGS,
    Tile,
    fill_num_splits,
    fit_tile,
    has_dependent_launch,
    ladder_decode,
    launch_rung,
    new_counters,
)
from kernels.launch import TARGETS, new_outputs
from tests.helpers.cases import PLAIN, STORAGES, TRACED_CALLS, Shape, listed_lengths, make_case, sweep_case
from tests.helpers.marks import gpu_only, interpreter_only
from tests.helpers.mode import DEVICE, DTYPES, ON_GPU, dtype_name
from tests.helpers.oracle import assert_right, run_poisoned
from tests.helpers.traced import assert_clean, run_traced

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "snippets/generated/l7_fast_decode/evidence.json"
NEW = [name for name, rung in RUNGS.items() if isinstance(rung.launch, Tile)]
# Each brings code of its own; the shapes are swept for these.
PATHS = ["vector_table", "prefetch", "unmasked", "fill_sms", "int32_offsets", "tma", "last_combines"]

rungs = pytest.mark.parametrize("name", NEW)
paths = pytest.mark.parametrize("name", PATHS)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)


def decoder(name: str, num_splits: int | None = 3, **kwargs):
    """One rung as a decoder; three splits unless told otherwise."""
    if name == "tma" and ON_GPU and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("TMA needs sm_90 or newer")
    return partial(ladder_decode, name, num_splits=num_splits, **kwargs)


@pytest.mark.parametrize("name", RUNGS)
def test_lengths_around_the_edges_of_a_page_and_of_a_tile(name):
    """Every rung, those of L2 and L3 too; a tile is 64 tokens, of the TMA rung 16."""
    decode = decoder(name, None if RUNGS[name].base is None or name.startswith("packed") else 3)
    assert_right(decode, make_case([*listed_lengths(16), 63, 64, 65, 200], PLAIN, num_kv_heads=1))


@dtypes
@pytest.mark.parametrize(
    "shape", [Shape(1, 16, 16), Shape(5, 64, 64), Shape(64, 32, 16), Shape(4, 256, 64)], ids=str
)
@paths
def test_shapes(name, shape, dtype):
    assert_right(decoder(name), sweep_case(shape, dtype))


@dtypes
@rungs
def test_dtypes_on_a_ragged_batch(name, dtype):
    assert_right(decoder(name), make_case([129, 0, 1, 70], PLAIN, dtype))


@pytest.mark.parametrize("num_splits", [1, 2, 16])
@paths
def test_numbers_of_splits_agree(name, num_splits):
    case = make_case([170, 0, 3], num_kv_heads=1)
    o, lse = assert_right(decoder(name, num_splits), case)
    whole_o, whole_lse = split_kv_decode(*case.args, return_lse=True, num_splits=1)
    assert torch.allclose(o, whole_o, rtol=1e-5, atol=1e-6)
    assert torch.allclose(lse, whole_lse, rtol=1e-6, atol=1e-6)


@rungs
def test_the_number_of_splits_may_be_left_to_the_host(name):
    case = make_case([300, 0], num_kv_heads=1)
    assert_right(decoder(name, None), case)
    assert_right(decoder(name, None, max_seq_len=0), case)


@pytest.mark.parametrize("lens", [[0], [0, 0], [1], [64, 0]], ids=str)
@rungs
def test_empty_splits_and_empty_sequences(name, lens):
    assert_right(decoder(name, 4), make_case(lens, num_kv_heads=1))


@rungs
def test_no_sequences(name):
    o, lse = run_poisoned(decoder(name), make_case([]))
    assert o.shape == (0, 4, 32) and lse.shape == (0, 4)


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("storage", STORAGES)
@paths
def test_layouts_and_strides(name, storage, kv_layout):
    assert_right(decoder(name), make_case([97, 16], kv_layout=kv_layout, storage=storage, strided=True))


@pytest.mark.parametrize("sm_scale", [1e4, -1e4])
@pytest.mark.parametrize("name", ["vector_table", "exp2", "unmasked", "last_combines"])
def test_huge_scores_do_not_overflow(name, sm_scale):
    """All weight on one token of one split: its value comes back, whole."""
    case = make_case([137], num_kv_heads=1, sm_scale=sm_scale)
    o, lse = run_poisoned(decoder(name), case)
    k, v = (c[case.block_table[0, :9].long()].flatten(0, 1)[:137, 0] for c in case.nhd_caches)
    scores = case.q[0].double() @ k.double().T * sm_scale
    assert torch.allclose(o[0], v[scores.argmax(1)], rtol=1e-6)
    assert torch.allclose(lse[0].double(), scores.amax(1), rtol=1e-6)


@paths
def test_nothing_unused_changes_one_bit(name):
    def run(unused, beyond):
        case = make_case([17, 0, 1, 133], num_kv_heads=1, unused=unused, beyond=beyond)
        return run_poisoned(decoder(name), case)

    expected_o, expected_lse = run(float("nan"), -1)
    for unused, beyond in ((3e38, 2**31 - 1), (float("inf"), 0)):
        o, lse = run(unused, beyond)
        assert torch.equal(o, expected_o) and torch.equal(lse, expected_lse)


@interpreter_only
@pytest.mark.parametrize(("lens", "shape", "kwargs"), TRACED_CALLS, ids=str)
@pytest.mark.parametrize("name", ["vector_table", "prefetch", "unmasked", "fill_sms", "int32_offsets"])
def test_memory_accesses(name, lens, shape, kwargs):
    """Not of tma, whose copies are whole pages, nor of last_combines, which reads what it wrote."""
    case = make_case(lens, shape, **kwargs)
    outputs = ("o_ptr", "lse_ptr", "o_partial_ptr", "lse_partial_ptr")
    assert_clean(run_traced(decoder(name), case), case, outputs)


@interpreter_only
@pytest.mark.parametrize("name", ["vector_table", "unmasked", "fill_sms", "last_combines"])
def test_each_key_and_value_is_read_once(name):
    case = make_case([200, 17, 0])
    t = run_traced(decoder(name), case)
    for tensor in ("k_ptr", "v_ptr"):
        assert (t.read_counts(tensor) == case.used.numpy()[:, :, None, None]).all()


def test_the_counters_are_zero_again():
    """The same counters serve the next launch, and it is right too."""
    case = make_case([170, 0], num_kv_heads=2)
    inputs = check_lesson_inputs(*case.args, "NHD")
    counters, partials = new_counters(case.q, inputs), new_partials(case.q, 5)
    results = []
    for _ in range(3):
        o, lse = new_outputs(case.q)
        launch = fit_tile(RUNGS["last_combines"].launch, case.q, inputs)
        arguments = (case.q, inputs, case.block_table, case.seq_lens, None)
        launch_rung("last_combines", o, lse, partials, counters, *arguments, launch)
        assert not counters.any()
        results.append((o, lse))
    assert all(torch.equal(o, results[0][0]) and torch.equal(lse, results[0][1]) for o, lse in results)


def test_offsets_beyond_int32_are_refused():
    """Pages that lie 2**31 elements apart: seen in the strides, before anything is read."""
    case = make_case([20])
    far = torch.empty_strided((2, 16, 2, 32), (2**31, 64, 32, 1), device="meta")
    inputs = check_lesson_inputs(*case.args, "NHD")._replace(k_cache=far)
    o, lse = new_outputs(case.q)
    arguments = (case.q, inputs, case.block_table, case.seq_lens, None)
    with pytest.raises(ValueError, match="the offset of the last row of k_cache is 21474"):
        tile = RUNGS["int32_offsets"].launch
        launch_rung("int32_offsets", o, lse, new_partials(case.q, 1), None, *arguments, tile)


@pytest.mark.parametrize("name", [n for n in NEW if RUNGS[n].switches.get("TRIGGER")])
def test_dependent_launch_is_off_where_it_cannot_be(name):
    here = has_dependent_launch(DEVICE)
    assert here == (ON_GPU and torch.cuda.get_device_capability() >= (9, 0))
    if not here:
        print(f"{name}: dependent launch needs sm_90 or newer; here it is an ordinary launch")
    assert_right(decoder(name), make_case([100, 0], num_kv_heads=1))


def test_a_rung_that_is_none_is_refused():
    with pytest.raises(ValueError, match="rung is faster; wanted one of naive, "):
        ladder_decode("faster", *make_case([1]).args)


def test_every_rung_is_one_change():
    names = list(RUNGS)
    for name in NEW:
        rung = RUNGS[name]
        assert names.index(rung.base) < names.index(name)
        before, after = OFF | RUNGS[rung.base].switches, OFF | rung.switches
        changed = [switch for switch in OFF if before[switch] != after[switch]]
        assert len(changed) == (name != "vector_table"), (name, changed)


@pytest.mark.parametrize(("batch_size", "ctx", "splits"), [(1, 32768, 33), (8, 4096, 4), (64, 1024, 1)])
def test_fill_on_an_h200(batch_size, ctx, splits):
    assert fill_num_splits(batch_size, 8, ctx, block_n=64, num_sms=132) == splits


@pytest.mark.parametrize(("batch_size", "ctx"), [(0, 0), (0, 4096), (4, 0), (1, 1)])
def test_fill_for_nothing(batch_size, ctx):
    assert fill_num_splits(batch_size, 8, ctx, block_n=64, num_sms=132) >= 1


@pytest.fixture(scope="module")
def compiled() -> dict[str, dict]:
    """{rung: {target: what was compiled}}, made now in a process without the interpreter; as recorded."""
    command = [sys.executable, "scripts/ladder_evidence.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return json.loads(EVIDENCE.read_text())["rungs"]


# Bytes, where 32 tokens a warp with an address each are too many registers for Blackwell's ptxas.
SPILLS = {("vector_table", "sm_120"): 88, ("exp2", "sm_120"): 88, ("evict_first", "sm_120"): 40}


@pytest.mark.skipif(ON_GPU, reason="compiles with the pinned Triton, on a CPU")
@pytest.mark.slow
class TestEvidence:
    """What the compiler made of each rung, and that it is the change which the rung is about."""

    def test_every_rung_is_there(self, compiled):
        for name in RUNGS:
            needs_sm_90 = name in ("tma", "dependent_launch", "early_trigger")
            assert set(compiled[name]) == {"sm_90", "sm_120"} | (set() if needs_sm_90 else {"sm_80"})

    def test_nothing_spills_and_all_fits(self, compiled):
        for name in NEW:
            for target, row in compiled[name].items():
                known = SPILLS.get((name, target), 0)
                assert row["spilled_bytes"] == known and row["shared_bytes"] <= TARGETS[target].shared_bytes
                assert row["programs_per_sm"] >= 1

    def test_each_change_is_in_the_loop(self, compiled):
        for target in ("sm_90", "sm_120"):
            loop = {name: compiled[name][target]["loop"] for name in NEW}
            copies = "LDGSTS.E.BYPASS.128"
            for name in NEW:
                if name != "tma":  # K and V, 256 bytes a token, 16 a copy, shared out among the threads
                    tile = RUNGS[name].launch
                    assert loop[name][copies] == 2 * tile.block_n * 256 // (16 * 32 * tile.num_warps)
            assert loop["exp2"]["FMUL"] < loop["vector_table"]["FMUL"]
            # The ids: copied to shared memory in the pipeline; loaded to registers when prefetched.
            assert loop["exp2"]["LDGSTS.E"] == 1 and "LDG.E" not in loop["exp2"]
            assert "LDGSTS.E" not in loop["prefetch"] and loop["prefetch"]["LDG.E"] > 0
            assert loop["prefetch"]["FSEL"] > 0 and "FSEL" not in loop["unmasked"]
            assert loop["tma"]["UTMALDG.4D"] == 4 and copies not in loop["tma"]
            rows = {name: compiled[name][target] for name in compiled}
            int32 = rows["int32_offsets"]
            assert int32["loop"]["IMAD"] < int32["loop_of_base"]["IMAD"] / 2
            assert rows["dependent_launch"]["kernel"]["PREEXIT"] == 1
            assert rows["dependent_combine"]["kernel"]["ACQBULK"] == 1
            assert "PREEXIT" not in rows["fill_sms"]["kernel"] and "ACQBULK" not in rows["combine"]["kernel"]
            assert any(opcode.startswith("ATOMG") for opcode in rows["last_combines"]["kernel"])

    def test_the_policy_never_reaches_the_copies(self, compiled):
        """evict_first changes nothing: Triton makes the policy, and its asynchronous copies take none."""
        for target in ("sm_90", "sm_120"):
            row = compiled["evict_first"][target]
            assert row["policies_made"] > 0 and row["policies_on_copies"] == 0
            assert row["loop"] == row["loop_of_base"]


@gpu_only
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=dtype_name)
@pytest.mark.parametrize(
    "lens", [[32768], [4096, 1, 0, 4095], [1024] * 64], ids=lambda lens: f"{len(lens)}x{lens[0]}"
)
@pytest.mark.parametrize("num_splits", [None, 16, 64])
@rungs
def test_real_sizes(name, num_splits, lens, dtype):
    assert_right(decoder(name, num_splits), make_case(lens, Shape(4, 128, 16), dtype, num_kv_heads=8))


def test_every_rung_was_predicted():
    predictions = tomllib.loads((ROOT / "snippets/l7_predictions.toml").read_text())
    assert set(predictions) == set(RUNGS)
    for prediction in predictions.values():
        assert list(prediction["us"]) == ["1x32768", "8x4096", "64x1024"]
        assert min(prediction["us"].values()) > 30 and prediction["zh"] and prediction["en"]


def test_pages_that_no_card_can_hold_are_refused():
    case = make_case([3], Shape(4, 256, 128), torch.float32)
    with pytest.raises(ValueError, match=r"page_size . head_dim in bytes is 131072; wanted at most 65536"):
        ladder_decode("unmasked", *case.args)
