"""The warnings of a run: what a GPU's compiler refuses in its kernels, although the interpreter lets it pass.

Each kernel of the reader's file is put through Triton's front end (scripts/runner/compiling.py) before its
first launch, once for a source and the types of its arguments.
"""

import ast
import re

from triton.compiler.errors import CompilationError

from scripts.runner.compiling import TILE_AS_CONDITION, FrontEnd, refusal
from scripts.runner.words import text

# The compiler's words, and which of our explanations goes with them.
_KINDS = (
    (r"Input shapes should have M >=", "small_dot"),
    (TILE_AS_CONDITION, "tile_as_condition"),
    (r"Loop-carried variable .* has initial type", "carried_type"),
    (r"Cannot have `return` statements inside", "return_in_loop"),
    (r"unsupported AST node type: (Break|Continue)", "break_or_continue"),
    (r"unsupported AST node type", "unsupported_python"),
    (r"Cannot access global variable", "plain_global"),
    (r"Unsupported function referenced", "plain_function"),
)
_MOST_KNOWN = 64
_known: dict[tuple, list[dict]] = {}  # what was said of a kernel, by source and types


def judged(kernel: tuple, file: str, source: str) -> list[dict]:
    """The warnings about one kernel of the reader's file (launches.Launches.kernels), known or found now."""
    function, types, constants = kernel
    if function.fn.__code__.co_filename != file:
        return []  # a lesson's, which its tests compile
    key = source, function.fn.__qualname__, repr((types, constants))
    if key not in _known:
        while len(_known) >= _MOST_KNOWN:
            del _known[next(iter(_known))]
        FrontEnd.notes.clear()
        error = refusal(function, types, constants)
        found = [_remark(code, line, values) for code, where, line, values in FrontEnd.notes if where == file]
        _known[key] = [*found, _refused(error, file)] if error else found
    return _known[key]


def warnings_of(record, file: str, source: str) -> list[dict]:
    """The warnings of a run: its own remarks, and those about each kernel; by line."""
    found = [_remark(code, line, values) for code, line, values in record.remarks]
    for kernel in record.kernels:
        found += judged(kernel, file, source)
    unique = {(w["line"], w["message"]): w for w in found}
    return sorted(unique.values(), key=lambda w: (w["line"] or 0, w["code"]))


def _remark(code: str, line: int | None, values: dict) -> dict:
    texts = {lang: text("warning", code, values, lang) for lang in ("en", "zh")}
    return {"line": line, "code": code, "values": values, "message": texts["en"], "texts": texts}


def _refused(error: CompilationError, file: str) -> dict:
    """The innermost line of the reader's, and the innermost words."""
    line, said, endless = None, "", False
    while isinstance(error, CompilationError):
        where, number = getattr(error, "place", (None, None))
        line = number if where == file else line
        said = error.error_message or said
        endless = getattr(error, "endless", endless)
        error = error.__cause__
    said = re.sub(r" at 0x[0-9a-f]+", "", _without_repr(" ".join(said.split())))
    code = next((code for pattern, code in _KINDS if re.search(pattern, said)), "refused")
    return _remark(code, line, {"said": said}) | ({"endless": True} if endless else {})


def _without_repr(said: str) -> str:
    """The words of AssertionError('words'), which is how Triton wraps an error."""
    wrapped = re.fullmatch(r"(\w+)\((['\"].*['\"]),?\)", said)
    if wrapped is None:
        return said
    try:
        return str(ast.literal_eval(wrapped[2])) or wrapped[1]
    except (SyntaxError, ValueError):
        return said
