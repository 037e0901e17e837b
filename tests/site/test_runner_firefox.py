"""The in-page runner in Firefox: run, an endless loop, Stop."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.browsers import node

ROOT = Path(__file__).resolve().parents[2]
LESSON = "lessons/l2_paged_decode/"


def test_run_and_stop_in_firefox(address: str) -> None:
    firefox = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    if not firefox:
        pytest.skip("no Firefox here; install one, or set FIREFOX to its path")
    run = subprocess.run(
        [node(), "tests/js/firefox.mjs", firefox, address + LESSON],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    assert "firefox" in seen["version"].lower()
    assert not seen["first"]["error"]
    assert "o [2, 8, 64], lse [2, 8]" in seen["first"]["printed"]
    assert "链接" in seen["shown"]["notice"] and "while True:" in seen["shown"]["code"]
    assert seen["running"] == "true"
    assert "停止" in seen["stopped"]
    assert seen["problems"] == []
