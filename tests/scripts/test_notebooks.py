"""The committed notebooks are what running their sources gives, and a failing cell fails."""

from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from scripts import notebooks
from scripts.generated import ROOT

HEADER = """# ---
# jupyter:
#   description: d
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

"""


@pytest.mark.parametrize("lesson", notebooks.lessons())
def test_committed_notebooks_are_what_a_run_gives(lesson: str):
    for path, text in notebooks.rendered(lesson).items():
        committed = path.read_text(encoding="utf-8")
        assert committed == text, (
            f"{path.relative_to(ROOT)} is stale; run: python scripts/notebooks.py {lesson}"
        )


def test_every_lesson_has_a_notebook_in_every_language():
    for lang in notebooks.LANGUAGES:
        pages = {path.stem for path in (notebooks.DOCS / lang / "lessons").glob("*.md")}
        assert {path.stem for path in (notebooks.DOCS / lang / "notebooks").glob("*.ipynb")} == pages
        assert {path.stem for path in (notebooks.DOCS / lang / "notebooks").glob("*.py")} == pages


@pytest.mark.parametrize("lesson", notebooks.lessons())
def test_outputs_are_plain_text_and_cells_are_plain_python(lesson: str):
    for path in notebooks.sources(lesson):
        cells = nbformat.read(path, as_version=4).cells
        assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
        assert 12 <= len(cells) <= 30
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert all(output.output_type == "stream" for cell in code for output in cell.outputs)
        assert not any(line.startswith(("!", "%")) for cell in code for line in cell.source.splitlines())


def write_sources(root: Path, zh: str, en: str) -> None:
    for lang, text in (("zh", zh), ("en", en)):
        folder = root / "docs" / lang / "notebooks"
        folder.mkdir(parents=True)
        (folder / "x.py").write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "DOCS", tmp_path / "docs")
    return tmp_path


def test_a_run_fills_both_languages_the_same_way_every_time(root: Path):
    code = "# %%\nimport sys\nprint('a', flush=True)\nprint('b')\nprint('c', file=sys.stderr)\n"
    write_sources(
        root, HEADER + "# %% [markdown]\n# # 甲\n\n" + code, HEADER + "# %% [markdown]\n# # A\n\n" + code
    )
    first = notebooks.rendered("x")
    for path, text in first.items():
        notebook = nbformat.reads(text, as_version=4)
        assert notebook.metadata.description == "d"
        assert [cell.id for cell in notebook.cells] == ["cell-00", "cell-01"]
        outputs = [(output.name, output.text) for output in notebook.cells[1].outputs]
        assert sorted(outputs) == [("stderr", "c\n"), ("stdout", "a\nb\n")], path
        assert notebook.cells[1].execution_count == 1
    assert notebooks.rendered("x") == first


def test_a_cell_that_raises_fails(root: Path):
    write_sources(root, HEADER + "# %%\nassert 1 + 1 == 3\n", HEADER + "# %%\nassert 1 + 1 == 3\n")
    with pytest.raises(CellExecutionError, match="AssertionError"):
        notebooks.rendered("x")


def test_code_that_differs_between_languages_is_named(root: Path):
    write_sources(root, HEADER + "# %%\nprint(1)\n", HEADER + "# %%\nprint(2)\n")
    with pytest.raises(notebooks.NotebookError, match=r"docs/en/notebooks/x\.py: code cell 1 .*print\(2\)"):
        notebooks.sources("x")


def test_a_source_without_a_description_is_named(root: Path):
    write_sources(root, "# %%\nprint(1)\n", "# %%\nprint(1)\n")
    with pytest.raises(notebooks.NotebookError, match=r"docs/zh/notebooks/x\.py has no description"):
        notebooks.sources("x")
