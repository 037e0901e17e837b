"""The bundle of the in-page runner: whole, made of what is pinned, small enough, with its licences."""

import _imp
import ast
import gzip
import hashlib
import importlib.util
import io
import json
import shutil
import struct
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from scripts import runner_bundle, runner_files, runner_site

ROOT = Path(__file__).resolve().parents[2]
PYTHON_3_11 = 3495  # the magic number of its byte code
EDITOR = ROOT / "docs/assets/vendor/codemirror/codemirror.mjs"


@pytest.fixture(scope="module")
def made() -> dict:
    return runner_bundle.manifest()


@pytest.fixture(scope="module")
def packages(made: dict) -> zipfile.ZipFile:
    data = (runner_bundle.BUNDLE / made["folder"] / "packages.zip.bin").read_bytes()
    return zipfile.ZipFile(io.BytesIO(gzip.decompress(data)))


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the bundle, which may be spoilt."""
    folder = tmp_path / "runner"
    shutil.copytree(runner_bundle.BUNDLE, folder)
    monkeypatch.setattr(runner_bundle, "BUNDLE", folder)
    monkeypatch.setattr(runner_bundle, "ROOT", tmp_path)
    monkeypatch.setattr(runner_bundle, "fingerprint", lambda: runner_bundle.manifest()["fingerprint"])
    return folder


def test_it_is_what_its_sources_give() -> None:
    assert runner_bundle.problems() == []


@pytest.mark.parametrize("spoil", ["damage", "remove"])
def test_a_file_that_is_not_whole_is_named(copy: Path, made: dict, spoil: str) -> None:
    assert runner_bundle.problems() == []
    file = copy / made["folder"] / "packages.zip.bin"
    if spoil == "damage":
        file.write_bytes(file.read_bytes()[:-1])
    else:
        file.unlink()
    assert runner_bundle.problems() == [
        f"runner/{made['folder']}/packages.zip.bin is missing or damaged; run: make runner"
    ]


def test_older_sources_are_said(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_bundle, "fingerprint", lambda: "another")
    assert runner_bundle.problems() == ["runner is made of older files; run: make runner"]


def test_no_bundle_is_said(copy: Path) -> None:
    shutil.rmtree(copy)
    assert runner_bundle.problems() == ["runner is not there; run: make runner"]


def test_packages_that_are_not_installed_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_bundle, "ROOT", tmp_path)
    with pytest.raises(runner_bundle.BundleError, match="run: npm ci --omit=dev"):
        runner_bundle.numpy_files(tmp_path)


def test_the_notice_names_the_pinned_versions() -> None:
    notice = (runner_bundle.LICENCES / "NOTICE.txt").read_text(encoding="utf-8")
    pins = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert f"Pyodide {pins['pyodide']}:" in notice
    assert f"NumPy {pins['@emscripten-forge/numpy'].partition('-')[0]}," in notice
    assert f"Triton {runner_bundle.pinned_triton()}:" in notice


def test_licences_go_along(made: dict) -> None:
    texts = {
        path.name: path.read_text("utf-8") for path in (runner_bundle.BUNDLE / made["folder"]).glob("*.txt")
    }
    assert "Mozilla Public License Version 2.0" in texts["MPL-2.0.txt"]
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in texts["PSF-2.0.txt"]
    assert "NumPy Developers" in texts["numpy-LICENSE.txt"]
    assert "Philippe Tillet" in texts["triton-LICENSE.txt"]
    assert set(texts) == {
        "NOTICE.txt",
        "MPL-2.0.txt",
        "PSF-2.0.txt",
        "numpy-LICENSE.txt",
        "triton-LICENSE.txt",
    }


def test_triton_is_the_published_one(packages: zipfile.ZipFile) -> None:
    """All modules as byte code; sources, byte for byte, where the interpreter reads those of functions."""
    triton = Path(importlib.util.find_spec("triton").origin).parent.parent
    names = [name for name in packages.namelist() if name.startswith("triton/") and name.endswith(".py")]
    assert {"triton/__init__.py", "triton/language/standard.py", "triton/language/random.py"} <= set(names)
    assert len([name for name in packages.namelist() if name.startswith("triton/")]) > 30 + len(names)
    for name in names:
        assert packages.read(name) == (triton / name).read_bytes(), name
        assert f"{name}c" in packages.namelist()


def test_the_byte_code_is_the_pages_own(packages: zipfile.ZipFile) -> None:
    for name in packages.namelist():
        if name.endswith(".pyc"):
            assert struct.unpack("<H", packages.read(name)[:2]) == (PYTHON_3_11,), name


def test_numpy_comes_without_what_nothing_here_uses(packages: zipfile.ZipFile) -> None:
    folders = {name.split("/")[1] for name in packages.namelist() if name.startswith("numpy/")}
    assert not folders & {"random", "fft", "f2py", "tests", "distutils", "polynomial"}
    assert "numpy/linalg/__init__.pyc" in packages.namelist()  # the stand-in


def test_nothing_of_it_is_committed(made: dict, packages: zipfile.ZipFile) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {
        hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        for name in tracked.stdout.split("\0")
        if name and (ROOT / name).is_file() and (ROOT / name).stat().st_size > 200
    }
    theirs = {hashlib.sha256(packages.read(name)).hexdigest() for name in packages.namelist()
              if packages.getinfo(name).file_size > 200 and not name.endswith(".txt")}  # fmt: skip
    theirs |= {file["sha256"] for file in made["files"].values()}
    theirs |= {hashlib.sha256((ROOT / runner_bundle.PYODIDE / name).read_bytes()).hexdigest()
               for name in runner_bundle.AS_PUBLISHED}  # fmt: skip
    assert not ours & theirs


def test_the_download_keeps_to_its_budget(tmp_path: Path) -> None:
    runner_site.place_runner(tmp_path)
    sizes = json.loads((tmp_path / runner_site.RUNNER / "manifest.json").read_text("utf-8"))["sizes"]
    editor = len(gzip.compress(EDITOR.read_bytes()))
    assert sum(sizes.values()) + editor < 6_500_000, sizes | {"editor": editor}


def test_a_site_without_a_bundle_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner_bundle, "BUNDLE", runner_bundle.ROOT / ".artifacts/none")
    runner_site.place_runner(tmp_path)
    assert not (tmp_path / runner_site.RUNNER).exists()
    assert "make it with: make runner" in caplog.text


def test_files_are_the_closure_of_imports() -> None:
    """Every import of ours in a file of the page leads to a file of the page."""
    files = set(runner_files.project_files())
    assert {"kernels/l3_split_kv_decode.py", "scripts/runner/boot.py", "scripts/__init__.py"} <= files
    assert not [file for file in files if file.startswith(("tests/kernels", "tests/drills", "docs"))]
    for file in files:
        if not file.endswith(".py") or file.startswith("snippets/"):
            continue
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) and not node.level else ""
            if module.split(".")[0] in runner_files.OURS:
                path = module.replace(".", "/")
                own = {f"{path}.py", f"{path}/__init__.py"} & files
                assert own or (ROOT / path).is_dir(), f"{file} imports {module}"


def test_the_archive_holds_byte_code_that_fits_its_sources(tmp_path: Path) -> None:
    archive = zipfile.ZipFile(io.BytesIO(runner_files.project_archive(runner_bundle.BUNDLE / "project")))
    compiled = [name for name in archive.namelist() if name.endswith(".pyc")]
    assert len(compiled) > 20
    for name in compiled:
        folder, _, file = name.rpartition("/__pycache__/")
        source = archive.read(f"{folder}/{file.partition('.')[0]}.py")
        code = archive.read(name)
        magic = int.from_bytes(code[:4], "little")  # of the page's Python, which may be another than this one
        assert code[8:16] == _imp.source_hash(magic, source), f"{name} is stale"


def test_the_command_line(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["runner_bundle.py", "--check", "--sizes"])
    assert runner_bundle.main() == 0
    assert "in all" in capsys.readouterr().out


def test_pins_are_exact() -> None:
    pins = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    for name, version in (pins["dependencies"] | pins["devDependencies"]).items():
        assert version[0].isdigit(), f"{name} {version}"
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    assert f"triton=={runner_bundle.pinned_triton()}" in groups["kernels"]
