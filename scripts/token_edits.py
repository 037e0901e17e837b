"""Edit one token of a kernel, at random, 40 times a kernel: does the test suite see it?

    python scripts/token_edits.py               # whatever the record lacks; may be stopped and started again
    python scripts/token_edits.py --mutants     # the same for the known mistakes in snippets/mutants
    python scripts/token_edits.py --check       # the record is of these kernels, and nothing survives
    python scripts/token_edits.py --list        # every edit, and what became of it

The edits are those that the seed draws (scripts/token_edit_rules.py). A judge of its own says whether an
edited kernel differs from the definition on any of 200 random cases (scripts/token_edit_judge.py); one that
does must be caught by the tests of its lesson. One that does not has its reason in snippets/token_edits.toml,
by hand. The record is snippets/generated/token_edits.json. Half an hour of one core, without a GPU.
"""

import argparse
import hashlib
import json
import os
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # `scripts`, from anywhere

from scripts import mutant_files, token_edit_runs
from scripts.token_edit_rules import KERNELS, SEED, Edit, all_edits, code_hash, code_tokens, draw
from scripts.token_edit_runs import Project

OUT = ROOT / "snippets/generated/token_edits.json"
REASONS = ROOT / "snippets/token_edits.toml"
JUDGE = ("cases", "judge", "memory")  # scripts/token_edit_*.py
COMMAND = "python scripts/token_edits.py"


def new_record() -> dict:
    """A record of nothing yet: what it is about, in the code of now."""
    return {
        "seed": SEED,
        "code_hash": {kernel: code_hash(kernel) for kernel in KERNELS},
        "judge_hash": _hash("\n".join(_code(f"scripts/token_edit_{name}.py") for name in JUDGE)),
        "edits": {},
        "mutants": {},
    }


def load_record() -> dict:
    """The record, without what was found for other code than that of now."""
    now = new_record()
    if OUT.is_file():
        old = json.loads(OUT.read_text(encoding="utf-8"))
        if all(old[key] == now[key] for key in ("seed", "judge_hash")):
            wanted = {edit.key: edit for edit in all_edits()}
            now["edits"] = {
                key: row
                for key, row in old["edits"].items()
                if key in wanted
                and old["code_hash"].get(row["kernel"]) == now["code_hash"][wanted[key].kernel]
            }
        hashes = {mutant_id: mutant_hash(mutant_id) for mutant_id in mutant_ids()}
        now["mutants"] = {k: row for k, row in old["mutants"].items() if row["hash"] == hashes.get(k)}
    return now


def save_record(record: dict) -> None:
    """Write it, a row a line, in the order of the kernels; a reader never sees half of it."""
    order = {edit.key: i for i, edit in enumerate(all_edits())}
    rows = {key: dict(sorted(record[key].items())) for key in ("edits", "mutants")}
    rows["edits"] = dict(sorted(rows["edits"].items(), key=lambda item: order[item[0]]))
    parts = []
    for key, value in record.items():
        text = json.dumps(value)
        if key in rows:
            lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows[key].items())
            text = "{\n" + ",\n".join(lines) + "\n}"
        parts.append(f"{json.dumps(key)}: {text}")
    temporary = OUT.with_name(f".{OUT.name}.tmp")
    temporary.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    os.replace(temporary, OUT)


def mutant_ids() -> list[str]:
    """The known mistakes of the lessons whose kernels are edited here."""
    return [mutant_id for lesson in token_edit_runs.LESSONS for mutant_id in mutant_files.all_ids(lesson)]


def mutant_hash(mutant_id: str) -> str:
    """Of a mutant's edits and of the kernels of its file: its launchers may change."""
    mutant = mutant_files.load(mutant_id)
    kernels = [
        code_hash(kernel) for kernel, (module, _) in KERNELS.items() if mutant.file.endswith(f"/{module}.py")
    ]
    return _hash("\n".join([*(text for edit in mutant.edits for text in edit), *kernels]))


def _code(path: str) -> str:
    return "\n".join(token.string for token in code_tokens((ROOT / path).read_text(encoding="utf-8")))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_edit(project: Project, edit: Edit) -> dict:
    """The row of one edit: where the judge saw a difference, and the test that catches it."""
    text = edit.apply((ROOT / edit.file).read_text(encoding="utf-8"))
    row = {"kernel": edit.kernel, "code": edit.code, "case": None, "how": None, "caught_by": None}
    with project.edited(edit.file, text):
        found = project.judge(edit.kernel)
        if found is not None:
            row["case"], row["how"] = found
            lesson = edit.file.removeprefix("kernels/").removesuffix(".py")
            lesson = "l3_split_kv_decode" if lesson.startswith("l3") else lesson
            row["caught_by"] = project.caught_by(lesson, edit.kernel)
    return row


def run_mutant(project: Project, mutant_id: str) -> dict:
    """The row of one known mistake: the test of the suite that catches it."""
    mutant = mutant_files.load(mutant_id)
    text = mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8"))
    with project.edited(mutant.file, text):
        return {
            "caught_by": project.caught_by(mutant.lesson),
            "hash": mutant_hash(mutant_id),
        }


def is_done(row: dict | None) -> bool:
    """Whether nothing is left to find: no difference, or a test that catches it."""
    return row is not None and bool(row["caught_by"] or row.get("case", 0) is None)


def run(record: dict, kernels: list[str], known_mistakes: bool) -> None:
    """Find what the record lacks, and save it after each step."""
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    edits = [edit for kernel in kernels for edit in draw(kernel)]
    todo = [("edits", edit.key, edit, run_edit) for edit in edits]
    if known_mistakes:
        todo = [("mutants", mutant_id, mutant_id, run_mutant) for mutant_id in mutant_ids()]
    todo = [step for step in todo if not is_done(record[step[0]].get(step[1]))]
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as progress, token_edit_runs.copy_of_the_project() as project:
        task = progress.add_task("", total=len(todo))
        for part, key, what, function in todo:
            progress.update(task, description=f"{key:60.60}")
            record[part][key] = row = function(project, what)
            save_record(record)
            progress.advance(task)
            if not is_done(row):
                progress.print(f"not caught: {key}")


def table(record: dict) -> str:
    """Kernel, edits, how many differ, are caught, and are equivalent."""
    lines = [f"{'kernel':26}{'edits':>6}{'differ':>8}{'caught':>8}{'equivalent':>12}"]
    for kernel in KERNELS:
        rows = [row for row in record["edits"].values() if row["kernel"] == kernel]
        count = Counter("equal" if row["case"] is None else "differ" for row in rows)
        caught = sum(row["caught_by"] is not None for row in rows)
        lines.append(f"{kernel:26}{len(rows):6}{count['differ']:8}{caught:8}{count['equal']:12}")
    caught = sum(row["caught_by"] is not None for row in record["mutants"].values())
    return "\n".join([*lines, f"known mistakes: {len(record['mutants'])}, caught: {caught}"])


def problems(record: dict) -> list[str]:
    """What is wrong with a record: what it lacks, what survives, tests that are gone, reasons that are."""
    found = [f"no run of {edit.key}" for edit in all_edits() if edit.key not in record["edits"]]
    found += [f"no run of {name}" for name in mutant_ids() if name not in record["mutants"]]
    rows = record["edits"] | record["mutants"]
    found += [f"not caught: {key}" for key, row in rows.items() if not is_done(row)]
    for key, row in rows.items():
        test = (row["caught_by"] or "").partition(" (")[0].partition("[")[0]
        file, _, name = test.partition("::")
        if test and not ((ROOT / file).is_file() and f"def {name.rpartition('::')[2]}(" in _text(file)):
            found.append(f"{key}: there is no test {test}")
    equivalent = {key for key, row in record["edits"].items() if row["case"] is None}
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    found += [f"{REASONS.name} has no reason for {key}" for key in sorted(equivalent - reasons.keys())]
    found += [f"{REASONS.name}: {key} is not equivalent" for key in sorted(reasons.keys() - equivalent)]
    return found


def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", choices=KERNELS, action="append", help="only this one; may be repeated")
    parser.add_argument("--mutants", action="store_true", help="the known mistakes instead of random edits")
    parser.add_argument("--check", action="store_true", help="run nothing: is the record whole and of now?")
    parser.add_argument("--list", action="store_true", help="run nothing: print the record")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    args = parser.parse_args()
    record = new_record() if args.fresh else load_record()
    if args.list:
        for key, row in record["edits"].items():
            verdict = "equivalent" if row["case"] is None else f"case {row['case']}: {row['how']}"
            print(f"{row['kernel']:16} {key}\n    {row['code']}\n    {verdict}\n    {row['caught_by'] or ''}")
    elif not args.check:
        run(record, args.kernel or list(KERNELS), args.mutants)
    print(table(record))
    wrong = problems(record)
    if args.check and wrong:
        print("\n".join(wrong), f"run: {COMMAND} and {COMMAND} --mutants", sep="\n", file=sys.stderr)
    survivors = any(not is_done(row) for row in (record["edits"] | record["mutants"]).values())
    return 1 if (wrong if args.check else survivors) else 0


if __name__ == "__main__":
    sys.exit(main())
