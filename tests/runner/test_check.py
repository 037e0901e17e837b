"""The drill's check in the page: every solution, skeleton and mutant, and what is no kernel at all.

One child a lesson has the page's modules and checks one source after the other, as a page does. What it says
is held to what scripts/drill.py says: the same words, the same mistakes.
"""

import json
import re
import sys
from functools import cache

import pytest

from scripts import drill_levels, mutant_files, skeletons
from scripts.marks import PageError
from scripts.mutant_files import LESSONS, PARTS
from tests.drills.test_checks import NOTHING, READERS, REASONS, edited
from tests.helpers.marks import interpreter_only
from tests.runner.helpers import in_page

pytestmark = interpreter_only

PROGRAM = """
import json
from pathlib import Path
from scripts.runner.check import check
result = {}
for name, job in json.loads(Path(sys.argv[2]).read_text()).items():
    steps, printed = [], []
    result[name] = check(*job, on_step=steps.append, on_stdout=printed.append)
    result[name] |= {"steps": steps, "stdout": "".join(printed)}
result["modules"] = sorted(sys.modules)
"""
DRILLS = LESSONS + PARTS
MUTANTS = [one for lesson in DRILLS for one in mutant_files.all_ids(lesson)]
LEVELS = [(lesson, level) for lesson in DRILLS for level in skeletons.levels(lesson)]
# A wrong address ends the drill's process, and here it is told; the compiler's words come from its front end.
OTHER_WORDS = {
    "l2_paged_decode/int32_page_offset": "load of k_ptr [131073, 16, 8, 128] by program (1, 0, 0)",
    "l1_paged_cache/int32_slot": "store of k_cache_ptr [131073, 16, 8, 128] by program (0, 0, 0)",
    "l2_paged_decode/tile_of_8_tokens": "Input shapes should have M >= 1, N >= 1 and K >= 16",
    "l2_paged_decode/tf32": "computes in TF32",
}
OURS = ("level", "stages", "warnings", "line", "read_again", "text", "ms", "steps", "stdout")


def checked(jobs: dict[str, tuple], folder) -> dict[str, dict]:
    """The reports of these (lesson, level, source, language), by one child, one after the other."""
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs), encoding="utf-8")
    return in_page(PROGRAM, arguments=(str(file),), timeout=900)


def mutant_text(one: mutant_files.Mutant) -> str:
    return one.apply((mutant_files.ROOT / one.file).read_text(encoding="utf-8"))


def level_of(one: mutant_files.Mutant) -> str:
    """The first level whose file the mutant edits."""
    levels = drill_levels.levels(one.lesson)
    return next(level for level in levels if drill_levels.file_of(one.lesson, level) == one.file)


def jobs_of(lesson: str) -> dict[str, tuple]:
    """Mutants first: if one left anything behind, what comes after would not pass."""
    jobs = {}
    for one in map(mutant_files.load, mutant_files.all_ids(lesson)):
        jobs[one.id] = (lesson, level_of(one), mutant_text(one), "en")
    for level in skeletons.levels(lesson):
        jobs[f"{level} skeleton"] = (lesson, level, skeletons.load(lesson, level).text(), "en")
        jobs[f"{level} answer"] = (lesson, level, skeletons.load(lesson, level).answer(), "zh")
    if lesson in LESSONS:  # where all levels are of one file, they have one answer
        assert len({jobs[f"{level} answer"][2] for level in skeletons.levels(lesson)}) == 1
        jobs = {k: v for k, v in jobs.items() if not k.endswith(" answer") or k == "launcher answer"}
    return jobs


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The reports of a lesson, from its own child when one is first wanted."""

    @cache
    def of(lesson: str) -> dict[str, dict]:
        return checked(jobs_of(lesson), tmp_path_factory.mktemp(lesson))

    return of


@pytest.mark.parametrize("mutant_id", MUTANTS)
def test_a_mutant_is_named_as_the_drill_names_it(mutant_id, reports):
    report = reports(mutant_id.partition("/")[0])[mutant_id]
    json.dumps(report, allow_nan=False)  # as the worker sends it
    wanted = mutant_files.recorded()[mutant_id]
    assert report["mistakes"] == wanted["mistakes"] == [mutant_id]
    assert f"known mistake {mutant_id}" in report["text"]
    one = mutant_files.load(mutant_id)
    where = {"mistake": mutant_id, "name": one.name, "lesson": one.lesson, "section": one.section}
    assert report["read_again"] == [where]
    same = {key: report[key] for key in report if key not in OURS}
    if mutant_id not in OTHER_WORDS:
        order = dict.fromkeys(wanted)
        assert set(same) == set(wanted) and mutant_files.is_same({k: same[k] for k in order}, wanted)
        return
    assert OTHER_WORDS[mutant_id] in report["message"]
    by = "warnings" if wanted["check"] == "compile" else wanted["check"]
    assert report["check"] == by


@pytest.mark.parametrize(("lesson", "level"), LEVELS)
def test_a_skeleton_gets_the_drill_s_message(lesson, level, reports):
    report = reports(lesson)[f"{level} skeleton"]
    kind, message = REASONS.get((lesson, level), ("cases", ""))
    assert (report["ok"], report["check"], report["mistakes"]) == (False, kind, [])
    assert message in report["message"] and "none of the known mistakes fits" in report["text"]


@pytest.mark.parametrize(("lesson", "level"), LEVELS)
def test_the_answer_passes_and_what_was_not_checked_is_said(lesson, level, reports):
    whole = lesson in LESSONS
    report = reports(lesson)["launcher answer" if whole else f"{level} answer"]
    assert (report["ok"], report["warnings"], report["stdout"]) == (True, [], "")
    ran = {stage["stage"]: stage["ran"] for stage in report["stages"]}
    compiler = {"warnings": True, "compile": False} if whole else {"warnings": False}
    assert ran == {"problems": True, "tests": False} | compiler
    first, *_, here, not_here, both = report["text"].splitlines()
    assert "全部检查通过" in first and "小用例" in here and "本课的测试文件" in not_here
    assert ("为 sm_90 编译" in not_here) == whole and f"scripts/drill.py check {lesson}" in both


@pytest.mark.parametrize("lesson", DRILLS)
def test_progress_is_told_case_by_case(lesson, reports):
    found = reports(lesson)
    answer = next(name for name in found if name.endswith(" answer"))
    steps = found[answer]["steps"]
    assert [step["done"] for step in steps] == list(range(len(steps)))
    assert {step["total"] for step in steps} == {len(steps)} and len(steps) > 2
    assert all(step["check"] in mutant_files.CHECKS and step["case"] for step in steps)


def test_nothing_is_imported_that_a_page_does_not_have(reports):
    modules = set(reports("l0_shapes")["modules"])
    assert not modules & {"pytest", "hypothesis", "pygments", "numpy.random"}
    assert {"scripts.part_checks", "scripts.mutant_checks", "tests.helpers.l1_cache"} <= modules


# What ends a process or asks for 16 GiB: in the page that is the worker's, which starts anew.
ENDS = ("os._exit", "os.abort", "2**34")
TEXTS = {text: said for text, said in READERS.items() if not any(end in text for end in ENDS)} | {
    "def paged_decode(*args, **kwargs): raise SystemExit": ("died", "raised SystemExit (line 1 of l2_paged"),
    "x = 1\n\ndef paged_decode(:\n": ("import", "SyntaxError: invalid syntax (l2_paged_decode.py, line 3)"),
    "def paged_decode(q, k): return q": ("values", "raised TypeError: paged_decode() got an unexpected"),
    "import torch\ndef paged_decode(*args, **kwargs): return torch.fft.fft(args[0])": ("values", "torch.fft"),
    # Right on every problem, and not for the call that is compiled at last.
    "from kernels import paged_decode as right\n"
    "def paged_decode(q, *args, **kwargs):\n"
    "    return right(q, *args, **kwargs) if q.shape[1:] != (4, 16) else 1 / 0\n": (
        "died",
        "raised ZeroDivisionError: division by zero (line 3 of l2_paged_decode.py)",
    ),
}


@pytest.fixture(scope="module")
def no_kernels(tmp_path_factory):
    jobs = {text: ("l2_paged_decode", "loop", text, "en") for text in TEXTS}
    return checked(jobs, tmp_path_factory.mktemp("no_kernels"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:40])
def test_a_file_that_is_no_kernel_gets_the_drill_s_words(text, no_kernels):
    report = no_kernels[text]
    kind, message = TEXTS[text]
    assert (report["ok"], report["check"], report["mistakes"]) == (False, kind, [])
    assert message in report["message"] and report["message"].splitlines()[0] in report["text"]
    line = re.search(r"line (\d+)", report["message"])
    assert report["line"] == (int(line[1]) if line else None)


def test_what_is_printed_in_the_case_that_fails_is_shown(tmp_path):
    call = "    _online_softmax_kernel[(1,)]("
    edits = ((call, "    print('scores', len(scores))\n" + call), ("tl.where(l_i > 0, l_i, 1.0)", "l_i"))
    jobs = {"": ("online_softmax", "loop", edited("online_softmax", *edits), "en")}
    report = checked(jobs, tmp_path)[""]
    assert "scores [5]" in report["case"] and report["printed"] == ["scores 5"]
    assert report["stdout"].startswith("scores 4\nscores 4\nscores 5\n")


def test_a_kernel_that_runs_and_does_not_compile(tmp_path):
    """Plain Python in a kernel: the interpreter takes it, the compiler's front end does not."""
    text = edited("online_softmax", ("    m_i = -float(", "    sizes = {1: 2}\n    m_i = -float("))
    report = checked({"": ("online_softmax", "loop", text, "zh")}, tmp_path)[""]
    assert (report["ok"], report["check"], report["mistakes"]) == (False, "warnings", [])
    line = text.splitlines().index("    sizes = {1: 2}") + 1
    assert report["warnings"][0]["line"] == line and f"第 {line} 行：" in report["text"]
    assert report["text"].count("GPU 的编译器") == 1 and report["line"] == line


def test_the_page_s_check_is_the_same_where_torch_is_torch(monkeypatch):
    """In this process, on real tensors: solutions, skeletons, mutants; and no wrong address ends it."""
    from scripts.runner.check import check

    # A test before this one may have imported what only a reader's file could import in the page.
    monkeypatch.delitem(sys.modules, "kernels.ops", raising=False)
    jobs = {**jobs_of("online_softmax"), **jobs_of("l0_shapes")}
    for mutant_id in ("l2_paged_decode/int32_page_offset", "l1_paged_cache/int32_slot"):
        one = mutant_files.load(mutant_id)
        jobs[mutant_id] = (one.lesson, level_of(one), mutant_text(one), "en")
    for name, job in jobs.items():
        report = check(*job)
        assert report["ok"] == name.endswith("answer"), (name, report)
        assert report.get("mistakes", []) == [name] * ("/" in name), (name, report)
        if name == "launcher skeleton":
            assert NOTHING in report["message"]


def test_a_level_that_is_not_there_is_named():
    from scripts.runner.check import check

    with pytest.raises(PageError, match="no level 'heads'; wanted one of: loop, kernel, launcher"):
        check("online_softmax", "heads", "")
    with pytest.raises(PageError, match="no drill 'l9'"):
        check("l9", "loop", "")
