"""The stand-in for triton._C.libtriton has every name and number that interpreter mode asks for.

What interpreter mode imports of Triton is found by importing it; a version that asks for more fails here.
"""

import ast
import enum
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from triton._C import libtriton as real

from scripts.runner.standins import libtriton as standin
from tests.runner.helpers import in_page, staged

VERSION = "3.7.1"  # that the stand-in, the hooks and the front end were written for
ENUMS = [
    *(("ir", name, members) for name, members in standin._IR_ENUMS.items()),
    *(("interpreter", name, members) for name, members in standin._INTERPRETER_ENUMS.items()),
]
# Named by Triton's files where interpreter mode does not come: in annotations, and in compiling.
NOT_REACHED = {"InsertPoint", "Loc", "block_type", "pointer_type", "load_dialects", "parse_mlir_module"}


@cache
def booted() -> dict:
    """Triton's files that are imported, and what the stand-in's modules have."""
    return in_page("""
        import triton._C.libtriton as library
        from scripts.runner import session  # all that the page imports
        files = {getattr(m, "__file__", None) for n, m in sys.modules.items() if n.split(".")[0] == "triton"}
        result = {
            "files": sorted(f for f in files if f),
            "modules": {
                name: sorted(n for n in vars(sys.modules[name]) if not n.startswith("__"))
                for name in sys.modules if name.startswith("triton._C")
            },
        }
    """)


def test_it_is_this_version_of_triton():
    assert version("triton") == VERSION, f"read {standin.__file__} again, and scripts/runner/hooks.py"


@pytest.mark.parametrize("module, name, members", ENUMS, ids=[f"{m}.{n}" for m, n, _ in ENUMS])
def test_enums_are_the_real_ones(module, name, members):
    theirs = getattr(getattr(real, module), name).__members__
    assert members == {member: int(value) for member, value in theirs.items()}


def test_every_enum_of_the_interpreter_is_there():
    theirs = {name for name, value in vars(real.interpreter).items() if hasattr(value, "__members__")}
    own = {name for name, value in vars(real.interpreter).items() if isinstance(value, type)}
    assert theirs & own == set(standin._INTERPRETER_ENUMS)
    functions = {name for name, value in vars(real.interpreter).items() if callable(value)} - own
    assert functions == {"load", "store", "atomic_rmw", "atomic_cas"}
    assert functions <= set(booted()["modules"]["triton._C.libtriton.interpreter"])


def names_asked_for() -> set[tuple[str, str]]:
    """(module, name) that the imported files take from the compiled module."""
    asked = set()
    for file in booted()["files"]:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("_C.", "triton._C.")):
                asked |= {(node.module.removeprefix("triton."), alias.name) for alias in node.names}
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = {"ir": "_C.libtriton.ir", "_ir": "_C.libtriton.ir"}.get(node.value.id)
                module = module or {"_interpreter": "_C.libtriton.interpreter"}.get(node.value.id)
                if module:
                    asked.add((module, node.attr))
    return asked


def test_every_name_that_is_asked_for_is_there():
    asked = names_asked_for()
    assert len(asked) > 20
    missing = {
        f"{module}.{name}"
        for module, name in asked
        if name not in booted()["modules"].get(f"triton.{module}", ())
        and f"triton.{module}.{name}" not in booted()["modules"]
    }
    assert {name.rpartition(".")[2] for name in missing} == NOT_REACHED, missing


def test_the_files_are_few_and_are_the_packages_own():
    files = [f.removeprefix(f"{staged()}/") for f in booted()["files"]]
    assert all(f.startswith("triton/") and f.endswith(".py") for f in files), files
    assert {"triton/runtime/interpreter.py", "triton/compiler/code_generator.py"} <= set(files)
    assert not [f for f in files if "/gluon/" in f or "/nvidia/" in f or "/amd/" in f]
    assert len(files) < 50


def test_torch_and_the_compiled_module_are_hidden():
    assert in_page("""
        import torch, triton._C.libtriton
        from pathlib import Path
        result = [str(Path(torch.__file__).parent.name), hasattr(triton._C.libtriton, "__file__")]
        result.append([n for n in sys.modules if n.endswith((".so", "_C._abc"))])
    """) == ["torch", False, []]  # fmt: skip


class Pointer:
    """What Triton takes for a tensor."""

    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 16


ARGUMENTS = [0, 1, 2, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, True, False, None, 0.0, 1.0, float("nan")]


@pytest.mark.parametrize("specialize", [True, False])
def test_arguments_have_the_types_that_the_compiled_module_gives(specialize):
    import torch
    from triton.backends.compiler import BaseBackend

    dtypes = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
    program = f"""
        from triton._C.libtriton import native_specialize_impl as f
        from triton.backends.compiler import BaseBackend
        import torch
        inf = nan = float("nan")
        arguments = {ARGUMENTS!r} + [torch.zeros(4, dtype=getattr(torch, n)) for n in {dtypes!r}]
        result = [f(BaseBackend, a, False, {specialize}, True)[0] for a in arguments]
    """
    tensors = [torch.zeros(4, dtype=getattr(torch, name)) for name in dtypes]
    theirs = [
        real.native_specialize_impl(BaseBackend, a, False, specialize, True)[0] for a in ARGUMENTS + tensors
    ]
    assert in_page(program) == json.loads(json.dumps(theirs))


def test_enums_count_as_numbers():
    assert issubclass(standin._module("x", {"A": {"B": 3}}).A, enum.IntEnum)


def test_it_refuses_to_come_late():
    with pytest.raises(RuntimeError, match="triton is imported already"):
        standin.install()
