"""scripts/listing.py: sections, named lines, and the HTML of a listing."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from scripts.listing import PageError, parse_source, read_source, render, span_text, split_spec

TEXT = '''\
import math  #: imports

# region outer
def f(x):  # [N]  #: head, shape
    """Says # region no
    and #: nothing"""

    # region inner
    y = x + 1  #: body
    z = "#: a string"
    return y  #: body
    # endregion inner

# endregion outer
'''


def source(text: str = TEXT):
    return parse_source("kernels/demo.py", text)


def test_markers_are_stripped_and_numbers_kept() -> None:
    lines = source().lines
    assert lines[1] == "import math"
    assert lines[4] == "def f(x):  # [N]"
    assert lines[9] == "    y = x + 1"
    assert set(range(1, 15)) - set(lines) == {3, 8, 12, 14}  # the region comments


def test_strings_hold_no_markers() -> None:
    lines = source().lines
    assert lines[5].endswith("# region no") and lines[6].endswith('#: nothing"""')
    assert lines[10] == '    z = "#: a string"'


def test_sections_nest_and_lose_blank_edges() -> None:
    assert source().section("inner") == [9, 10, 11]
    assert source().section("outer") == [4, 5, 6, 7, 9, 10, 11]
    assert source().section("") == [1, 2, 4, 5, 6, 7, 9, 10, 11]


def test_c_plus_plus_has_markers_in_its_own_comments() -> None:
    found = parse_source(
        "a.cu", "// region step\nint x;  // of a step  //: name\n// endregion step\nint y;\n"
    )
    assert found.section("step") == [2] and found.lines[2] == "int x;  // of a step"
    assert found.mark("name") == (2, 2)


def test_a_name_spans_its_first_to_its_last_line() -> None:
    assert {name: source().mark(name) for name in ("imports", "head", "shape", "body")} == {
        "imports": (1, 1),
        "head": (4, 4),
        "shape": (4, 4),
        "body": (9, 11),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# region a\nx = 1\n", r"demo\.py:1: section 'a' never ends"),
        ("x = 1\n# endregion a\n", r"demo\.py:2: .*no section is open"),
        ("# region a\n# region b\nx = 1\n# endregion a\n", r"demo\.py:4: .*innermost open section is 'b'"),
        (
            "# region a\nx = 1\n# endregion a\n# region a\nx = 1\n# endregion a\n",
            r"demo\.py:4: .*second time",
        ),
        ("# region a\n# region a\nx = 1\n# endregion a\n# endregion a\n", r"demo\.py:2: .*second time"),
        ("# region\nx = 1\n# endregion\n", r"demo\.py:1: '# region ' needs one name"),
        ("# region two words\n", r"demo\.py:1: .*needs one name"),
        ("x = 1  #: two words\n", r"demo\.py:1: '#: two words' is no line name"),
        ("x = 1  #:\n", r"demo\.py:1: '#: ' is no line name"),
        ("x = 1\n#: alone\n", r"demo\.py:2: '#: alone' stands alone"),
    ],
)
def test_bad_markers_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(PageError, match=message):
        source(text)


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(PageError, match=r"kernels/demo\.py has no section 'innr'; it has inner, outer"):
        source().section("innr")
    with pytest.raises(
        PageError, match=r"kernels/demo\.py has no line named 'x'; it has body, head, imports"
    ):
        source().mark("x")


def test_a_section_without_lines_is_refused() -> None:
    with pytest.raises(PageError, match="section 'a' shows no line"):
        source("# region a\n\n# endregion a\n").section("a")


@pytest.mark.parametrize("path", ["kernels/none.py", "kernels", "", "../secret.py"])
def test_only_files_of_the_repository_are_read(path: str, tmp_path: Path) -> None:
    (tmp_path / "repo/kernels").mkdir(parents=True)
    (tmp_path / "secret.py").write_text("x = 1\n")
    with pytest.raises(PageError, match=re.escape(f"{path!r} is not a file of this repository")):
        read_source(tmp_path / "repo", path)


def test_a_file_without_a_lexer_is_refused() -> None:
    with pytest.raises(PageError, match="no syntax highlighting"):
        parse_source("data.unknown-kind", "x\n")


def test_every_line_has_its_number_anchor_and_link() -> None:
    soup = BeautifulSoup(
        render(source(), "inner", "../../source/kernels/demo/", "demo-inner-"), "html.parser"
    )
    rows = soup.select(".row")
    assert [row["id"] for row in rows] == ["demo-inner-L9", "demo-inner-L10", "demo-inner-L11"]
    assert [row.a["href"] for row in rows] == [f"../../source/kernels/demo/#L{no}" for no in (9, 10, 11)]
    assert [row.a["data-no"] for row in rows] == ["9", "10", "11"]
    caption = soup.select_one(".listing-caption")
    assert caption.text == "kernels/demo.py · L9–L11"
    assert caption["href"] == "../../source/kernels/demo/#L9"


def test_the_text_is_dedented_and_holds_no_numbers() -> None:
    soup = BeautifulSoup(render(source(), "inner", "", ""), "html.parser")
    assert soup.code.text == 'y = x + 1\nz = "#: a string"\nreturn y'


def test_the_whole_file_keeps_its_indentation() -> None:
    soup = BeautifulSoup(render(source(), "", "", ""), "html.parser")
    assert soup.code.text.splitlines() == list(source().lines.values())[:-1]
    assert [row["id"] for row in soup.select(".row")] == [f"L{no}" for no in source().section("")]


def test_a_section_within_a_docstring_is_coloured_as_one() -> None:
    text = '"""Head.\n\nfor x in y\n"""\n'
    assert '<span class="sd">for x in y</span>' in render(source(text), "", "", "")


def test_html_is_escaped() -> None:
    assert "&lt;b&gt; &amp;" in render(source('x = "<b> &"\n'), "", "", "")


def test_specs_and_spans() -> None:
    assert split_spec(" kernels/a.py:b \n") == ("kernels/a.py", "b")
    assert split_spec("kernels/a.py") == ("kernels/a.py", "")
    assert span_text(57, 57) == "L57"
    assert span_text(57, 59) == "L57–L59"
