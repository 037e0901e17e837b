"""The page's modules without a browser: node's own tests in tests/js, and TypeScript over their JSDoc."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TSC = ROOT / "node_modules/typescript/bin/tsc"


def node(*arguments: str | Path) -> subprocess.CompletedProcess:
    """Run node, the machine's own or the one in the venv."""
    path = shutil.which("node") or ROOT / ".venv/bin/node"
    assert Path(path).exists(), "no node: install Node.js 20 or newer"
    return subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", sorted((ROOT / "tests/js").glob("*.test.mjs")), ids=lambda file: file.stem)
def test_modules(file: Path) -> None:
    tests = node("--test", file)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "\n# pass 0\n" not in tests.stdout


def test_types() -> None:
    """`tsc --checkJs --strict` over the modules that tsconfig.json names."""
    assert TSC.is_file(), "no TypeScript; run: npm ci"
    check = node(TSC, "--project", ROOT)
    assert check.returncode == 0, check.stdout
