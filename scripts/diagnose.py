"""From what a wrong kernel does to the name of the known mistake; run alone, it checks a reader's file.

    python scripts/diagnose.py l2_paged_decode mine/l2_paged_decode.py

Runs the lesson's checks on the function of that file, in a child process, and prints the check that failed,
where, what was expected and what came, and the known mistake whose symptoms these are, if there is one.
Exit status 0: all checks pass; 1: one fails; 2: there is no such file.

A mistake is named if its own wrong reference (scripts/mistakes.py) gives what the kernel gave on EVERY
problem of the lesson, and if the sign that it leaves beside values was seen, or none was.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # `scripts`, from anywhere; after a child's own folder with its kernels/

from scripts import mutants

# Signs beside values: memory never written; stores outside a tensor's own elements or over another
# program's; foreign table entries read; page 0 read for an id of -1; offsets past 2**31; instructions.
SIGNS = ("unwritten", "padding", "table", "page_0", "far_page", "tf32", "small_tile")


def known_mistakes(lesson: str) -> dict:
    """{id: (wrong reference, sign)} of what may go wrong in a lesson's kernel: L3's has L2's loop, too."""
    from scripts.mistakes import L2_MISTAKES, L3_MISTAKES
    from scripts.mistakes_softmax import SOFTMAX_MISTAKES

    l2 = {f"l2_paged_decode/{name}": mistake for name, mistake in L2_MISTAKES.items()}
    if lesson == "l2_paged_decode":
        return l2
    if lesson == "l3_split_kv_decode":
        del l2["l2_paged_decode/table_past_end"]  # page_end_unbounded, there
        return {f"{lesson}/{name}": mistake for name, mistake in L3_MISTAKES.items()} | l2
    return {f"{lesson}/{name}": mistake for name, mistake in SOFTMAX_MISTAKES.items()}


def matches(problem, result, wrong) -> bool:
    """Whether (o, lse) of a kernel is what a wrong reference gives, roundings apart."""
    import torch

    if result is None or result[0].shape != wrong[0].shape:
        return False
    rounding = 4 * torch.finfo(problem.dtype).eps
    scores = torch.finfo(torch.float32).eps * problem.largest_score()  # a rounding of the largest score
    (o, lse), (wrong_o, wrong_lse) = result, wrong
    nan = wrong_o.isnan()
    if not torch.equal(o.isnan(), nan):
        return False
    size = wrong_o[wrong_o.isfinite()].abs().max().item() if wrong_o.isfinite().any() else 1.0
    close = torch.isclose(o.double(), wrong_o.double(), rtol=0, atol=(rounding + 8 * scores) * max(1.0, size))
    # A partial on the edge between two fp16 may be rounded the other way: a few may differ.
    good = (close | nan).double().mean().item() >= 0.98 if o.numel() else True
    if wrong_lse is None or not good:
        return good
    lse_close = torch.isclose(lse.double(), wrong_lse.double(), rtol=0, atol=1e-5 + 8 * scores)
    return bool((lse_close | nan.any(-1)).all())


def diagnose(lesson: str, observed: list[tuple], signs: Iterable[str] = ()) -> list[str]:
    """The ids of the known mistakes that explain everything: [] if none does, or if nothing is wrong.

    observed: (problem, (o, lse)) of every problem; None in place of a result that was an exception.
    signs: those of SIGNS that were seen.
    """
    signs = set(signs)
    return [
        mutant_id
        for mutant_id, (outputs, sign) in known_mistakes(lesson).items()
        if (sign in signs if sign else not signs)
        and all(any(matches(p, result, wrong) for wrong in outputs(p)) for p, result in observed)
    ]


def describe(report: dict) -> str:
    """A report of scripts/mutants.py for a reader."""
    if report["ok"]:
        return f"{report['lesson']}: all checks pass"
    rows = [f"{report['lesson']}: the check `{report['check']}` fails", report["message"]]
    where = ("case", "what", "index", "expected", "got")
    rows += [f"  {key}: {report[key]}" for key in where if key in report]
    for mutant_id in report["mistakes"]:
        mutant = mutants.load(mutant_id)
        page = f"docs/en/lessons/{mutant.lesson}.md#{mutant.section}"
        rows.append(f"known mistake {mutant_id}: {mutant.name['en']}\n  read again: {page}")
    return "\n".join(rows)


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=mutants.LESSONS)
    parser.add_argument("file", type=Path, help="a Python file with the lesson's function")
    args = parser.parse_args()
    if not args.file.is_file():
        print(f"{args.file} is not there; wanted a Python file", file=sys.stderr)
        return 2
    report = mutants.check(args.lesson, file=args.file)
    print(describe(report))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
