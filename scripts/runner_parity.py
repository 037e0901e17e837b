"""Does the page's runner compute what Triton's interpreter and PyTorch compute? The table of it.

    python scripts/runner_parity.py            write snippets/generated/runner_parity.json
    python scripts/runner_parity.py --check    fail where it is not what would be written

Three groups of rows: a suite of tl's operations (tests/runner/features), the programs of the lessons' pages
(snippets/runs), the small cases of the drills. Each runs under real PyTorch and Triton on CPython, and with
the page's stand-ins in Pyodide, under node: the WebAssembly that runs in a browser. A row has group, file,
feature, status, max_diff, message; what is not supported also has `texts`, the message in both languages.

    identical    every tensor is the same, bit for bit, and so is what is printed
    close        the largest difference is at most max_diff: the last bits of exp, log, sin and of sums, which
                 another C library works out, or another order of adding
    unsupported  the page says so by name, or does more than the interpreter: the message
    differs      anything else, which fails here

Those bits depend on the CPU that PyTorch and numpy run on, so --check lets a row be identical on one machine
and close on another. With the same numpy on both sides, on CPython, every feature is identical: a test
says so.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from scripts.browsers import node
from scripts.generated import ROOT, write_or_check
from scripts.runner import features
from tests.runner.helpers import in_page, staged

TABLE = ROOT / "snippets/generated/runner_parity.json"
FEATURES = ROOT / "tests/runner/features"
BOUNDS = (1e-12, 1e-6)  # of what is close
MORE = {
    "en": "The interpreter does not run it; the page does, with the first configuration. There: ",
    "zh": "解释器不运行它；本页会运行，取第一个配置。解释器报错：",
}
LAST_BITS = "the last bits: another C library, another order of adding"
ON_CPYTHON = """
import json
from pathlib import Path
from scripts.runner import features
result = features.run_jobs(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
"""
IN_PYODIDE = """
import json, os, sys
sys.path.append("/scratch/site")
os.chdir("/repository")
from scripts.runner import boot
boot.boot()
from scripts.runner import features
with open("/scratch/jobs.json") as given:
    found = features.run_jobs(json.load(given))
with open("/scratch/found.json", "w") as out:
    json.dump(found, out)
"""
NUMPY = ROOT / "node_modules/@emscripten-forge/numpy/pkg"


def jobs() -> list[dict]:
    """What is run, in the order of the table."""

    def files(folder: Path, group: str) -> list[dict]:
        paths = sorted(folder.glob("[a-z]*.py"))
        return [{"group": group, "file": p.name, "source": p.read_text(encoding="utf-8")} for p in paths]

    lessons = [*features.PARTS, *features.CASES]
    cases = [{"group": "case", "file": lesson, "source": ""} for lesson in lessons]
    return files(FEATURES, "feature") + files(ROOT / "snippets/runs", "program") + cases


def run_on_cpython(todo: list[dict]) -> list[dict]:
    """The jobs in a child that has the page's modules, and this machine's numpy."""
    with tempfile.TemporaryDirectory() as name:
        given = Path(name) / "jobs.json"
        given.write_text(json.dumps(todo), encoding="utf-8")
        return in_page(ON_CPYTHON, arguments=(str(given),), timeout=600)


def run_in_pyodide(todo: list[dict]) -> list[dict]:
    """The jobs in WebAssembly. Raises RuntimeError where it is not installed or does not run."""
    archives = list(NUMPY.glob("*.tar.gz"))
    if not archives:
        raise RuntimeError(f"no {NUMPY.relative_to(ROOT)}; run: npm ci --omit=dev")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        with tarfile.open(archives[0]) as archive:
            archive.extractall(scratch / "numpy", filter="data")
        shutil.copytree(staged() / "triton", scratch / "site/triton")
        (scratch / "main.py").write_text(IN_PYODIDE, encoding="utf-8")
        (scratch / "jobs.json").write_text(json.dumps(todo), encoding="utf-8")
        numpy = next((scratch / "numpy").rglob("numpy/__init__.py")).parents[1]
        command = [node(), "tests/runner/pyodide.mjs", str(numpy), str(scratch)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        if run.returncode:
            raise RuntimeError(f"Pyodide ended with {run.returncode}:\n{run.stderr[-3000:]}")
        return json.loads((scratch / "found.json").read_text(encoding="utf-8"))


def compare(real: dict, page: dict) -> dict:
    """Status, largest difference and message of one feature."""
    if "error" in page:
        named = page["error"].startswith("Unsupported: ")
        same = page["error"] == real.get("error")
        status = "identical" if same else "unsupported" if named else "differs"
        message = page["error"].removeprefix("Unsupported: ")
        texts = {"texts": page["texts"]} if named else {}
        return {"status": status, "max_diff": None, "message": message} | texts
    if "error" in real:
        texts = {lang: more + real["error"] for lang, more in MORE.items()}
        return {"status": "unsupported", "max_diff": None, "message": texts["en"], "texts": texts}
    pairs = zip(real["tensors"], page["tensors"], strict=True)
    largest = max((difference(*pair) for pair in pairs), default=0.0)
    if largest > BOUNDS[-1]:
        return {"status": "differs", "max_diff": largest, "message": "the tensors differ"}
    if largest > 0.0:
        return {"status": "close", "max_diff": min(b for b in BOUNDS if largest <= b), "message": LAST_BITS}
    if real["stdout"] != page["stdout"]:
        return {"status": "differs", "max_diff": 0.0, "message": "what is printed differs"}
    return {"status": "identical", "max_diff": 0.0, "message": ""}


def difference(real: dict, page: dict) -> float:
    """The largest difference of two tensors, relative to the largest element where that is above 1."""
    if real == page or page.get("unwritten"):  # real memory holds anything there
        return 0.0
    if "hex" not in real or [real[k] for k in ("dtype", "shape")] != [page[k] for k in ("dtype", "shape")]:
        return float("inf")
    x, y = (np.frombuffer(bytes.fromhex(t["hex"]), t["dtype"]).astype(np.float64) for t in (real, page))
    apart = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    if not np.isfinite(x[apart] - y[apart]).all():
        return float("inf")
    scale = max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0.0)))
    # Two zeros of different signs, or NaNs of different bits, are not identical.
    return max(float(np.abs(x[apart] - y[apart]).max(initial=0.0)) / scale, np.finfo(np.float64).tiny)


def rows(run: Callable[[list[dict]], list[dict]] = run_in_pyodide) -> list[dict]:
    """The table; run: where the page's side of it is computed."""
    todo = jobs()
    found = []
    for job, page in zip(todo, run(todo), strict=True):
        real = features.run_job(job)
        for name, result in real.items():
            where = {"group": job["group"], "file": job["file"].removesuffix(".py"), "feature": name}
            found.append(where | compare(result, page[name]))
    return found


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table is old")
    check = parser.parse_args().check
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, by the first job
    table = rows()
    wrong = [row for row in table if row["status"] == "differs"]
    for row in wrong:
        print(f"{row['file']}: {row['feature']}: {row['max_diff']} {row['message']}", file=sys.stderr)
    if check and TABLE.is_file():
        table = [_as_on_another_cpu(row, old) for row, old in _with_old(table)]
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in table)
    status = write_or_check({TABLE: f"[\n{lines}\n]\n"}, [], check, "python scripts/runner_parity.py")
    return status or int(bool(wrong))


def _with_old(table: list[dict]) -> list[tuple[dict, dict | None]]:
    """Each row, and the one of that name in the table that is there."""
    there = {_name(row): row for row in json.loads(TABLE.read_text(encoding="utf-8"))}
    return [(row, there.get(_name(row))) for row in table]


def _name(row: dict) -> tuple[str, str, str]:
    return row["group"], row["file"], row["feature"]


def _as_on_another_cpu(row: dict, old: dict | None) -> dict:
    """The old row, if the last bits alone may have made another of it."""
    both = {"identical", "close"}
    return old if old and {row["status"], old["status"]} <= both else row


if __name__ == "__main__":
    sys.exit(main())
