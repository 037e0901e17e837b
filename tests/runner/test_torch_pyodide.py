"""The page's torch where it runs: in Pyodide, 32 bits and numpy for WebAssembly, under node."""

import json
import shutil
import subprocess
import tarfile

import pytest

from tests.runner.helpers import ROOT
from tests.runner.test_torch_parity import PROGRAMS, draws
from tests.runner.torch_parity import BIT_IDENTICAL, difference, real

NUMPY = sorted((ROOT / "node_modules/@emscripten-forge/numpy").glob("pkg/*.tar.gz"))
MAIN = """
import json
from tests.runner import torch_run
assert "/repository/" in torch_run.torch.__file__ and torch_run.torch.__doc__.startswith("NOT PyTorch")
with open("/scratch/programs.json") as asked:
    found = [torch_run.run(program) for program in json.load(asked)]
with open("/scratch/found.json", "w") as out:
    json.dump(found, out)
"""
FILES = ("conversions", "limits", "idioms", "indexing", "products", "random", "reductions", "writes")


@pytest.mark.skipif(
    not (NUMPY and shutil.which("node") and (ROOT / "node_modules/pyodide").is_dir()),
    reason="needs node, and pyodide with numpy: npm ci --omit=dev",
)
def test_the_same_in_webassembly(tmp_path):
    drawn = draws()[::3]
    texts = [(PROGRAMS / f"{name}.txt").read_text(encoding="utf-8") for name in FILES]
    programs = [*(line for text in texts for line in text.splitlines()), *drawn]
    with tarfile.open(NUMPY[-1]) as archive:
        archive.extractall(tmp_path / "numpy", filter="data")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "main.py").write_text(MAIN, encoding="utf-8")
    (scratch / "programs.json").write_text(json.dumps(programs), encoding="utf-8")
    packages = next((tmp_path / "numpy").rglob("numpy/__init__.py")).parents[1]
    run = subprocess.run(
        ["node", "tests/runner/pyodide.mjs", str(packages), str(scratch)],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    found = json.loads((scratch / "found.json").read_text(encoding="utf-8"))
    bad = []
    for program, wanted, got in zip(programs, real(programs), found, strict=True):
        # Drawn numbers are the same; float64 ones have log and cos of another C library.
        exact = program in drawn and BIT_IDENTICAL and "float64" not in program
        if what := difference(wanted, got, exact):
            bad.append(f"{program}\n    {what}")
    assert not bad, f"{len(bad)} of {len(found)} programs differ:\n" + "\n".join(bad)
