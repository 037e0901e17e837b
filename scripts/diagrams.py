"""Draw the lessons' figures from what their kernels did, in both languages.

    python scripts/diagrams.py            write snippets/generated/<lesson>/<name>.<lang>.svg
    python scripts/diagrams.py --check    fail where such a file is not what would be drawn

The data are snippets/generated/traces/<lesson>.json, which scripts/record_traces.py records; the drawing is
scripts/figures/<lesson>.py, the words <lesson>.toml beside it. Neither torch nor triton is needed.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `scripts`, from anywhere

from scripts.generated import ROOT, write_or_check

GENERATED = ROOT / "snippets/generated"
LANGUAGES = ("zh", "en")
OURS = 'aria-labelledby="figure-'  # the charts of scripts/bake.py have other names


def draw_all() -> dict[Path, str]:
    """Every figure file and its text."""
    files = {}
    for module in sorted((ROOT / "scripts/figures").glob("[a-z]*.py")):
        lesson = module.stem
        trace = json.loads((GENERATED / "traces" / f"{lesson}.json").read_text(encoding="utf-8"))
        for name, draw in importlib.import_module(f"scripts.figures.{lesson}").FIGURES.items():
            for lang in LANGUAGES:
                files[GENERATED / lesson / f"{name}.{lang}.svg"] = draw(trace, lang).svg()
    return files


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file differs")
    check = parser.parse_args().check
    present = [path for path in GENERATED.glob("*/*.svg") if OURS in path.read_text(encoding="utf-8")]
    return write_or_check(draw_all(), present, check, "python scripts/diagrams.py")


if __name__ == "__main__":
    sys.exit(main())
