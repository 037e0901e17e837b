"""Record what the lesson kernels read, write and compute on the worked examples, for the diagrams to draw.

    python scripts/record_traces.py            write snippets/generated/traces/<lesson>.json
    python scripts/record_traces.py --check    fail where such a file is not what would be written

The kernels run in Triton's interpreter, on any machine. scripts/traces/<lesson>.py says what is recorded.
Floats are rounded to four decimals, so that every CPU writes the same bytes.
"""

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `kernels` and `scripts`, from anywhere

from scripts.generated import ROOT, write_or_check

TRACES = ROOT / "snippets/generated/traces"


def compact(record: dict) -> str:
    """JSON with one line a top-level key."""
    lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file differs")
    check = parser.parse_args().check
    lessons = sorted(path.stem for path in (ROOT / "scripts/traces").glob("[a-z]*.py"))
    files = {
        TRACES / f"{lesson}.json": compact(importlib.import_module(f"scripts.traces.{lesson}").record())
        for lesson in lessons
    }
    return write_or_check(files, TRACES.glob("*.json"), check, "python scripts/record_traces.py")


if __name__ == "__main__":
    sys.exit(main())
