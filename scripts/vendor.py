"""Copy the site's third-party files, with their licences, from node_modules into docs/assets/vendor.

The editor is one module, bundled from scripts/codemirror_entry.mjs. All of it is committed: who reads the
site, or changes a page, needs none of those packages.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "docs/assets/vendor"
COMMAND = "npm ci && python scripts/vendor.py"

# Folder under docs/assets/vendor -> (package, files, as globs).
PACKAGES = {
    "katex": ("katex", ["LICENSE", "dist/katex.min.css", "dist/fonts/*.woff2"]),
    "source-sans-3": ("@fontsource-variable/source-sans-3", ["LICENSE", "files/*-latin-wght-*.woff2"]),
    "jetbrains-mono": ("@fontsource/jetbrains-mono", ["LICENSE", "files/*-latin-400-normal.woff2"]),
}
EDITOR = VENDOR / "codemirror"
ENTRY = "scripts/codemirror_entry.mjs"
BUNDLING = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=none"]
# Old formats that a browser which knows modules never asks for.
OLD_FONTS = re.compile(rb',url\([^)]*\) format\("(?:woff|truetype)"\)')


def bundle(node_modules: Path) -> tuple[bytes, list[str]]:
    """The module of ENTRY, and the packages that are in it."""
    esbuild = node_modules / ".bin/esbuild"
    if not esbuild.exists():
        raise FileNotFoundError(f"{node_modules} has no esbuild; run: npm ci")
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}{os.pathsep}{ROOT / '.venv/bin'}"}  # for node
    with tempfile.TemporaryDirectory() as name:
        out, meta = Path(name) / "out.mjs", Path(name) / "meta.json"
        files = [f"--outfile={out}", f"--metafile={meta}"]
        command = [esbuild, ENTRY, *BUNDLING, *files, "--log-level=warning"]
        subprocess.run(command, cwd=node_modules.parent, env=environment, check=True)
        (output,) = json.loads(meta.read_text(encoding="utf-8"))["outputs"].values()
        used = [path for path, part in output["inputs"].items() if part["bytesInOutput"]]
        inside = (path.split("node_modules/")[-1] for path in used if path != ENTRY)
        packages = ("/".join(path.split("/")[: 2 if path.startswith("@") else 1]) for path in inside)
        return out.read_bytes(), sorted(set(packages))


def licences(node_modules: Path, packages: list[str]) -> bytes:
    """The licences of these packages, one after the other."""
    parts = []
    for package in packages:
        version = json.loads((node_modules / package / "package.json").read_text(encoding="utf-8"))["version"]
        licence = (node_modules / package / "LICENSE").read_text(encoding="utf-8")
        parts.append(f"{package} {version}\n\n{licence.strip()}\n")
    return f"\n{'-' * 80}\n\n".join(parts).encode()


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
    files[EDITOR / "codemirror.mjs"], packages = bundle(node_modules)
    files[EDITOR / "LICENSE"] = licences(node_modules, packages)
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
