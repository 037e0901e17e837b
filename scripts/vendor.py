"""Copy the site's third-party files, with their licences, from node_modules into docs/assets/vendor.

The copies are committed, so that building and reading the site needs neither node nor the network.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "docs/assets/vendor"
COMMAND = "npm ci && python scripts/vendor.py"

# Folder under docs/assets/vendor -> (package, files, as globs).
PACKAGES = {
    "katex": ("katex", ["LICENSE", "dist/katex.min.css", "dist/katex.min.js", "dist/fonts/*.woff2"]),
    "source-sans-3": ("@fontsource-variable/source-sans-3", ["LICENSE", "files/*-latin-wght-*.woff2"]),
    "jetbrains-mono": ("@fontsource/jetbrains-mono", ["LICENSE", "files/*-latin-400-normal.woff2"]),
}
# Old formats that a browser which knows modules never asks for.
OLD_FONTS = re.compile(rb',url\([^)]*\) format\("(?:woff|truetype)"\)')


def wanted(node_modules: Path) -> dict[Path, bytes]:
    """Every vendored file and its bytes, as the installed packages have them."""
    files = {}
    for folder, (package, patterns) in PACKAGES.items():
        for pattern in patterns:
            found = sorted((node_modules / package).glob(pattern))
            if not found:
                raise FileNotFoundError(f"{node_modules / package} has no {pattern}; run: npm ci")
            for file in found:
                parts = file.relative_to(node_modules / package).parts
                name = Path(*parts[parts[0] in ("dist", "files") :])
                data = file.read_bytes()
                files[VENDOR / folder / name] = OLD_FONTS.sub(b"", data) if file.suffix == ".css" else data
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a copy differs")
    check = parser.parse_args().check
    files = wanted(ROOT / "node_modules")
    present = {path for path in VENDOR.rglob("*") if path.is_file()}
    changed = {path for path, data in files.items() if path not in present or path.read_bytes() != data}
    stale = sorted(changed | (present - set(files)))
    if check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not as installed; run: {COMMAND}", file=sys.stderr)
        return bool(stale)
    for path in stale:
        path.unlink(missing_ok=True)
    for path in stale:
        if path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[path])
    print(f"{len(files)} files in {VENDOR.relative_to(ROOT)}, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
