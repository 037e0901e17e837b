"""Which script imports which: no circle, not even one that an import inside a function would hide."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.glob("scripts/**/*.py"))
    if "standins" not in path.parts  # those are the modules `torch` and `triton._C.libtriton` of the page
}


def imports(name: str, text: str, modules: set[str]) -> set[str]:
    """Every module of `modules` that a module's text imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = name.rpartition(".")[0] if node.level else ""
            module = ".".join(filter(None, (package, node.module)))
            # `from scripts import x` imports scripts.x; `from scripts.x import y` imports x alone.
            inner = {f"{module}.{alias.name}" for alias in node.names}
            found |= inner & modules or {module}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= _named(node.args[0], modules)
    return found & modules - {name}


def _named(argument: ast.expr, modules: set[str]) -> set[str]:
    """What import_module gets: a name, or a name whose end is not known before it runs."""
    if isinstance(argument, ast.Constant):
        return {argument.value}
    if isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
        begin = argument.values[0].value
        return {module for module in modules if begin.startswith("scripts.") and module.startswith(begin)}
    return set()


def order(texts: dict[str, str]) -> list[str]:
    """The modules, each after those that it imports; CycleError naming a circle."""
    names = set(texts)
    return list(TopologicalSorter({n: imports(n, text, names) for n, text in texts.items()}).static_order())


def test_no_script_imports_itself_on_a_way_round():
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    try:
        order(texts)
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize(
    "back",
    [
        "from scripts import a",
        "def f():\n    from scripts.a import x",
        "def f():\n    import scripts.a",
        "from importlib import import_module\ndef f(): import_module('scripts.a')",
        "import importlib\ndef f(x): importlib.import_module(f'scripts.{x}')",
        "from .a import x",
    ],
)
def test_a_circle_is_found(back):
    texts = {"scripts.a": "from scripts.b import y", "scripts.b": back, "scripts.c": "import json"}
    with pytest.raises(CycleError):
        order(texts)
    assert set(order(texts | {"scripts.b": "import sys"})) == set(texts)
