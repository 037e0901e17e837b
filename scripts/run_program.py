"""The programs that a page runs: a file of a lesson as its drill has it, then the lesson's small case.

    python scripts/run_program.py l2_paged_decode          # of the lesson's page: nothing is left to write
    python scripts/run_program.py l2_paged_decode/loop     # of the problem page: the skeleton of a level

The case is snippets/runs/<file>.py, which can be run by itself (`python -m snippets.runs.l2_paged_decode`).
In a program it stands under `if __name__ == "__main__":`, and what it imports from the lesson's file is what
stands above it. A check imports the program under another name, so that the case does not run.
"""

import argparse
import ast
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))

from scripts import skeletons
from scripts.listing import PageError


def case_path(lesson: str, level: str = "") -> str:
    """The file of the case, from the root; a lesson in parts has one for each of its files."""
    source = skeletons.load(lesson, level or skeletons.levels(lesson)[0]).source.path
    path = f"snippets/runs/{Path(source).stem}.py"
    if not (ROOT / path).is_file():
        raise PageError(f"no {path}: the case that a page runs with {source}")
    return path


def program(lesson: str, level: str = "") -> str:
    """The text of a program: with the skeleton of a level, or, without one, with the solution."""
    skeleton = skeletons.load(lesson, level or skeletons.levels(lesson)[0])
    text = skeleton.text() if level else skeleton.answer()
    case = _case(case_path(lesson, level), skeleton.source.path, set(text.splitlines()))
    return f'{text}\n\nif __name__ == "__main__":\n{textwrap.indent(case, "    ")}'


def _case(path: str, source: str, above: set[str]) -> str:
    """The statements of a case, without its docstring and the imports that the program has above it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    rows, module = text.splitlines(), source.removesuffix(".py").replace("/", ".")
    for node in ast.parse(text, path).body:
        lines = rows[node.lineno - 1 : node.end_lineno]
        own = isinstance(node, ast.ImportFrom) and node.module == module
        again = isinstance(node, ast.Import | ast.ImportFrom) and set(lines) <= above
        if own or again or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            rows[node.lineno - 1 : node.end_lineno] = [""] * len(lines)
    kept = "\n".join(rows).strip()
    while "\n\n\n" in kept:  # one blank line is enough within a block
        kept = kept.replace("\n\n\n", "\n\n")
    return kept + "\n"


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", metavar="LESSON[/LEVEL]")
    lesson, _, level = parser.parse_args().name.partition("/")
    try:
        print(program(lesson, level), end="")
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
