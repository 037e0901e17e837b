"""The functions that a compiled kernel came from, and whether they still are what was compiled."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path

Span = tuple[str, int, int]  # file, first line, last line


def functions(root: Path, places: Iterable[tuple[str, int]]) -> list[Span]:
    """The functions that these lines stand in, decorators included, file by file in the order given."""
    lines: dict[str, set[int]] = {}
    for path, line in places:
        lines.setdefault(path, set()).add(line)
    found = []
    for path, wanted in lines.items():
        tree = ast.parse((root / path).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                if wanted & set(range(first, node.end_lineno + 1)):
                    found.append((path, first, node.end_lineno))
    return found


def code_hash(root: Path, spans: Iterable[Span]) -> str:
    """A hash of these lines and of their numbers, comments left out."""
    digest = hashlib.sha256()
    for path, first, last in spans:
        text = (root / path).read_text(encoding="utf-8")
        lines = text.splitlines()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
        for no in range(first, min(last, len(lines)) + 1):
            digest.update(f"{path}:{no}:{lines[no - 1].rstrip()}\n".encode())
    return digest.hexdigest()[:16]
