"""The files that the bundle lists are all that a check needs: here they are alone in a folder."""

import json
import os
import shutil
import subprocess
import sys

from scripts import mutant_files, skeletons
from scripts.mutant_files import ROOT
from scripts.runner_files import project_files
from tests.helpers.marks import interpreter_only
from tests.runner.helpers import page_environment, staged

PROGRAM = """
import json, sys
from scripts.runner import boot
boot.boot()
from scripts.runner.check import check
print(json.dumps([check(*job) for job in json.load(open(sys.argv[1]))]))
"""
# One of each way to be named: by a wrong reference, by what its mutant gives, past 2**31, by the compiler.
MUTANTS = {
    "online_softmax/masked_score_zero": "loop",
    "l0_shapes/heads_transposed": "heads",
    "l1_paged_cache/int32_slot": "kernel",
    "l2_paged_decode/tile_of_8_tokens": "loop",
}


@interpreter_only
def test_a_check_runs_from_the_bundle_s_files_alone(tmp_path):
    for path in project_files():
        target = tmp_path / "page" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    jobs = [
        (lesson, skeletons.levels(lesson)[0], skeletons.load(lesson, skeletons.levels(lesson)[0]).answer())
        for lesson in ("online_softmax", "l0_shapes", "l1_paged_cache")
    ]
    for mutant_id, level in MUTANTS.items():
        one = mutant_files.load(mutant_id)
        jobs.append((one.lesson, level, one.apply((ROOT / one.file).read_text(encoding="utf-8"))))
    (tmp_path / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    paths = f"{tmp_path / 'page'}{os.pathsep}{staged()}"
    run = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, str(tmp_path / "jobs.json")], cwd=tmp_path,
        env=page_environment() | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    reports = json.loads(run.stdout)
    assert [report["ok"] for report in reports] == [True] * 3 + [False] * len(MUTANTS)
    assert [report["mistakes"] for report in reports[3:]] == [[mutant_id] for mutant_id in MUTANTS]
