"""Write a lesson's kernel yourself, in mine/, and be told what is wrong with it.

    python scripts/drill.py start l2_paged_decode              # mine/l2_paged_decode.py, a part left out
    python scripts/drill.py check l2_paged_decode              # stops at the first kind of check that fails
    python scripts/drill.py hint  l2_paged_decode              # the next hint; the last one is the solution
    python scripts/drill.py diff  l2_paged_decode              # your file against the solution
    python scripts/drill.py reset l2_paged_decode              # back to the skeleton; your file is kept, too
    python scripts/drill.py test  l2_paged_decode mine/test_decode.py    # your tests: which mutants survive?
    python scripts/drill.py go    l2_paged_decode              # start, or check what is there: `make drill`

A kernel's lesson has three levels: loop (fill the loop), kernel (write the kernel), launcher (kernel and
launcher). L0 has heads, latent and decode; L1 has table, cache, kernel and launcher. No GPU is needed:
`check` runs in Triton's interpreter, and compiles the decode kernels for sm_90; --gpu takes the GPU that is
here. Your file runs in a child process, with a limit of time and memory. Exit status 0: done, or all is
right; 1: a check fails, or a mutant survives; 2: it cannot be done, with the reason.
"""

import argparse
import difflib
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # `scripts`, from anywhere

from scripts import mutant_files, skeletons
from scripts.diagnose import describe
from scripts.drill_run import check
from scripts.drill_score import score
from scripts.drill_words import WORDS
from scripts.listing import PageError
from scripts.sandbox import Sandbox, SandboxError

MINE = ROOT / "mine"


class DrillError(ValueError):
    """What was asked for cannot be done."""


class Drill:
    """A lesson's drill in mine/: the reader's file, and what is remembered of it (mine/.drills.json)."""

    def __init__(self, lesson: str, lang: str | None = None):
        self.lesson, self.file, self._memory = lesson, MINE / f"{lesson}.py", MINE / ".drills.json"
        self._all = _remembered(self._memory)
        state = self._all.get(lesson, {})
        self.level = state.get("level")
        if self.level not in skeletons.levels(lesson):
            self.level = skeletons.levels(lesson)[0]
        self.hints_seen = state.get("hints_seen", 0)
        self.lang = lang or state.get("lang") or _language()

    @property
    def words(self) -> dict[str, str]:
        return WORDS[self.lang]

    @property
    def name(self) -> str:
        """The file, as it is printed."""
        return str(self.file.relative_to(ROOT))

    def remember(self) -> None:
        """Write level, language and the hints seen."""
        self._all[self.lesson] = {"level": self.level, "lang": self.lang, "hints_seen": self.hints_seen}
        MINE.mkdir(exist_ok=True)
        self._memory.write_text(json.dumps(self._all, indent=1) + "\n", encoding="utf-8")

    def require_file(self) -> None:
        if not self.file.is_file():
            raise DrillError(self._say("absent"))

    def start(self, level: str | None, force: bool) -> int:
        """Copy the skeleton of a level; an existing file is overwritten by force alone."""
        if self.file.exists() and not force:
            raise DrillError(self._say("exists"))
        return self._write(level or self.level)

    def reset(self, level: str | None) -> int:
        """Back to the skeleton; what was there is kept under the next free name."""
        self.require_file()
        skeletons.load(self.lesson, level or self.level)  # before anything moves
        names = (self.file.with_suffix(f".old{n}.py") for n in range(1, 10**6))
        kept = next(path for path in names if not path.exists())
        self.file.rename(kept)
        print(self.words["kept"].format(file=kept.relative_to(ROOT)))
        return self._write(level or self.level)

    def _write(self, level: str) -> int:
        text = skeletons.load(self.lesson, level).text()
        self.level, self.hints_seen = level, 0
        self.remember()
        self.file.write_text(text, encoding="utf-8")
        print(self._say("started", level=level, what=self.words[level]))
        return 0

    def _say(self, text: str, **values) -> str:
        """One of our texts; commands in it name the interpreter that runs this."""
        venv = ROOT / ".venv/bin/python"
        python = venv.relative_to(ROOT) if Path(sys.executable) == venv else "python"
        return self.words[text].format(file=self.name, lesson=self.lesson, python=python, **values)

    def check(self, gpu: bool) -> int:
        """The checks, small ones first; says what fails, and which known mistake it is."""
        self.require_file()
        with Sandbox() as box:
            report = check(
                box, self.lesson, file=self.file, level=self.level, tests=True, gpu=gpu,
                say=lambda stage: print(f"... {self.words[stage]}", flush=True),
            )  # fmt: skip
        print(describe(report, self.lang))
        if not report["ok"] and not report["mistakes"]:
            print(self.words["unnamed"])
        return 0 if report["ok"] else 1

    def hint(self) -> int:
        """Print the next hint; after the last, the solution's lines."""
        hints = skeletons.hints(self.lesson, self.level, self.lang)
        count = len(hints) + 1
        number = min(self.hints_seen + 1, count)
        print(self.words["hint"].format(number=number, count=count, level=self.level))
        if number < count:
            print(hints[number - 1])
        else:
            for path, rows in skeletons.load(self.lesson, self.level).solution():
                print(f"{path}:{rows[0][0]}", *(f"{no:4}  {text}" for no, text in rows), sep="\n")
        self.hints_seen = number
        self.remember()
        return 0

    def diff(self) -> int:
        """The reader's file against the solution, without what the drill does without."""
        self.require_file()
        skeleton = skeletons.load(self.lesson, self.level)
        answer = skeleton.answer().splitlines()
        mine = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
        rows = difflib.unified_diff(mine, answer, self.name, skeleton.source.path, lineterm="")
        print("\n".join(rows) or self.words["same"])
        return 0


def _remembered(file: Path) -> dict:
    """What mine/.drills.json says; nothing, if it is not there or damaged."""
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) and all(isinstance(v, dict) for v in known.values()) else {}


def _language() -> str:
    """The language of the locale, if it is one of ours: else English."""
    locales = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, locales), "").startswith("zh") else "en"


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    args = _parser().parse_args(arguments)
    try:
        drill = Drill(args.lesson, args.lang)
        if args.lang:
            drill.remember()
        if args.command == "go":
            args.command = "check" if drill.file.exists() else "start"
            args.force = False
            if args.command == "check" and args.level not in (None, drill.level):
                skeletons.load(args.lesson, args.level)  # or there is no such level
                print(drill._say("other_level", level=drill.level, wanted=args.level))
        if args.command == "start":
            return drill.start(args.level, args.force)
        if args.command == "reset":
            return drill.reset(args.level)
        if args.command == "check":
            return drill.check(args.gpu)
        if args.command == "test":
            with Sandbox() as box:
                return score(box, args.lesson, args.file, drill.lang)
        return getattr(drill, args.command)()
    except BrokenPipeError:
        raise
    except (DrillError, PageError, mutant_files.MutantError, SandboxError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "start": "copy the skeleton to mine/<lesson>.py",
        "check": "check mine/<lesson>.py, and name the mistake",
        "hint": "print the next hint",
        "diff": "compare mine/<lesson>.py with the solution",
        "reset": "back to the skeleton; your file is kept as mine/<lesson>.old<N>.py",
        "test": "run your own test file on the solution and on every mutant",
        "go": "start if mine/<lesson>.py is not there, else check it",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("lesson", choices=mutant_files.LESSONS + mutant_files.PARTS)
        command.add_argument("--lang", choices=skeletons.LANGS, help="default: as before, or the locale's")
        if name in ("start", "reset", "go"):
            command.add_argument("--level", help="default: as before, or the easiest: loop, for a kernel")
        if name == "start":
            command.add_argument("--force", action="store_true", help="overwrite mine/<lesson>.py")
        if name in ("check", "go"):
            command.add_argument("--gpu", action="store_true", help="run on the GPU that is here")
        if name == "test":
            command.add_argument("file", type=Path, help="pytest file with `from kernels import ...`")
    return parser


def piped(arguments: list[str] | None = None) -> int:
    """`main`, for output that somebody like `head` may stop reading."""
    try:
        status = main(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(piped())
