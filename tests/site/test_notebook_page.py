"""scripts/notebook_page.py: what is kept of mkdocs-jupyter's page, on a real conversion."""

from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from mkdocs_jupyter.convert import nb2html

from scripts.listing import PageError
from scripts.notebook_page import lighten


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> BeautifulSoup:
    notebook = nbformat.v4.new_notebook()
    output = nbformat.v4.new_output("stream", text="3\n")
    notebook.cells = [
        nbformat.v4.new_markdown_cell("# 标题\n\nState $m < 1$ and `a$b$c`\n\n$$o = acc / l$$\n\n## 标题\n"),
        nbformat.v4.new_code_cell("import math\nprint(3)", execution_count=1, outputs=[output]),
    ]
    file = tmp_path_factory.mktemp("notebook") / "demo.ipynb"
    nbformat.write(notebook, file)
    return BeautifulSoup(lighten(nb2html(str(file)), "demo.ipynb", "Download"), "html.parser")


def test_nothing_but_the_cells_is_kept(page: BeautifulSoup) -> None:
    assert not page.select("script, style, clipboard-copy, [tabindex='0'] .jp-Collapser")
    assert "http" not in str(page)
    assert len(str(page)) < 5_000


def test_code_and_output_are_whole(page: BeautifulSoup) -> None:
    assert page.select_one(".highlight pre code").text.strip() == "import math\nprint(3)"
    assert page.select_one(".jp-OutputArea-output").text.strip() == "3"


def test_formulas_are_marked_and_code_is_not(page: BeautifulSoup) -> None:
    assert [tag.text for tag in page.select(".arithmatex")] == ["\\(m < 1\\)", "\\[o = acc / l\\]"]
    assert page.select_one(".jp-RenderedMarkdown code").text == "a$b$c"


def test_headings_have_anchors_of_their_own(page: BeautifulSoup) -> None:
    headings = page.select("h1, h2")
    assert [heading["id"] for heading in headings] == ["section-1", "section-2"]
    assert [heading.a["href"] for heading in headings] == ["#section-1", "#section-2"]


def test_the_notebook_can_be_downloaded(page: BeautifulSoup) -> None:
    link = page.select_one(".download a[download]")
    assert (link["href"], link.text) == ("demo.ipynb", "Download")


def test_another_template_is_noticed() -> None:
    with pytest.raises(PageError, match="template changed"):
        lighten("<p>no cells</p>", Path("demo.ipynb").name, "Download")
