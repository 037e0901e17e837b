"""Make what the in-page runner loads: Pyodide, numpy and Triton's interpreter, from pinned packages.

    python scripts/runner_bundle.py            # into .artifacts/runner, if what it is made of changed
    python scripts/runner_bundle.py --check    # change nothing; fail where it is missing, old or damaged
    python scripts/runner_bundle.py --sizes    # what a reader downloads, file by file

Pyodide and numpy come from npm (package.json), Triton from the installed package or else from its wheel. A
Python runs in the page that is not the machine's, so the byte code is compiled by that one, under node. The
site's hook copies the bundle into the site; nothing of it is committed.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

import deflate

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.browsers import node
from scripts.runner_files import STANDINS, project_files

BUNDLE = ROOT / ".artifacts/runner"
MANIFEST = "bundle.json"
COMMAND = "make runner"
COMPILER = ("scripts/runner_bundle.py", "scripts/runner_compile.mjs", "scripts/runner_compile.py")
LICENCES = ROOT / "scripts/runner/licences"
NUMPY = "node_modules/@emscripten-forge/numpy/pkg"
PYODIDE = "node_modules/pyodide"
AS_PUBLISHED = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm")
BY_NAME = ("pyodide.mjs",)  # imported as it is; all else is fetched compressed, whatever the host does
# numpy without its linear algebra (half of what is compiled in it) and without docstrings of C functions.
NUMPY_STANDINS = {
    "numpy/linalg/__init__.py": "scripts/runner/standins/numpy_linalg.py",
    "numpy/_core/_add_newdocs.py": None,
    "numpy/_core/_add_newdocs_scalars.py": None,
}
# What a learner may import beside what the runner itself does.
LEARNER_MODULES = (
    "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "heapq", "inspect", "io", "itertools", "json", "linecache", "math", "numbers", "operator",
    "pathlib", "pprint", "random", "re", "statistics", "string", "struct", "sys", "textwrap", "time",
    "traceback", "types", "typing", "warnings", "zlib",
)  # fmt: skip
# What the page may ask for: all our modules that go along are imported, so that whatever they want is seen.
EXERCISE = """
import importlib
from scripts.runner import boot, extensions
boot.boot()
from scripts.runner import answer
first = imported("/in/project")
for name in JOB["modules"]:
    importlib.import_module(name)
"""


class BundleError(RuntimeError):
    """A package that is not there, or is another than the pinned one."""


def pinned_triton() -> str:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return next(pin.partition("==")[2] for pin in groups["kernels"] if pin.startswith("triton=="))


def fingerprint() -> str:
    """A hash of all that the bundle is made of."""
    total = hashlib.sha256(pinned_triton().encode())
    for path in sorted({"package-lock.json", *COMPILER, *_project_sources()}):
        total.update(path.encode() + b"\0" + (ROOT / path).read_bytes())
    for path in sorted(LICENCES.iterdir()):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


def _project_sources() -> list[str]:
    return [path for path in project_files() if path.endswith(".py") and not path.startswith("snippets/")]


def _modules() -> list[str]:
    """Names of our modules in the page; the stand-ins are imported under other names."""
    paths = (path for path in _project_sources() if not path.startswith(STANDINS))
    return [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths]


def triton_sources(scratch: Path) -> Path:
    """A folder with the folder `triton` of the pinned version, without its compiled module."""
    version = pinned_triton()
    target = scratch / "triton"
    try:
        distribution = importlib.metadata.distribution("triton")
        installed = distribution.version == version
    except importlib.metadata.PackageNotFoundError:
        installed = False
    if installed:
        files = [f for f in distribution.files if f.suffix == ".py" or "licenses" in f.parts]
        for file in files:
            _place(target, file.as_posix(), Path(distribution.locate_file(file)).read_bytes())
    else:
        print(f"downloading triton {version} for its Python files", flush=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        platform = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"]
        subprocess.run([*command, *platform, "-d", str(scratch), f"triton=={version}"], check=True)
        with zipfile.ZipFile(next(scratch.glob("triton-*.whl"))) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py") or "/licenses/" in name:
                    _place(target, name, wheel.read(name))
    # Backends hold the compilers; the interpreter wants the package alone.
    for backend in ("nvidia", "amd"):
        shutil.rmtree(target / "triton/backends" / backend, ignore_errors=True)
    return target


def _place(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def numpy_files(scratch: Path) -> tuple[Path, str]:
    """The site-packages of the WebAssembly build of numpy, and its licence."""
    archives = list((ROOT / NUMPY).glob("*.tar.gz"))
    if len(archives) != 1 or not (ROOT / PYODIDE / "pyodide.asm.wasm").is_file():
        raise BundleError("node_modules lacks pyodide or @emscripten-forge/numpy; run: npm ci --omit=dev")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(scratch / "numpy", filter="data")
    licence = (scratch / "numpy/info/licenses/LICENSE.txt").read_text(encoding="utf-8")
    packages = next((scratch / "numpy").glob("lib/python3.*/site-packages"))
    for name, standin in NUMPY_STANDINS.items():
        _place(packages, name, (ROOT / standin).read_bytes() if standin else b"")
    return packages, licence


def build(scratch: Path) -> None:
    """The whole bundle, in a scratch folder first, then in its place."""
    numpy, numpy_licence = numpy_files(scratch)
    triton = triton_sources(scratch)
    out = scratch / "out"
    out.mkdir()
    licences = {path.name: path.read_text(encoding="utf-8") for path in sorted(LICENCES.iterdir())}
    licences["numpy-LICENSE.txt"] = numpy_licence
    licences["triton-LICENSE.txt"] = next(triton.glob("triton-*/licenses/LICENSE")).read_text("utf-8")
    job = {
        "folders": {"/in/project": str(ROOT), "/in/numpy": str(numpy), "/in/triton": str(triton),
                    "/out": str(out)},
        "path": [f"/in/project/{STANDINS}", "/in/project", "/in/numpy", "/in/triton"],
        "learner_modules": LEARNER_MODULES, "modules": _modules(), "exercise": EXERCISE,
        "licences": licences,
    }  # fmt: skip
    (scratch / "job.json").write_text(json.dumps(job), encoding="utf-8")
    subprocess.run(
        [node(), str(ROOT / "scripts/runner_compile.mjs"), str(ROOT / PYODIDE), str(scratch / "job.json")],
        check=True,
    )
    _assemble(out, licences)
    BUNDLE.parent.mkdir(exist_ok=True)
    shutil.rmtree(BUNDLE, ignore_errors=True)
    shutil.move(out, BUNDLE)


def _assemble(out: Path, licences: dict[str, str]) -> None:
    """Name the folder of what is downloaded by its content, so that a browser may keep it for ever."""
    files = {name: (ROOT / PYODIDE / name).read_bytes() for name in AS_PUBLISHED}
    lock = json.loads((ROOT / PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
    files["pyodide-lock.json"] = json.dumps({"info": lock["info"], "packages": {}}).encode()
    for name in ("python_stdlib.zip", "packages.zip"):
        files[name] = (out / name).read_bytes()
        (out / name).unlink()
    extensions = json.loads((out / "files.json").read_text(encoding="utf-8"))["extensions"]
    for name in extensions:
        files[os.path.basename(name)] = (out / "extensions" / os.path.basename(name)).read_bytes()
    shutil.rmtree(out / "extensions")
    files = {
        name if name in BY_NAME else f"{name}.bin": data if name in BY_NAME else compressed(data)
        for name, data in files.items()
    }
    digest = hashlib.sha256(b"".join(name.encode() + files[name] for name in sorted(files))).hexdigest()[:12]
    for name, data in files.items() | {n: t.encode() for n, t in licences.items()}.items():
        _place(out / digest, name, data)
    manifest = {
        "fingerprint": fingerprint(),
        "folder": digest,
        "extensions": {name: os.path.basename(name) for name in extensions},
        "files": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in sorted(files.items())
        },
    }
    (out / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def compressed(data: bytes) -> bytes:
    """gzip, the same for the same data. The page decompresses it: not every host compresses what it sends."""
    return bytes(deflate.gzip_compress(data, 12))  # 4 % smaller than zlib's best


def manifest() -> dict:
    """bundle.json: folder, files, extensions; BundleError where there is none."""
    path = BUNDLE / MANIFEST
    if not path.is_file():
        raise BundleError(f"{BUNDLE.relative_to(ROOT)} is not there; run: {COMMAND}")
    return json.loads(path.read_text(encoding="utf-8"))


def total(files: dict[str, dict]) -> int:
    """Bytes of all of them."""
    return sum(sizes["bytes"] for sizes in files.values())


def problems() -> list[str]:
    """What is wrong with the bundle: nothing, if it is what its sources give and is whole."""
    try:
        made = manifest()
    except BundleError as error:
        return [str(error)]
    found = []
    if made["fingerprint"] != fingerprint():
        found.append(f"{BUNDLE.relative_to(ROOT)} is made of older files; run: {COMMAND}")
    for name, sizes in made["files"].items():
        path = BUNDLE / made["folder"] / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sizes["sha256"]:
            found.append(f"{path.relative_to(ROOT)} is missing or damaged; run: {COMMAND}")
    return found


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail where it is old or damaged"
    )
    parser.add_argument("--sizes", action="store_true", help="print what a reader downloads")
    args = parser.parse_args()
    found = problems()
    if args.check or args.sizes:
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        if args.sizes and (BUNDLE / MANIFEST).is_file():
            rows = manifest()["files"]
            for name, sizes in rows.items():
                print(f"{sizes['bytes']:10,} B  {name}")
            print(f"{total(rows):10,} B  in all")
        return bool(found)
    if not found:
        print(f"{BUNDLE.relative_to(ROOT)} is up to date")
        return 0
    with tempfile.TemporaryDirectory(dir=_scratch()) as scratch:
        try:
            build(Path(scratch))
        except (BundleError, subprocess.CalledProcessError) as error:
            print(f"no bundle for the in-page runner: {error}", file=sys.stderr)
            return 1
    print(f"{BUNDLE.relative_to(ROOT)} made: {total(manifest()['files']):,} B to download")
    return 0


def _scratch() -> Path:
    folder = ROOT / ".artifacts"
    folder.mkdir(exist_ok=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
