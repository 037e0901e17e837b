"""Write derived files, or check that they are what would be written: the one code path of every generator."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write_or_check(files: dict[Path, str], present: Iterable[Path], check: bool, command: str) -> int:
    """Write what differs, remove what is in `present` and not in `files`; returns an exit status.

    With `check`, change nothing: name what differs, and the command that mends it.
    """
    stale = [path for path, text in files.items() if not path.is_file() or path.read_bytes() != text.encode()]
    extra = sorted(set(present) - set(files))
    if check:
        for path in sorted(stale) + extra:
            what = "is nobody's" if path in extra else "is not what its sources give"
            print(f"{path.relative_to(ROOT)} {what}; run: {command}", file=sys.stderr)
        return 1 if stale or extra else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole, so that a reader never sees half a file.
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(files[path].encode())
        os.replace(temporary, path)
    for path in extra:
        path.unlink()
    print(f"{len(files)} files, {len(stale)} written, {len(extra)} removed")
    return 0
