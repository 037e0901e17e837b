"""Inside Pyodide, under node: see what the page imports, and compile it to the byte code of this Python.

scripts/runner_compile.mjs mounts the folders that /job.json names and runs this. Written to /out:
python_stdlib.zip (loaded before anything else), packages.zip (numpy and Triton, imported from the archive),
extensions/ (numpy's compiled modules), project/ (byte code of our files, checked against their sources when
it is imported) and files.json.
"""

import ast
import importlib.util
import json
import marshal
import os
import re
import struct
import sys
import zipfile

JOB = json.load(open("/job.json"))  # noqa: SIM115, the process ends with this script
STDLIB = "/lib/python311.zip"
TIME = (1980, 1, 1, 0, 0, 0)  # the same archive for the same content
# numpy gives functions of its compiled module these docstrings, and wants them to be there.
KEEP_DOCSTRINGS = ("numpy/_core/multiarray.py",)
JIT_FUNCTION = re.compile(rb"^\s*@(\w+\.)?(jit|constexpr_function)\b", re.MULTILINE)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def byte_code(source: bytes, name: str, docstrings: bool = False, checked: bool = False) -> bytes:
    """A .pyc with the assertions; if checked, Python compares it with the source's hash when imported."""
    tree = ast.parse(source, name)
    if not docstrings:
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                node.body[0].value = ast.copy_location(ast.Constant(None), node.body[0].value)
    code = compile(tree, name, "exec", dont_inherit=True, optimize=0)
    key = importlib.util.source_hash(source) if checked else bytes(8)
    flags = struct.pack("<I", 0b11 if checked else 0b01)
    return importlib.util.MAGIC_NUMBER + flags + key + marshal.dumps(code)


def add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, TIME), data)  # as it is: the whole archive is compressed later


def imported(folder: str) -> list[str]:
    """The files below `folder` that modules came from, as paths from there."""
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return sorted(file[len(folder) + 1 :] for file in files if file.startswith(folder + "/"))


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


for name in JOB["learner_modules"]:
    importlib.import_module(name)
sys.dont_write_bytecode = True
sys.path[:0] = JOB["path"]
first = []  # of our modules, those that a first run wants: they go along as byte code too
exec(JOB["exercise"])

with zipfile.ZipFile(STDLIB) as source, zipfile.ZipFile("/out/python_stdlib.zip", "w") as archive:
    # All that Pyodide's own Python side may want, and what was imported.
    own = [n for n in source.namelist() if n.startswith(("_pyodide/", "pyodide/")) and n.endswith(".py")]
    for name in sorted({*own, *imported(STDLIB)}):
        add(archive, name + "c", byte_code(source.read(name), f"{STDLIB}/{name}"))

extensions = []
with zipfile.ZipFile("/out/packages.zip", "w") as archive:
    for name in imported("/in/numpy"):
        data = read(f"/in/numpy/{name}")
        if name.endswith(".py"):
            add(archive, name + "c", byte_code(data, f"/packages.zip/{name}", name in KEEP_DOCSTRINGS))
        else:
            extensions.append(name)
            path = f"/out/extensions/{os.path.basename(name)}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
    for name in imported("/in/triton"):
        data = read(f"/in/triton/{name}")
        if JIT_FUNCTION.search(data):  # the interpreter reads the source of such a function
            add(archive, name, data)
        add(archive, name + "c", byte_code(data, f"/packages.zip/{name}"))
    for name, text in JOB["licences"].items():
        add(archive, name, text.encode())

for name in first:
    folder, _, file = name.rpartition("/")
    path = f"/out/project/{folder}/__pycache__/{file[:-3]}.{sys.implementation.cache_tag}.pyc"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(byte_code(read(f"/in/project/{name}"), f"/project/{name}", checked=True))

with open("/out/files.json", "w") as out:
    parts = {part: imported(f"/in/{part}") for part in ("numpy", "triton", "project")}
    json.dump({"stdlib": imported(STDLIB), **parts, "extensions": extensions}, out, indent=1)
