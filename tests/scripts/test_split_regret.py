"""Regret of a rule, by hand on made-up times; and the maps, tables and facts that follow from a record."""

import json
import xml.etree.ElementTree as ET

import pytest

from scripts import bake, bake_facts, bake_splits, records, split_regret
from scripts.bake_text import LANGS
from scripts.split_regret import Point, best_splits, grid, regret, summary, thin_grid, time_of
from scripts.split_rules import RULES
from tests.helpers.split_record import split_record

COMMITTED = sorted(records.RESULTS.glob("*/split_choice.json"))


def row(us: dict[int, float], chosen: int = 1, **point) -> dict:
    where = Point(1, 512, 1)._replace(**point)
    us_text = {str(splits): value for splits, value in us.items()}
    return {"kernel": "l3", **where._asdict(), "chosen": chosen, "us": us_text}


def record(*rows: dict) -> dict:
    return split_record(points=[]) | {"rows": list(rows)}


def test_grid_is_that_of_the_issue():
    points = grid()
    assert len(points) == len(set(points)) == 240 + len(thin_grid())
    assert all(point.kv_bytes <= 64e9 for point in points)
    assert Point(256, 131072, 2) in points and Point(256, 131072, 8) not in points
    assert max(point.kv_bytes for point in points) == 2**35
    assert Point(1, 512, 1).splits() == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    assert Point(1, 131072, 1).splits() == [*split_regret.SPLITS, 256]


def test_time_between_measured_numbers():
    measured = row({1: 100, 4: 25, 16: 50})
    assert time_of(measured, 4) == 25
    assert time_of(measured, 2) == pytest.approx(50)  # half the way from 1 to 4, in logarithms
    assert time_of(measured, 8) == pytest.approx((25 * 50) ** 0.5)
    assert time_of(measured, 500) == 50
    with pytest.raises(ValueError, match="num_splits is 0; wanted at least 1"):
        time_of(measured, 0)


def test_best_is_one_of_the_comparison():
    assert best_splits(row({1: 3.0, 4: 2.0, 30: 1.0, 33: 2.5})) == 4  # 30 is measured, and no candidate


def test_regret_and_summary_by_hand():
    found = regret(
        lambda b, heads, ctx, page, sms: b,
        record(
            row({1: 10, 2: 11}, batch_size=1), row({1: 10, 2: 11}, batch_size=2),
            row({1: 12, 4: 10}, batch_size=1, ctx=1024), row({1: 10, 4: 20}, batch_size=4, wide=True),
        ),
    )  # fmt: skip
    assert found == {
        Point(1, 512, 1): (0, 1, 1),
        Point(2, 512, 1): (pytest.approx(0.1), 2, 1),
        Point(1, 1024, 1): (pytest.approx(0.2), 1, 4),
    }
    told = summary(found)
    assert (told["points"], told["within_5"], told["within_15"]) == (3, 1 / 3, 2 / 3)
    assert (told["p50"], told["worst"]) == (pytest.approx(0.1), pytest.approx(0.2))
    chosen = regret(None, record(row({1: 10, 2: 30}, chosen=2, wide=True)), wide=True)
    assert chosen == {Point(1, 512, 1, True): (2, 2, 1)}


def test_rule_sees_the_sizes_of_the_point_and_the_card():
    seen = []
    regret(lambda *sizes: seen.append(sizes) or 1, record(row({1: 1}, batch_size=2, ctx=64, num_kv_heads=8)))
    assert seen == [(2, 8, 64, 16, 132)]


def test_command_line(tmp_path, capsys):
    path = tmp_path / "test-gpu" / "split_choice.json"
    split_regret.save(path, split_record())
    assert split_regret.load(path) == split_record()
    assert len(path.read_text().splitlines()) < 700  # a row a line
    rule = "scripts.split_rules:flashinfer"
    assert split_regret.main([str(path), "--kernel", "l3"]) == 0
    assert split_regret.main([str(path), "--rule", rule, "--worst", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("l3, chosen: 240 points, ")
    assert f"fast, wide table, {rule}: 18 points" in "\n".join(lines)


def test_other_records_are_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(split_record() | {"lesson": "launch_sweep"}))
    with pytest.raises(records.RecordError, match="lesson is 'launch_sweep'; wanted 'split_choice'"):
        split_regret.load(path)


@pytest.mark.parametrize("lang", LANGS)
def test_maps_show_every_point(lang):
    made = split_record()
    own = ET.fromstring(bake_splits.own_map(made, lang))
    theirs = ET.fromstring(bake_splits.rules_map(made, lang))
    svg = "{http://www.w3.org/2000/svg}"
    for tree, rules in ((own, 2), (theirs, len(RULES))):
        texts = [t.text for t in tree.iter(f"{svg}text")]
        assert texts.count("·") == 3 * rules  # three points of Hkv 8 are over 64 GB
        cells = [r for r in tree.iter(f"{svg}rect") if r.get("width") == f"{bake_splits.CELL:.2f}"]
        assert len(cells) == 240 * rules
        assert tree.find(f"{svg}svg/{svg}desc").text.count("Hkv") == rules
    found = regret(None, made, "l3")
    shown = [t.text for t in own.iter(f"{svg}text")]
    worst = max(value for value, *_ in found.values())
    assert bake_splits.cell_text(worst) in shown


def test_cells_are_legible_as_numbers():
    assert [bake_splits.cell_text(v) for v in (-0.03, 0.004, 0.05, 1.5, 9.99, 10.2)] == [
        "0", "0", "5", "150", "999", "×11",
    ]  # fmt: skip


@pytest.mark.parametrize("lang", LANGS)
def test_summary_table_has_every_rule_for_every_kernel(lang):
    tree = ET.fromstring(bake_splits.summary_table(split_record(), lang))
    assert len(list(tree.iter("tr"))) == 1 + 2 * (len(RULES) + 3)  # own, own on a wide table, never split
    assert bake_splits.summary_table(record(), lang) is None


def test_bake_puts_them_beside_the_lesson_or_says_that_there_is_no_record():
    made = split_record(kernels=("l3",))
    for loaded, present in (([made], True), ([], False)):
        files = bake.bake(loaded)
        for name in bake_splits.SPLIT_TABLES:
            for lang in LANGS:
                text = files[f"l7_fast_decode/{name}.{lang}.html"]
                ET.fromstring(text)
                assert ("gpu-panel" in text) == present
                assert not present or "page 16" in text or "页" in text


def test_facts():
    facts = bake_facts.all_facts([split_record(name="NVIDIA H200")])
    told = summary(regret(RULES["flashinfer"], split_record(), "fast"))
    assert facts["h200.splits.fast.flashinfer.points"] == "240"
    assert facts["h200.splits.fast.flashinfer.within_5"] == f"{told['within_5']:.0%}"
    assert facts["h200.splits.l3.wide.points"] == "18"
    assert {"worst_at", "worst_splits", "worst_best", "p90"} <= {
        name.rsplit(".", 1)[1] for name in facts if name.startswith("h200.splits.l3.chosen.")
    }


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_committed_record_is_whole_and_its_choices_are_those_of_the_code(path):
    from scripts.split_kernels import RULES as OWN

    loaded = split_regret.load(path)
    points = set(grid())
    for kernel in {row["kernel"] for row in loaded["rows"]}:
        rows = [row for row in loaded["rows"] if row["kernel"] == kernel]
        assert {split_regret.point_of(row) for row in rows} == points
        for row in rows:
            point = split_regret.point_of(row)
            sizes = (point.batch_size, point.num_kv_heads, point.ctx, 16, loaded["gpu"]["num_sms"])
            wanted = OWN[kernel](*sizes)
            again = f"python scripts/sweep_splits.py --kernel {kernel}"
            assert row["chosen"] == wanted, f"{point}: the rule says {wanted} now; run: {again}"
            assert {str(s) for s in (*point.splits(), wanted)} <= set(row["us"])
