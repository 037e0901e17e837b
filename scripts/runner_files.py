"""Which files of this project the page needs, and the archive of them: a library for the site's hook.

The Python files are those that the entries import, found in their syntax: nothing is imported here, so that
building the site needs neither torch nor numpy.
"""

import ast
import io
import zipfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENTRIES = tuple(f"scripts/runner/{name}.py" for name in ("extensions", "boot", "answer"))
STANDINS = "scripts/runner/standins"
# What they read beside modules: drills, wrong kernels, words.
DATA = ("snippets/drills/*.toml", "snippets/mutants/**/*.toml", "scripts/figures/*.toml",
        "scripts/runner/*.toml", "scripts/explorers/*.toml")  # fmt: skip
OURS = ("kernels", "scripts", "tests")
TIME = (1980, 1, 1, 0, 0, 0)


def project_files() -> list[str]:
    """Paths from the root, sorted: the import closure of ENTRIES, the stand-ins, the data."""
    wanted = {path for path in ENTRIES if (ROOT / path).is_file()}
    wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / STANDINS).rglob("*.py")}
    todo = sorted(wanted)
    while todo:
        for path in _imports(todo.pop()):
            if path not in wanted:
                wanted.add(path)
                todo.append(path)
    for pattern in DATA:
        wanted |= {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(wanted)


def _imports(path: str) -> set[str]:
    """The files of ours that a file's import statements name, wherever they stand in it."""
    source = (ROOT / path).read_text(encoding="utf-8")
    return {file for name in _names(source, path) for file in _files(name)}


@cache
def _names(source: str, path: str) -> frozenset[str]:
    package = path.rpartition("/")[0].replace("/", ".")
    names = set()
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parent = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
            base = ".".join(filter(None, (parent if node.level else "", node.module)))
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _files(name: str) -> set[str]:
    """The files that importing a module of ours loads: its own and its packages'."""
    parts = name.split(".")
    if parts[0] not in OURS:
        return set()
    files = {"/".join([*parts[:i], "__init__.py"]) for i in range(1, len(parts) + 1)}
    files.add("/".join(parts) + ".py")
    return {file for file in files if (ROOT / file).is_file()}


def project_archive(byte_code: Path | None) -> bytes:
    """A zip of the files, and of their byte code, which Python leaves aside where the source is newer."""
    names = project_files()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            _add(archive, name, (ROOT / name).read_bytes())
            folder, _, file = name.rpartition("/")
            if byte_code:
                for compiled in (byte_code / folder / "__pycache__").glob(f"{file[:-3]}.*.pyc"):
                    _add(archive, f"{folder}/__pycache__/{compiled.name}", compiled.read_bytes())
    return packed.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, TIME), data)  # as it is: the whole archive is compressed later
