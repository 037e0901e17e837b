"""A reader's test file on the solution, which must pass, and on every mutant of the lesson: which survive?

A library for scripts/drill.py. The test file imports the function from `kernels`, as ours do; in each run
that is a copy with the edits of one mutant. A mutant is killed if a test fails, or if the run crashes or does
not end.
"""

from pathlib import Path

from scripts import mutant_files
from scripts.drill_run import TIME_LIMIT_S, kernels_copy, run_module
from scripts.drill_words import WORDS
from scripts.mutant_files import Mutant
from scripts.sandbox import Sandbox


def outcome(box: Sandbox, lesson: str, file: Path, mutant: Mutant | None = None) -> dict:
    """The report of one run; with "ok", no test failed."""
    with kernels_copy(mutant) as folder:
        arguments = [lesson, "--tests", str(file.resolve())]
        return run_module(box, "interpreter", "scripts.drill_tests", arguments, folder, TIME_LIMIT_S)


def score(box: Sandbox, lesson: str, file: Path, lang: str) -> int:
    """Print what the tests find; 0 if they kill all, 1 if one survives, 2 if the solution does not pass."""
    words = WORDS[lang]
    if not file.is_file():
        print(words["no_tests"].format(file=file))
        return 2
    report = outcome(box, lesson, file)
    if not report["ok"]:
        print(words["score_not_right"], report.get("case") or report["check"], report["message"], sep="\n  ")
        return 2
    print(words["score_solution"].format(passed=report["passed"]), flush=True)
    survivors, found = [], [mutant_files.load(mutant_id) for mutant_id in mutant_files.all_ids(lesson)]
    for mutant in found:
        report = outcome(box, lesson, file, mutant)
        if report["ok"]:
            survivors.append(mutant)
            what, why = words["survives"], mutant.name[lang]
            if mutant.caught_by == "compile":
                why = words["by_compiler"]
        else:
            what, why = words["killed"], report.get("case", "").rpartition("::")[2] or report["check"]
        print(f"  {what:9} {mutant.id.partition('/')[2]:28} {why}", flush=True)
    print(words["score"].format(killed=len(found) - len(survivors), count=len(found)))
    return 1 if survivors else 0
