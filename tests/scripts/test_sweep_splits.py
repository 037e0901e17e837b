"""sweep_splits.py from its command line to its record: tiny shapes, real checks, a made-up clock."""

from contextlib import nullcontext

import pytest
import torch

from tests.helpers.mode import DEVICE, ON_GPU  # before anything imports triton

from scripts import records, split_regret, split_timing, sweep_splits  # isort: skip
from scripts.split_kernels import FILES, RULES, SUBJECTS, Subject  # isort: skip
from kernels.reference import paged_attention_reference  # isort: skip
from scripts.split_regret import Point  # isort: skip
from tests.helpers.made_up_gpu import SOFTWARE, make_up  # isort: skip

POINTS = [Point(1, 32, 1), Point(2, 48, 2), Point(2, 48, 2, wide=True)]


class Clock:
    """Every record() is a tick; so the time between two is the number of marks between them."""

    ticks = 0

    def __init__(self, **_) -> None:
        pass

    def record(self) -> None:
        Clock.ticks += 1
        self.at = Clock.ticks

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "Clock") -> float:
        return (end.at - self.at) * self.scale

    scale = 0.1  # ms: short enough for a graph


class Graph:
    def capture_begin(self) -> None:
        pass

    capture_end = replay = capture_begin


def reference(q, k_cache, v_cache, block_table, seq_lens, ctx: int) -> Subject:
    """Every number of splits is the reference: this is not about kernels."""
    o, lse = torch.empty_like(q), torch.empty(q.shape[:2])

    def call(num_splits: int, table) -> None:
        found = paged_attention_reference(q, k_cache, v_cache, table, seq_lens, return_lse=True)
        for out, value in zip((o, lse), found, strict=True):
            out.copy_(value)

    return Subject(call, o, lse.to(q.device), CHOSEN)


CHOSEN = 1


@pytest.fixture
def fake_gpu(monkeypatch):
    """Nothing here is a GPU's: the kernel, the card and the clock are made up."""
    make_up(monkeypatch, "sweep_splits.py", code_hash=lambda kernels: {})
    monkeypatch.setattr(split_timing, "DEVICE", str(DEVICE))
    monkeypatch.setattr(split_timing, "MOST_CALLS", 2)
    monkeypatch.setitem(SUBJECTS, "l3", reference)
    monkeypatch.setitem(RULES, "l3", lambda *_: CHOSEN)
    monkeypatch.setattr(split_timing, "GRAPH_US", 10)
    monkeypatch.setattr(sweep_splits, "grid", lambda: POINTS)
    for name, value in (
        ("mem_get_info", lambda: (2**30, 2**30)), ("Event", Clock),
        ("CUDAGraph", Graph), ("Stream", lambda: None), ("stream", lambda _: nullcontext()),
    ):  # fmt: skip
        monkeypatch.setattr(f"torch.cuda.{name}", value)


def run(tmp_path, *args):
    assert sweep_splits.main(["--kernel", "l3", "--out", str(tmp_path), *args]) == 0
    return split_regret.load(tmp_path / "test-gpu" / "split_choice.json")


@pytest.mark.parametrize("scale", [0.1, 2.0], ids=["graphs", "single calls"])
def test_record(fake_gpu, tmp_path, monkeypatch, scale):
    monkeypatch.setattr(Clock, "scale", scale)
    record = run(tmp_path)
    assert [split_regret.point_of(row) for row in record["rows"]] == POINTS
    for row, splits in zip(record["rows"], ("12", "123", "123"), strict=True):
        assert (row["kernel"], row["chosen"], "".join(row["us"])) == ("l3", CHOSEN, splits)
        assert all(us in (1e3 * scale, 500 * scale) for us in row["us"].values())
    assert record["code_hash"] == records.code_hash([*FILES["l3"]])


@pytest.mark.parametrize("kernel", SUBJECTS)
def test_kernels_choose_by_length_and_compute_right(kernel, monkeypatch):
    monkeypatch.setattr(split_timing, "DEVICE", str(DEVICE))
    for point in (Point(2, 40, 2), Point(2, 40, 2, wide=True)):
        pool = split_timing.Pool(1)
        k_cache, v_cache = pool.caches(point.num_kv_heads)
        q = torch.randn(2, 8, 128, dtype=torch.float16, device=DEVICE)
        seq_lens = torch.full((2,), point.ctx, dtype=torch.int32, device=DEVICE)
        table = torch.randperm(6).int().view(2, 3).to(DEVICE)
        if point.wide:
            table = torch.cat([table, table.new_full((2, 45), -1)], 1)
        caches = (torch.cat([cache] * 6)[:6] for cache in (k_cache, v_cache))
        args = (q, *caches, table, seq_lens)
        subject = SUBJECTS[kernel](*args, point.ctx)
        num_sms = 1 if not ON_GPU else torch.cuda.get_device_properties(0).multi_processor_count
        assert subject.chosen == RULES[kernel](2, 2, point.ctx, 16, num_sms)
        split_timing.check(point, subject, [1, 3], *args)


def test_goes_on_where_it_was_cut_off(fake_gpu, tmp_path, monkeypatch, capsys):
    assert run(tmp_path, "--seconds", "-1")["rows"] == []
    assert "3 points still to do" in capsys.readouterr().out
    before = run(tmp_path)
    assert "3 points, 3 to do" in capsys.readouterr().out
    assert run(tmp_path) == before
    assert "3 points, 0 to do" in capsys.readouterr().out
    run(tmp_path, "--fresh")
    assert "3 points, 3 to do" in capsys.readouterr().out


def test_new_rule_is_measured_beside_the_best(fake_gpu, tmp_path, monkeypatch, capsys):
    run(tmp_path)
    monkeypatch.setitem(RULES, "l3", lambda *_: 3)
    monkeypatch.setitem(SUBJECTS, "l3", lambda *args: reference(*args)._replace(chosen=3))
    monkeypatch.setattr(Clock, "scale", 0.2)
    monkeypatch.setattr(split_timing, "BEST_AGAIN", 1)
    capsys.readouterr()
    record = run(tmp_path)
    assert "3 to do" in capsys.readouterr().out
    row = record["rows"][1]
    assert row["chosen"] == 3
    old = [splits for splits, us in row["us"].items() if us in (100, 50)]
    assert old and "3" not in old  # what was neither chosen nor among the best is as it was


def test_other_code_or_card_is_never_mixed_in(fake_gpu, tmp_path, monkeypatch, capsys):
    run(tmp_path)
    monkeypatch.setattr(sweep_splits, "measured_code", lambda _: "other")
    run(tmp_path)
    assert capsys.readouterr().out.count("3 points, 3 to do") == 2
    monkeypatch.setitem(SOFTWARE, "triton", "2")
    with pytest.raises(SystemExit, match="another card, software or method"):
        run(tmp_path)
    assert len(run(tmp_path, "--fresh")["rows"]) == 3


def test_wrong_result_is_not_timed(fake_gpu, tmp_path, monkeypatch):
    def wrong(*args):
        subject = reference(*args)
        return subject._replace(call=lambda *_: subject.o.zero_())

    monkeypatch.setitem(SUBJECTS, "l3", wrong)
    with pytest.raises(AssertionError, match=r"ctx=32.*1 splits: relative error"):
        run(tmp_path)


def test_rule_region_is_no_part_of_what_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setitem(FILES, "l3", ("k.py",))
    text = "a = 1\n# region choose\nlimit = {}\n# endregion choose\nb = {}  # {}\n"
    hashes = []
    for values in ((1, 1, "x"), (2, 1, "y"), (1, 2, "x")):
        (tmp_path / "k.py").write_text(text.format(*values))
        hashes.append(sweep_splits.measured_code("l3"))
    assert hashes[0] == hashes[1] != hashes[2]


def test_again_keeps_the_lesser_figures():
    one = {"chosen": 2, "us": {"1": 9.0, "2": 5.0, "16": 4.0}}
    other = {"chosen": 3, "us": {"1": 8.0, "2": 6.0, "3": 7.0}}
    both = sweep_splits.lesser(one, other)
    assert both == {"chosen": 3, "us": {"1": 8.0, "2": 5.0, "3": 7.0, "16": 4.0}, "passes": 2}
    assert sweep_splits.lesser(both, one)["passes"] == 3
