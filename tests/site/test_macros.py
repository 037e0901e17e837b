"""scripts/macros.py and scripts/library.py: what a page may write, and what happens where it is wrong."""

import json
from pathlib import Path

import markdown
import pytest
from bs4 import BeautifulSoup

from scripts.library import Library
from scripts.listing import PageError
from scripts.macros import Page, expand, fill, shown_files, walk
from scripts.reading import ReadingExtension

KERNEL = """\
# region loop
for page in pages:  #: loop
    k = load(page)  #: load
    v = load(page)  #: load
# endregion loop
done = True  #: done
"""
PRODUCTION = """\
[vllm.stage1]
repo = "vllm-project/vllm"
commit = "0123456789012345678901234567890123456789"
path = "vllm/__init__.py"
lines = [3, 9]
[papers.online]
title = "Online *normalizer*"
url = "https://arxiv.org/abs/1805.02867"
[papers.broken]
title = "No address"
"""


@pytest.fixture
def library(tmp_path: Path) -> Library:
    generated = tmp_path / "snippets/generated/demo"
    generated.mkdir(parents=True)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/demo.py").write_text(KERNEL)
    (tmp_path / "snippets/production.toml").write_text(PRODUCTION)
    (generated.parent / "facts.json").write_text(json.dumps({"kv_bytes": "268,435,456"}))
    (generated / "times.en.html").write_text("<table><tr><td>*a*\n\n    b</td></tr></table>\n")
    (generated / "grid.en.svg").write_text("<svg><title>grid</title></svg>\n")
    return Library(tmp_path)


def demo(**changes: object) -> Page:
    url = "../../{}".format
    return Page(**{"lang": "en", "lesson": "demo", "kernel": "kernels/demo.py", "url": url, **changes})


def html(text: str, library: Library, **changes: object) -> BeautifulSoup:
    """The page as a reader gets it."""
    page = demo(**changes)
    extensions = [ReadingExtension(), "pymdownx.superfences", "pymdownx.details"]
    converted = markdown.markdown(expand(text, page, library), extensions=extensions)
    return BeautifulSoup(fill(converted, page), "html.parser")


def test_inline_macros(library: Library) -> None:
    text = expand("It is {{ fact:kv_bytes }} B, {{fact:kv_bytes}}.", demo(), library)
    assert text == "It is 268,435,456 B, 268,435,456."


def test_a_pinned_link_is_text_that_markdown_leaves_alone(library: Library) -> None:
    link = html("See {{ prod:vllm.stage1 }}.", library).a
    assert link.text == "vllm-project/vllm vllm/__init__.py#L3–L9"
    assert link["href"] == (
        "https://github.com/vllm-project/vllm/blob/0123456789012345678901234567890123456789"
        "/vllm/__init__.py#L3-L9"
    )
    paper = html("{{ prod:papers.online }}", library).a
    assert (paper.text, paper["href"]) == ("Online *normalizer*", "https://arxiv.org/abs/1805.02867")


def test_a_line_outside_of_a_reading_block_links_to_the_source_page(library: Library) -> None:
    link = html("The loads ({{ line:load }}).", library).a
    assert (link.text, link["href"]) == ("L3–L4", "../../source/kernels/demo.md#L3")
    assert "data-lines" not in link.attrs
    other = html("{{ line:kernels/demo.py:loop }}", library, kernel="").a
    assert (other.text, other["href"]) == ("L2", "../../source/kernels/demo.md#L2")


def test_a_line_in_a_reading_block_links_into_the_listing_beside_it(library: Library) -> None:
    text = (
        "/// reading | kernels/demo.py:loop\n"
        "Loads {{ line:load }}, then {{ line:done }}.\n\n- *a* {{ line:loop }}\n///"
    )
    soup = html(text, library)
    load, done, loop = soup.select(".reading-prose a")
    assert (load["href"], load["data-lines"]) == ("#demo-loop-L3", "3-4")
    assert done["href"] == "../../source/kernels/demo.md#L6" and "data-lines" not in done.attrs
    assert loop.find_parent("li").em.text == "a"
    assert soup.select_one(".reading > .reading-code > .listing #demo-loop-L3")


def test_a_section_shown_twice_has_ids_of_its_own(library: Library) -> None:
    block = "/// reading | kernels/demo.py:loop\n{{ line:loop }}\n///\n"
    fence = "```listing\nkernels/demo.py:loop\n```\n"
    soup = html(f"{block}\n{fence}\n{block}", library)
    assert [row["id"] for row in soup.select(".row:first-child")] == [
        "demo-loop-L2",
        "demo-loop-2-L2",
        "demo-loop-3-L2",
    ]
    assert [a["href"] for a in soup.select(".line-ref")] == ["#demo-loop-L2", "#demo-loop-3-L2"]


def test_a_source_page_links_to_itself(library: Library) -> None:
    soup = html("```listing\nkernels/demo.py\n```", library, is_source=True)
    assert [row["id"] for row in soup.select(".row")] == ["L2", "L3", "L4", "L6"]
    assert soup.select_one(".row a")["href"] == "#L2"


def test_blocks_stand_in_prose_lists_and_folds_untouched_by_markdown(library: Library) -> None:
    table = "{{ table:times }}"
    soup = html(
        f"Text.\n{table}\n\n- item\n\n    {table}\n\n??? note\n\n    {{{{ table:demo/times }}}}\n", library
    )
    cells = soup.select("table td")
    assert [cell.text for cell in cells] == ["*a*\n\n    b"] * 3
    assert not soup.select("p table")
    assert soup.select_one("details table") and soup.select_one("li table")


def test_a_figure_is_inlined(library: Library) -> None:
    assert html("{{ figure:grid }}", library).select_one("figure > svg > title").text == "grid"
    assert html("{{ figure:demo/grid }}", library, lesson="").svg


def test_code_of_other_languages_is_left_as_it_is(library: Library) -> None:
    text = "```python\nx = f'{{ y }}'\n/// reading | no\n```"
    assert expand(text, demo(), library) == text


def test_other_blocks_nest_around_and_within_a_reading_block(library: Library) -> None:
    text = (
        "//// reading | kernels/demo.py:loop\na\n/// details | b\nc {{ line:loop }}\n///\n////\n"
        "{{ line:loop }}"
    )
    lines = [(line.text, line.reading) for line in walk(text)]
    assert lines[3] == ("c {{ line:loop }}", "kernels/demo.py:loop")
    assert lines[-1] == ("{{ line:loop }}", "")


def test_files_that_need_a_source_page() -> None:
    text = (
        "{{ line:x }} {{ line:kernels/b.py:y }}\n```listing\nkernels/c.py:s\n```\n"
        "/// reading | kernels/d.py:s\n///\n"
    )
    assert shown_files(text, "kernels/a.py") == {f"kernels/{name}.py" for name in "abcd"}
    assert shown_files("text", "") == set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ fact:nope }}", r"facts\.json has no fact 'nope'"),
        ("{{ prod:vllm.nope }}", r"production\.toml has no 'vllm\.nope'"),
        ("{{ prod:vllm }}", r"production\.toml has no 'vllm'"),
        ("{{ prod:papers.broken }}", r"production\.toml has no 'papers\.broken'"),
        ("{{ line:nope }}", r"kernels/demo\.py has no line named 'nope'"),
        ("{{ line:kernels/nope.py:x }}", r"'kernels/nope\.py' is not a file"),
        ("{{ table:nope }}", r"snippets/generated/demo/nope\.en\.html does not exist"),
        ("{{ figure:other/grid }}", r"snippets/generated/other/grid\.en\.svg does not exist"),
        ("{{ chart:grid }}", r"no macro 'chart'"),
        ("{{ fact: }}", r"holds no macro"),
        ("{{ fact }}", r"holds no macro"),
        ("See {{ table:times }}", r"needs a line of its own"),
        ("```listing\nkernels/demo.py:nope\n```", r"kernels/demo\.py has no section 'nope'; it has loop"),
        ("```listing\nkernels/nope.py\n```", r"'kernels/nope\.py' is not a file"),
        ("```listing\n```", r"'' is not a file"),
        ("/// reading | kernels/demo.py:nope\n///", r"no section 'nope'"),
        ("/// reading\n///", r"'' is not a file"),
        ("/// reading | kernels/demo.py:loop\ntext", r"the block /// never ends"),
        ("```listing\nkernels/demo.py", r"the fence ``` never ends"),
        ("///", r"'///' closes no block"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(text: str, message: str, library: Library) -> None:
    with pytest.raises(PageError, match=message):
        expand(text, demo(), library)


def test_a_page_without_kernel_or_lesson_must_say_which(library: Library) -> None:
    with pytest.raises(PageError, match="no 'kernel' in the page's front matter; wanted 'line:PATH:loop'"):
        expand("{{ line:loop }}", demo(kernel=""), library)
    with pytest.raises(PageError, match="belongs to no lesson; wanted 'table:LESSON/times'"):
        expand("{{ table:times }}", demo(lesson=""), library)


def test_a_block_that_markdown_lost_is_an_error(library: Library) -> None:
    page = demo()
    expand("{{ table:times }}", page, library)
    with pytest.raises(PageError, match="lost in Markdown"):
        fill("<p>nothing here</p>", page)
