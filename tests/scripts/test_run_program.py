"""The programs that pages run: what they are made of, and that the real interpreter runs them."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import skeletons
from scripts.listing import PageError
from scripts.run_program import ROOT, case_path, main, program

LEVELS = [(lesson, level) for lesson in skeletons.lessons() for level in skeletons.levels(lesson)]
levels = pytest.mark.parametrize(("lesson", "level"), LEVELS)
# One level of each file, and what its solved program prints; the whole of each line is looked for.
PRINTED = {
    ("l0_shapes", "heads"): [
        "q by head: [[0, 2], [1, 3], [2, 0], [2, 3]]",
        "k and v by KV head: [[0, 2], [2, 1]] [[2, 0], [2, 3]]",
        "query head -> KV head: [0, 0, 1, 1]",
        "q at 5, k at 2: -0.236",
        "q at 1005, k at 1002: -0.236",
    ],
    ("l0_shapes", "latent"): [
        "q [9, 4, 11] stored {'latent': [9, 1, 13]}",
        "the same, up to rounding: True",
    ],
    ("l0_shapes", "decode"): [
        "GQA: logits [40], pages [0, 1, 2]",
        "  4 tokens, the same up to rounding: True",
    ],
    ("l1_paged_cache", "table"): [
        "C, a fork of A: [2, 5, 7] free: 3",
        "a token for C: slot 4 after PageCopy(source=7, target=0, num_slots=4)",
        "C: [2, 5, 0] free: 2",
        "A still has 68 tokens",
    ],
    ("l1_paged_cache", "cache"): [
        "a holds [7, 2, 8]: 10 11 12 13 14 15 16",
        "b holds [7, 2, 8]: 10 11 12 13 14 15 26",
    ],
    ("l1_paged_cache", "kernel"): [
        "token 0: page 2, slot 1: True",
        "token 1: not stored",
        "slots written: [[0, 3], [2, 1]]",
    ],
    ("l2_paged_decode", "loop"): ["o [2, 8, 64], lse [2, 8]"],
    ("l3_split_kv_decode", "loop"): ["o [2, 8, 64], lse [2, 8]"],
    ("online_softmax", "loop"): [
        "float64 reference: o = 26.2089, lse = 3.4402",
        "blocks of 2: o = 26.2089, lse = 3.4402",
        "every score -inf: o = 0.0, lse = -inf",
        "scores + 10000: o = 26.2089, lse = 10003.44",
    ],
}
CHILD = """
import contextlib, io, json, runpy, sys
said = {}
for name in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(name, run_name="__main__")
        except Exception as error:
            print(f"raised {type(error).__name__}: {error}")
    said[name] = out.getvalue()
print(json.dumps(said))
"""


def solved(lesson: str, level: str) -> str:
    """The program of a level as its solution has it."""
    skeleton = skeletons.load(lesson, level)
    text = program(lesson, level)
    assert text.startswith(skeleton.text())
    return skeleton.answer() + text.removeprefix(skeleton.text())


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, bool], str]:
    """What each program prints: (lesson, level, whether it is solved) -> text."""
    folder, names = tmp_path_factory.mktemp("programs"), {}
    for lesson, level in LEVELS:
        for done, text in ((False, program(lesson, level)), (True, solved(lesson, level))):
            if not done or (lesson, level) in PRINTED:
                names[lesson, level, done] = folder / f"{lesson}_{level}_{done}.py"
                names[lesson, level, done].write_text(text, encoding="utf-8")
    child = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=ROOT, env={**os.environ, "TRITON_INTERPRET": "1"},
        input=json.dumps([str(path) for path in names.values()]), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    said = json.loads(child.stdout)
    return {key: said[str(path)] for key, path in names.items()}


@pytest.mark.parametrize(("lesson", "level"), PRINTED)
def test_the_solution_prints_what_it_should(lesson: str, level: str, printed: dict) -> None:
    rows = printed[lesson, level, True].splitlines()
    assert not [row for row in PRINTED[lesson, level] if row not in rows], rows
    errors = [float(row.rpartition(" ")[2]) for row in rows if row.startswith("largest ")]
    assert max(errors, default=0) < 1e-6


@pytest.mark.parametrize("lesson", ["l2_paged_decode", "l3_split_kv_decode"])
def test_the_decode_lessons_say_how_far_they_are_from_the_reference(lesson: str, printed: dict) -> None:
    rows = printed[lesson, "loop", True].splitlines()
    assert sum(row.startswith("largest error of ") for row in rows) == 2
    lse = [[float(x) for x in row.rpartition(": ")[2].split()] for row in rows if row.startswith("sequence ")]
    assert [len(row) for row in lse] == [8, 8] and all(4 < x < 6 for row in lse for x in row)


@levels
def test_a_skeleton_is_not_done(lesson: str, level: str, printed: dict) -> None:
    """It runs to an error or to other results: the case notices that something is left to write."""
    first = next(one for one in PRINTED if one[0] == lesson and case_path(*one) == case_path(lesson, level))
    assert printed[lesson, level, False] != printed[(*first, True)]


@levels
def test_the_case_does_not_run_when_a_check_imports_the_program(lesson: str, level: str) -> None:
    *_, last = ast.parse(program(lesson, level)).body
    assert isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'"
    assert not [
        node for node in last.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]


@pytest.mark.parametrize("lesson", skeletons.lessons())
def test_the_solution_stands_above_the_same_case(lesson: str) -> None:
    first = skeletons.levels(lesson)[0]
    assert program(lesson) == solved(lesson, first)
    assert program(lesson).startswith(skeletons.load(lesson, first).answer())


@levels
def test_what_the_case_takes_from_the_lesson_s_file_is_in_the_program(lesson: str, level: str) -> None:
    """The case alone imports it; the program must not, or a run would show the solution's results."""
    module = skeletons.load(lesson, level).source.path.removesuffix(".py").replace("/", ".")
    case = ast.parse((ROOT / case_path(lesson, level)).read_text(encoding="utf-8"))
    taken = [node for node in case.body if isinstance(node, ast.ImportFrom) and node.module == module]
    assert taken, f"{case_path(lesson, level)} runs nothing of {module}"
    tree = ast.parse(program(lesson, level))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert module not in imported
    above = {name for node in ast.parse(program(lesson)).body for name in _names(node)}
    if level == skeletons.levels(lesson)[0]:
        assert {alias.name for node in taken for alias in node.names} <= above


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.name for alias in node.names]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def test_every_case_belongs_to_a_program() -> None:
    cases = {path.relative_to(ROOT).as_posix() for path in (ROOT / "snippets/runs").glob("*.py")}
    assert cases == {case_path(*one) for one in LEVELS}


def test_a_case_runs_by_itself() -> None:
    """As the page says it to a reader without JavaScript."""
    run = subprocess.run(
        [sys.executable, "-m", "snippets.runs.online_softmax"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"}, check=False,
    )  # fmt: skip
    assert "blocks of 2: o = 26.2089, lse = 3.4402" in run.stdout, run.stderr


def test_the_command_prints_it(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["run_program.py", "l2_paged_decode/loop"])
    assert main() == 0
    assert capsys.readouterr().out == program("l2_paged_decode", "loop")
    monkeypatch.setattr(sys, "argv", ["run_program.py", "l2_paged_decode/all"])
    assert main() == 2
    assert "no level 'all'" in capsys.readouterr().err


def test_a_missing_case_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.run_program.ROOT", tmp_path)
    with pytest.raises(
        PageError, match=r"no snippets/runs/l2_paged_decode.py: the case that a page runs with"
    ):
        case_path("l2_paged_decode")
