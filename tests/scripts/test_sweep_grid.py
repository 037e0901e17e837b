"""The loop of the sweeps: compile all, time what is left, keep what is done; made-up grid and clock."""

import json
import multiprocessing.dummy
from types import SimpleNamespace

import pytest

from tests.helpers.mode import ON_GPU  # before anything imports triton

from scripts import records, sweep_grid, sweep_launch, sweep_tiles  # isort: skip
from tests.helpers.made_up_gpu import make_up  # isort: skip

FIELDS = ("a", "b")
MEASURED = ("kernels/l7_tile.py",)


def points(quick: bool):
    """(1, 10) twice; three to time, one that cannot be launched."""
    yield from [(1, 10), (2, 20), (1, 10), *([] if quick else [(3, 30), (4, 40)])]


def compiled(point) -> str | None:
    return "OutOfResources: too much" if point == (3, 30) else None


@pytest.fixture
def sweep(monkeypatch):
    """Threads in place of processes, and no card."""
    threads = SimpleNamespace(get_context=lambda kind: multiprocessing.dummy)
    monkeypatch.setattr(sweep_grid, "multiprocessing", threads)
    make_up(monkeypatch, "sweep_some.py")
    timed = []

    def measure(point) -> dict:
        timed.append(point)
        return {"latency_us": 10 * point[0]}

    return sweep_grid.Sweep("tile_sweep", FIELDS, MEASURED, points, compiled, measure), timed


def test_every_point_once_in_the_order_of_the_grid(sweep, tmp_path, capsys):
    one, timed = sweep
    one.run(tmp_path / "out.json", quick=False, jobs=2)
    record = json.loads((tmp_path / "out.json").read_text())
    (file,) = MEASURED  # of it alone, not of what it imports
    assert record["lesson"] == "tile_sweep"
    assert record["code_hash"] == {file: records.code_hash([file])[file]}
    assert record["rows"] == [
        {"a": 1, "b": 10, "latency_us": 10},
        {"a": 2, "b": 20, "latency_us": 20},
        {"a": 3, "b": 30, "error": "OutOfResources: too much"},
        {"a": 4, "b": 40, "latency_us": 40},
    ]
    assert timed == [(1, 10), (2, 20), (4, 40)]
    assert "4 configurations, 1 of them not launchable" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [tmp_path / "out.json"]
    one.run(tmp_path / "quick.json", quick=True, jobs=1)
    assert timed[3:] == [(1, 10), (2, 20)]


def test_what_was_done_is_kept_and_skipped(sweep, tmp_path, monkeypatch):
    one, timed = sweep
    monkeypatch.setattr(sweep_grid, "SAVED_EVERY", 2)
    stopping = sweep_grid.Sweep(
        one.name, one.fields, one.measured, one.points, one.compile,
        lambda point: one.measure(point) if point != (4, 40) else 1 / 0,
    )  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        stopping.run(tmp_path / "out.json", quick=False, jobs=1)
    assert not (tmp_path / "out.json").exists() and timed == [(1, 10), (2, 20)]
    one.run(tmp_path / "out.json", quick=False, jobs=1)
    assert timed[2:] == [(4, 40)] and not (tmp_path / "out.partial.json").exists()
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [row["a"] for row in rows] == [1, 2, 3, 4]


@pytest.mark.parametrize("module", [sweep_launch, sweep_tiles])
def test_a_sweep_s_points_have_its_fields(module, monkeypatch):
    properties = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: properties)
    every = list(module.SWEEP.points(False))
    assert {len(point) for point in every} == {len(module.SWEEP.fields)}
    assert set(module.SWEEP.points(True)) < set(every) and len(every) > 100


@pytest.mark.skipif(ON_GPU, reason="there is a GPU")
@pytest.mark.parametrize("module", [sweep_launch, sweep_tiles])
def test_without_a_gpu_the_command_says_so(module, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [module.__file__, "--out", "x.json"])
    with pytest.raises(SystemExit) as ended:
        module.SWEEP.main(module.__doc__, "some")
    assert ended.value.code == 2 and "needs a CUDA GPU" in capsys.readouterr().err
