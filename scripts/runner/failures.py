"""An exception of a reader's program, as plain data: kind, message, the line that it is about."""

import traceback

from triton.runtime.errors import InterpreterError

from scripts.runner.faults import Fault, Unsupported
from scripts.runner.words import text

_FACTS = ("tensor", "index", "shape", "program", "op")


def failure(raised: BaseException, file: str) -> dict | None:
    """What to tell of it; None of `sys.exit()` without a complaint."""
    error = raised
    while isinstance(error, InterpreterError) and error.__cause__ is not None:
        error = error.__cause__  # Triton wraps what a kernel raised
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return None
    report = {"kind": type(error).__name__, "line": _line(error, raised, file), "code": None, "values": {}}
    report |= dict.fromkeys((*_FACTS, "unsupported"))
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    message = message or type(error).__name__
    report["texts"] = {"en": message, "zh": message}
    if isinstance(error, Fault):
        report |= {"code": error.code, "values": error.values}
        report |= {key: error.values[key] for key in _FACTS if key in error.values}
        report["texts"] = {lang: text("fault", error.code, error.values, lang) for lang in ("en", "zh")}
    elif isinstance(error, RecursionError | MemoryError | KeyboardInterrupt):
        report["code"] = type(error).__name__
        report["texts"] = {lang: text("fault", report["code"], {}, lang) for lang in ("en", "zh")}
    report["unsupported"] = _unsupported(error)
    report["message"] = report["texts"]["en"]
    report["line"] = report["line"] if report["code"] != "endless" else error.values["line"]
    return report


def _line(error: BaseException, raised: BaseException, file: str) -> int | None:
    """The innermost line of the reader's file: of the error, else of what it was wrapped in, outwards."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    chain = [raised]
    while chain[-1] is not error:
        chain.append(chain[-1].__cause__)
    for one in reversed(chain):
        lines = [number for frame, number in traceback.walk_tb(one.__traceback__)
                 if frame.f_code.co_filename == file]  # fmt: skip
        if lines:
            return lines[-1]
    return None


def _unsupported(error: BaseException) -> str | None:
    """The name of what this runner does not have, if that is the error."""
    if isinstance(error, Unsupported):
        return error.values["name"]
    message = str(error)
    missing = " is not in this page's"  # the words of the stand-in for torch
    if isinstance(error, AttributeError | NotImplementedError | ImportError) and missing in message:
        return message.partition(missing)[0]
    if isinstance(error, NotImplementedError) and message.endswith("not supported in interpreter mode"):
        return message.split()[0]
    return None
