"""Make the lessons' notebooks from their text form, and run them.

    python scripts/notebooks.py                    write docs/<lang>/notebooks/<lesson>.ipynb with outputs
    python scripts/notebooks.py --check            run them again; fail where a file would differ
    python scripts/notebooks.py l2_paged_decode    one lesson alone

The source of a notebook is <lesson>.py beside it, in jupytext's percent form. All languages have the same
code cells, so a lesson runs once and its outputs go to all of them. Cells print rounded numbers: the outputs
are the same on every CPU. A cell that raises fails the run.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `scripts`, from anywhere

import jupytext
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

from scripts.generated import ROOT, write_or_check

DOCS = ROOT / "docs"
LANGUAGES = ("zh", "en")
TIMEOUT_S = 300  # a cell


class NotebookError(ValueError):
    """A notebook's source is not what it must be; names the file and the cell."""


def sources(lesson: str) -> dict[Path, NotebookNode]:
    """The notebooks of a lesson without outputs, by their path, the default language first."""
    notebooks = {}
    for lang in LANGUAGES:
        path = DOCS / lang / "notebooks" / f"{lesson}.py"
        read = jupytext.read(path, fmt="py:percent")
        if not read.metadata.get("description"):
            raise NotebookError(f"{path.relative_to(ROOT)} has no description; wanted one under `jupyter:`")
        metadata = {name: read.metadata[name] for name in ("description", "kernelspec")}
        metadata["language_info"] = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
        notebook = nbformat.v4.new_notebook(metadata=metadata, cells=read.cells)
        for i, cell in enumerate(notebook.cells):
            cell.id, cell.metadata = f"cell-{i:02}", {}
        notebooks[path.with_suffix(".ipynb")] = notebook
    codes = [[cell.source for cell in x.cells if cell.cell_type == "code"] for x in notebooks.values()]
    for path, code in list(zip(notebooks, codes, strict=True))[1:]:
        for i in range(max(len(code), len(codes[0]))):
            if code[i : i + 1] != codes[0][i : i + 1]:
                where = f"{path.with_suffix('.py').relative_to(ROOT)}: code cell {i + 1}"
                raise NotebookError(f"{where} is {code[i : i + 1]}; wanted that of {LANGUAGES[0]}")
    return notebooks


def execute(notebook: NotebookNode, folder: Path) -> list[NotebookNode]:
    """Run a copy of the notebook in `folder`; returns its code cells, with their outputs."""
    copy = nbformat.from_dict(notebook)
    with tempfile.TemporaryDirectory() as sockets:  # the kernel speaks through files there, not over ports
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/kernel")
        where = {"metadata": {"path": str(folder)}}
        NotebookClient(copy, km=manager, timeout=TIMEOUT_S, resources=where).execute(cleanup_kc=True)
    return [cell for cell in copy.cells if cell.cell_type == "code"]


def rendered(lesson: str) -> dict[Path, str]:
    """Path -> text of a lesson's .ipynb in every language, freshly run."""
    notebooks = sources(lesson)
    path, first = next(iter(notebooks.items()))
    cells = execute(first, path.parent)
    files = {}
    for path, notebook in notebooks.items():
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for number, (cell, ran) in enumerate(zip(code, cells, strict=True), 1):
            cell.outputs, cell.execution_count = joined(ran.outputs), number
        nbformat.validate(notebook)
        files[path] = nbformat.writes(notebook) + "\n"
    return files


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs with neighbouring pieces of one stream in one: how often it was flushed is chance."""
    result: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and result and result[-1].get("name") == output.name:
            result[-1].text += output.text
        else:
            result.append(nbformat.from_dict(output))
    return result


def lessons() -> list[str]:
    """Every lesson that has a notebook."""
    return sorted(path.stem for path in (DOCS / LANGUAGES[0] / "notebooks").glob("*.py"))


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lesson", nargs="*", help="lessons to run; all without one")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file differs")
    arguments = parser.parse_args()
    files: dict[Path, str] = {}
    for lesson in arguments.lesson or lessons():
        files |= rendered(lesson)
    present = [] if arguments.lesson else DOCS.glob("*/notebooks/*.ipynb")
    return write_or_check(files, present, arguments.check, "python scripts/notebooks.py")


if __name__ == "__main__":
    sys.exit(main())
