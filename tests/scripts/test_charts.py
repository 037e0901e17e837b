"""Charts: from a spec to SVG, legend and table; and the specs that records give."""

import re
import xml.etree.ElementTree as ET

import pytest

from scripts.bake_l7_charts import bandwidth, ladder
from scripts.bake_text import LANGS, WORDS
from scripts.chart_spec import Axis, Chart, Point, Series, apart
from scripts.chart_svg import MARKERS, figure
from tests.helpers.l7_record import RUNGS, SHAPES, VARIANTS, l7_record

SVG = "{http://www.w3.org/2000/svg}"


def parse(html: str) -> ET.Element:
    return ET.fromstring(html.replace("<br>", "<br/>").replace(" hidden>", ' hidden="">').replace(
        " data-search-exclude>", ' data-search-exclude="">'
    ))  # fmt: skip


def chart(scales: tuple[str, ...] = ("log", "linear"), **more) -> Chart:
    series = (
        Series("one", "red", (Point(1, 10, ("1", "10"), (9, 11)), Point(4, 100, ("4", "100"), ringed=True))),
        Series("two", "blue", (Point(2, 1000, ("2", "1000")),), "square"),
    )
    about = {
        "name": "test", "title": "Title", "desc": "What it says.", "x": Axis("x", ("log",), 1, 4, base=2),
        "y": Axis("y, us", scales, 1, 2000), "series": series, "columns": ("series", "x", "y"),
    }  # fmt: skip
    return Chart(**about | more)


def test_shares_of_an_axis():
    axis = Axis("us", ("log", "linear", "near"), 1, 100, near=(40, 60))
    assert axis.share(10, "log") == pytest.approx(0.5)
    assert axis.share(10, "linear") == pytest.approx(0.1)
    assert [axis.share(value, "near") for value in (0, 45, 99)] == [0, 0.25, 1]


@pytest.mark.parametrize(
    ("axis", "scale", "most", "texts"),
    [
        (Axis("", low=1, high=132, base=2), "log", 9, "1 2 4 8 16 32 64 128"),
        (Axis("", low=9, high=210), "log", 9, "10 20 50 100 200"),
        (Axis("", low=9, high=2100), "log", 4, "10 100 1000"),
        (Axis("", high=4600), "linear", 9, "0 1000 2000 3000 4000"),
        (Axis("", high=4600, near=(33, 83)), "near", 9, "40 50 60 70 80"),
    ],
)
def test_ticks_are_round_and_few(axis: Axis, scale: str, most: int, texts: str):
    assert " ".join(text for _, text in axis.ticks(scale, most)) == texts


def test_labels_are_kept_apart():
    assert apart([(5.0, "b"), (0.0, "a"), (40.0, "c")], 15) == [(0.0, "a"), (15.0, "b"), (40.0, "c")]


def test_every_mark_names_its_row_in_both_svgs():
    tree = parse(figure(chart(), "en"))
    rows = tree.findall(".//tbody/tr")
    assert ["".join(row[0].itertext()) for row in rows] == ["one", "one", "two"]
    svgs = list(tree.iter(f"{SVG}svg"))[:2]
    assert [svg.get("width") for svg in svgs] == ["720", "340"]
    for svg in svgs:
        marks = [e for e in svg.iter() if e.get("data-row")]
        assert [mark.get("data-row") for mark in marks] == ["0", "1", "2"]
        assert [mark.get("d") for mark in marks] == [MARKERS[m] for m in ("circle", "circle", "square")]
        assert svg.get("role") == "img" and svg.find(f"{SVG}title").text == "Title"
    ids = [e.get("id") for e in tree.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) == 4


def test_what_moves_has_a_place_under_every_scale():
    tree = parse(figure(chart(), "en"))
    moving = [e for e in tree.iter() if e.get("data-log")]
    assert moving
    for element in moving:
        shown = element.get("transform") or element.get("d")
        assert element.get("data-log") == shown != element.get("data-linear")
    groups = [(g.get("data-scale"), g.get("display")) for g in tree.iter(f"{SVG}g") if g.get("data-scale")]
    assert groups == [("log", None), ("linear", "none")] * 2


def test_points_lie_where_their_values_say():
    tree = parse(figure(chart(), "en"))
    marks = [e for e in next(tree.iter(f"{SVG}svg")).iter() if e.get("data-row")]
    (x1, y10), (x4, y100), (x2, y1000) = (
        map(float, re.findall(r"[\d.]+", mark.get("transform"))) for mark in marks
    )
    assert x2 - x1 == pytest.approx(x4 - x2, abs=0.11)
    assert y10 - y100 == pytest.approx(y100 - y1000, abs=0.11)


def test_one_scale_has_no_buttons_and_no_second_place():
    html = figure(chart(("log",)), "en")
    assert "<button" not in html and "data-log" not in html


def test_text_is_escaped():
    html = figure(chart(title="a < b", series=(Series("<&", "red", (Point(1, 1, ("1", "1")),)),)), "en")
    assert "a &lt; b" in html and "<td>&lt;&amp;</td>" in html


@pytest.mark.parametrize("lang", LANGS)
def test_bandwidth_shows_every_implementation_at_the_plain_shapes(lang: str):
    tree = parse(bandwidth(l7_record(), lang))
    words = WORDS[lang]
    names = ["".join(item.itertext()) for item in tree.findall(".//ul/li")]
    assert names == [words[name] for name in (*VARIANTS, "read", "paged_read")]
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.findall(".//tbody/tr")]
    own = [row for row in rows if row[0] == "fast_decode"]
    assert len(own) == len(SHAPES) + 1
    assert own[0][:5] == ["fast_decode", "1 × 1024".replace(" ", "\u00a0"), "4 splits", "4.2", "5.05"]
    assert not any("bf16" in cell or "Hq 64" in cell for row in rows for cell in row)
    assert "FlashInfer" not in tree.find(f".//{SVG}desc").text  # cuDNN is the fastest other
    assert words["sdpa_cudnn"] in tree.find(f".//{SVG}desc").text


def test_shapes_of_equal_size_stand_apart():
    tree = parse(bandwidth(l7_record(), "en"))
    svg = next(tree.iter(f"{SVG}svg"))
    group = next(g for g in svg.iter(f"{SVG}g") if g.get("data-series") == "0" and g.get("stroke") is None)
    places = [mark.get("transform").split()[0] for mark in group]
    assert len(places) == len(set(places)) == len(SHAPES) + 1


@pytest.mark.parametrize("lang", LANGS)
def test_the_ladder_ends_in_fast_decode_and_what_was_not_kept_stands_below(lang: str):
    tree = parse(ladder(l7_record(), lang))
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.findall(".//tbody/tr")]
    kept = [name for name, is_kept, *_ in RUNGS if is_kept]
    order = [*kept, "fast_decode", "tma"]
    assert [row[1] for row in rows] == order * 3
    assert rows[0][3:5] == ["4400", "4500"]
    assert rows[order.index("prefetch")][3] == "–"
    svg = next(tree.iter(f"{SVG}svg"))
    text = [element.text for element in svg.iter(f"{SVG}text")]
    assert [name for name in text if name in order] == order
    curves = [g for g in svg.iter(f"{SVG}g") if g.get("data-series") and g.get("stroke")]
    assert len(curves) == 3
    rule, line, spans, hollow = curves[0]
    assert rule.get("d").count("L") == 1
    assert line.get("d").count("L") == len(order) - 2  # tma is off the line
    assert spans.get("d").count("M") == len(order)
    assert hollow.get("d").count("M") == len(RUNGS) - 1
    note = WORDS[lang]["rung_split"]
    assert note in text


def test_a_ladder_without_floor_or_prediction():
    rows = [{k: v for k, v in row.items() if k != "prediction"} for row in l7_record()["rows"]]
    svg = next(parse(ladder(l7_record(rows=rows, ceilings=[]), "en")).iter(f"{SVG}svg"))
    curves = [g for g in svg.iter(f"{SVG}g") if g.get("data-series") and g.get("stroke")]
    assert [len(curve) for curve in curves] == [2, 2, 2]


def test_no_rows_no_chart():
    assert bandwidth(l7_record(rows=[]), "en") is None
    assert ladder(l7_record(rows=[]), "en") is None
