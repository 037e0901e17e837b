"""The committed figures are what the traces give, are sound SVG, and show the numbers of the lessons."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from scripts.diagrams import GENERATED, draw_all
from scripts.generated import ROOT, write_or_check
from scripts.svg import Drawing, number
from tests.helpers.figures import SVG, assert_sound

FIGURES = draw_all()
NAMES = {
    "l0_shapes": {"token_to_heads", "stored", "two_readings", "selection"},
    "l1_paged_cache": {"block_table", "pages_life", "copy_on_write", "pool", "waste"},
    "l1_table_to_device": {"race", "capture"},
    "online_softmax": {"steps"},
    "l2_paged_decode": {"block_table", "group_rows", "page_map", "sm_grid"},
    "l3_split_kv_decode": {"page_ranges", "two_kernels", "sm_grid", "combine_head", "merge_example"},
}


def texts(lesson: str, name: str, lang: str = "en") -> list[str]:
    """Every text of a committed figure, in order."""
    root = ET.fromstring((GENERATED / lesson / f"{name}.{lang}.svg").read_text(encoding="utf-8"))
    return [element.text for element in root.iter(f"{SVG}text")]


def test_committed_figures_are_what_would_be_drawn():
    done = subprocess.run(
        [sys.executable, "scripts/diagrams.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_drawing_needs_neither_torch_nor_triton():
    code = "import sys, scripts.diagrams as d; d.draw_all(); print({'torch', 'triton'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_figure_stands_in_both_languages():
    wanted = {
        GENERATED / lesson / f"{n}.{lang}.svg"
        for lesson in NAMES
        for n in NAMES[lesson]
        for lang in ("zh", "en")
    }
    assert set(FIGURES) == wanted


@pytest.mark.parametrize("path", FIGURES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_figure_is_sound(path: Path):
    assert_sound(FIGURES[path])


def test_ids_differ_between_figures():
    ids = {re.search(r'id="([^"]+)-title"', text)[1] for path, text in FIGURES.items() if ".en." in path.name}
    assert len(ids) == sum(map(len, NAMES.values()))


def test_steps_show_the_worked_states():
    shown = texts("online_softmax", "steps")
    assert [x for x in shown if x in {"10.00", "17.31", "25.75", "26.21"}] == [
        "10.00",
        "17.31",
        "25.75",
        "26.21",
    ]
    assert {"1.368", "1.503", "1.553", "0.368", "0.135", "0.050"} <= set(shown)


def test_block_table_shows_which_tokens_lie_where():
    shown = texts("l2_paged_decode", "block_table")
    assert {"tokens 0–15", "tokens 16–31", "tokens 32–36", "5 read, 11 masked", "never read"} <= set(shown)
    assert shown.count("−1") == 2
    assert shown[-1] == "token 36: logical page 36 // 16 = 2, physical page table[2] = 7, slot 36 % 16 = 4"


def test_group_rows_show_the_four_real_rows():
    shown = texts("l2_paged_decode", "group_rows")
    assert [x for x in shown if x.startswith("query head ")] == [f"query head {h}" for h in (12, 13, 14, 15)]
    assert shown.count("0") == 12 and "heads 16–27" in shown[-1]


def test_page_map_counts_reads():
    shown = texts("l2_paged_decode", "page_map")
    assert (shown.count("4×"), shown.count("1×")) == (6, 6)
    assert shown[-1] == "48 cells against 12: a factor of G = 4."


@pytest.mark.parametrize(
    ("lesson", "told"),
    [
        ("l2_paged_decode", {"8 at work, 124 idle", "8 at work, 162 idle"}),
        ("l3_split_kv_decode", {"8 programs, 124 SMs idle"}),
    ],
)
def test_sm_grids_count_the_sms(lesson: str, told: set[str]):
    assert told <= set(texts(lesson, "sm_grid"))


def test_l3_sm_grid_places_every_program():
    trace = json.loads((GENERATED / "traces/l3_split_kv_decode.json").read_text(encoding="utf-8"))["launch"]
    counts = [int(x) for x in texts("l3_split_kv_decode", "sm_grid") if x.isdigit()]
    batch, heads, splits = trace["kernels"][0]["grid"]
    assert splits == trace["num_splits"]
    assert sum(counts) == 8 + batch * heads * splits and len(counts) == 8 + trace["num_sms"]


def test_page_ranges_are_those_of_the_lesson():
    ranges = [x.split(": ")[1] for x in texts("l3_split_kv_decode", "page_ranges") if x.startswith("split ")]
    assert ranges == ["0–15", "16–31", "32–47", "48–62", "0", "1", "2", "none", "0–1", "2–3", "4–5", "6"]


def test_two_kernels_shows_every_tensor():
    shown = set(texts("l3_split_kv_decode", "two_kernels"))
    inputs = {"q", "k_cache", "v_cache", "block_table", "seq_lens"}
    assert inputs | {"o_partial", "lse_partial", "o", "lse", "64 MiB", "128 B"} <= shown


def test_merge_example_shows_the_worked_numbers():
    shown = texts("l3_split_kv_decode", "merge_example")
    assert {"1.368", "1.050", "17.31", "30.47", "2.313", "3.049", "= 26.21", "= 3.440"} <= set(shown)
    assert "exp(2.313 − 3.049) = 0.479" in shown


def test_l0_figures_show_the_worked_token_and_the_bytes():
    shown = texts("l0_shapes", "token_to_heads")
    assert [x for x in shown if x.startswith("query head")] == [
        f"query head {h} reads KV {h // 2}" for h in range(4)
    ]
    bars = [x for x in texts("l0_shapes", "stored") if "elements," in x]
    assert bars[1] == "2,048 elements, 4,096 bytes" and bars[3] == "576 elements, 1,152 bytes"
    readings = texts("l0_shapes", "two_readings")
    assert "attention reads 40,960 elements a token" in readings
    assert texts("l0_shapes", "selection").count("1") == 16


def test_numbers_have_a_true_minus_and_no_guess():
    assert (number(-1.25, 2), number("-inf", 3), number(-0.0001, 2)) == ("−1.25", "−∞", "0.00")
    with pytest.raises(ValueError, match="halfway"):
        number(2.5965, 3)


def test_text_is_escaped():
    drawing = Drawing("figure-x", 10, 10, "a < b", 'say "x" & y')
    drawing.text(1, 2, "<&>")
    root = ET.fromstring(drawing.svg())
    assert [e.text for e in root if e.text] == ["a < b", 'say "x" & y', "<&>"]


def test_check_names_the_file_and_the_command(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr("scripts.generated.ROOT", tmp_path)
    kept, stray = tmp_path / "a.svg", tmp_path / "b.svg"
    stray.write_text("old")
    assert write_or_check({kept: "new"}, [stray], True, "python scripts/x.py") == 1
    told = capsys.readouterr().err
    assert (
        "a.svg" in told and "b.svg" in told and told.count("python scripts/x.py") == 2 and not kept.exists()
    )
    assert write_or_check({kept: "new"}, [stray], False, "python scripts/x.py") == 0
    assert kept.read_text() == "new" and not stray.exists()
    assert write_or_check({kept: "new"}, [kept], True, "python scripts/x.py") == 0


def test_the_pages_of_l1_are_those_of_its_worked_example():
    shown = texts("l1_paged_cache", "block_table")
    assert {"32 tokens", "4 tokens", "0–31", "64–67"} <= set(shown) and shown.count("32 tokens") == 2
    assert (
        "token 40: logical page 40 // 32 = 1, in it 40 % 32 = 8, physical page 5, slot = 5 × 32 + 8 = 168"
        in shown
    )
    shown = texts("l1_paged_cache", "copy_on_write")
    assert shown.count("× 2") == 5 and shown.count("× 1") == 5 and "4 slots copied" in shown
    shown = texts("l1_paged_cache", "pages_life")
    assert shown.count("B C") == 5 and "free A" in shown  # three lines with two shared pages, less one copied


def graph(name: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Nodes and edges that a figure of L3 gives to the page."""
    root = ET.fromstring((GENERATED / f"l3_split_kv_decode/{name}.en.svg").read_text(encoding="utf-8"))
    groups = list(root.iter(f"{SVG}g"))
    edges = {
        (source, target)
        for group in groups
        for source in group.get("data-from", "").split()
        for target in group.get("data-to", "").split()
    }
    return {group.get("data-node") for group in groups if group.get("data-node")}, edges


def test_the_graph_of_two_kernels_is_what_was_traced():
    trace = json.loads((GENERATED / "traces/l3_split_kv_decode.json").read_text(encoding="utf-8"))["launch"]
    nodes, edges = graph("two_kernels")
    wanted = set()
    for name, kernel in zip(("split", "combine"), trace["kernels"], strict=True):
        wanted |= {(tensor, name) for tensor in kernel["reads"]}
        wanted |= {(name, tensor) for tensor in kernel["writes"]}
    assert edges == wanted and nodes == {"split", "combine", *trace["tensors"]}


def test_the_graph_of_a_head_combined_says_what_its_numbers_follow_from():
    nodes, edges = graph("combine_head")
    splits = range(4)
    assert nodes == {f"{x}{s}" for x in ("lse", "o", "w") for s in splits} | {"M", "o", "lse"}
    wanted = {(f"lse{s}", f"w{s}") for s in splits} | {("M", f"w{s}") for s in splits}
    wanted |= {(f"{x}{s}", "o") for x in "ow" for s in splits} | {(f"w{s}", "lse") for s in splits}
    assert edges == wanted | {(f"lse{s}", "M") for s in (0, 1, 2)} | {("M", "lse")}  # split 3 is empty


def test_pool_and_waste_show_what_was_recorded():
    trace = json.loads((GENERATED / "traces/l1_paged_cache.json").read_text(encoding="utf-8"))
    shown = texts("l1_paged_cache", "pool")
    assert {f"{n} tokens" for n in trace["pool"]["lens"]} <= set(shown)
    assert [x for x in shown if x in "ABC"][3:] == list("ABBCABCAB") and shown.count("free") == 1
    shown = texts("l1_paged_cache", "waste")
    for policy in trace["waste"]["policies"].values():
        percent = round(100 * policy["used"] / policy["steps"] / policy["extent"])
        assert f"{policy['extent']:,}, {percent} % used" in shown
