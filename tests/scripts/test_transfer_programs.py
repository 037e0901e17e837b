"""The programs of snippets/transfer: they build where their compiler is, and agree on the slots."""

import shutil
import subprocess
import sys

import pytest

from scripts import transfer_programs
from scripts.generated import ROOT
from scripts.transfer_programs import SOURCES, MissingToolError, ProgramError, build, compiler, run
from tests.helpers.marks import gpu_only
from tests.helpers.mode import ON_GPU

# Tokens 36, 16 and 17 of sequences with pages [9, 3, 7], [5, 21] and [0, 1], then one more of each.
SLOTS = [[7 * 16 + 4, 21 * 16, 16 + 1], [7 * 16 + 5, 21 * 16 + 1, 16 + 2]]


def needs(name: str):
    """Skip, with the reason, where the compiler of a program is not installed."""
    try:
        compiler(name)
    except MissingToolError as error:
        return pytest.mark.skip(reason=str(error))
    return lambda test: test


@needs("openmp")
def test_openmp_finds_the_slots():
    printed = run("openmp")
    assert printed["slots"] == SLOTS and printed["devices"] >= 0


def test_torch_finds_the_slots():
    assert run("torch")["slots"] == SLOTS


@needs("cuda")
def test_cuda_compiles_without_a_gpu(tmp_path):
    assert build("cuda", tmp_path, arch="sm_90").is_file()


@gpu_only
@needs("cuda")
def test_cuda_measures_both_memories_and_checks_every_slot():
    """The program compares all slots of all steps itself, and fails where one is wrong."""
    rows = run("cuda", "3")["rows"]
    assert {row["way"] for row in rows} == {"cuda_pageable", "cuda_pinned"} and len(rows) == 8
    large = {row["way"]: row["host_busy_us"]["p50"] for row in rows if row["max_pages"] == 8192}
    assert large["cuda_pinned"] < 200 < large["cuda_pageable"]  # 8 MiB are copied aside first


def test_a_missing_compiler_is_named(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(MissingToolError, match=r"^table_to_device\.cu needs nvcc, of the CUDA toolkit"):
        compiler("cuda")
    assert transfer_programs.main(["openmp"]) == 2
    assert "table_to_device_openmp.cpp needs g++ or clang++" in capsys.readouterr().err


def test_a_compiler_that_cannot_link_openmp_is_named(monkeypatch, tmp_path):
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho 'could not run lto-wrapper' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: str(broken))
    with pytest.raises(MissingToolError, match=r"no OpenMP target regions .*: could not run lto-wrapper"):
        compiler("openmp")


def test_a_program_that_fails_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no table')\n")
    monkeypatch.setitem(SOURCES, "torch", broken)
    with pytest.raises(ProgramError, match=r"ended with 1:\nno table"):
        run("torch")


@pytest.mark.skipif(ON_GPU, reason="there is a GPU here")
def test_the_bench_says_that_there_is_no_gpu():
    done = subprocess.run(
        [sys.executable, "scripts/bench_transfer.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "no CUDA GPU here" in done.stdout
