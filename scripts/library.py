"""What the repository holds for pages: sources, facts, pinned links and generated fragments."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

from scripts import compiled_evidence
from scripts.compiled_evidence import Evidence
from scripts.listing import PageError, Source, read_source, span_text

FACTS = "snippets/generated/facts.json"
PRODUCTION = "snippets/production.toml"


class Library:
    """What the repository at `root` holds for pages; every file is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._sources: dict[str, Source] = {}
        self._compiled: dict[str, list[Evidence]] = {}

    def source(self, path: str) -> Source:
        if path not in self._sources:
            self._sources[path] = read_source(self.root, path)
        return self._sources[path]

    def _read(self, path: str, parse: Callable[[str], dict]) -> dict:
        file = self.root / path
        if not file.is_file():
            raise PageError(f"{path} does not exist")
        return parse(file.read_text(encoding="utf-8"))

    def fact(self, name: str) -> str:
        facts = self._read(FACTS, json.loads)
        if name not in facts:
            raise PageError(f"{FACTS} has no fact {name!r}")
        return str(facts[name])

    def production(self, key: str) -> tuple[str, str]:
        """(text, URL) of the entry with this dotted name: code at a commit and lines, or a titled address."""
        entry = self._read(PRODUCTION, tomllib.loads)
        for part in key.split("."):
            entry = entry.get(part, {}) if isinstance(entry, dict) else {}
        try:
            if "repo" not in entry:
                return entry["title"], entry["url"]
            repo, commit, path, (first, last) = (entry[name] for name in ("repo", "commit", "path", "lines"))
        except (KeyError, TypeError, ValueError) as error:
            raise PageError(f"{PRODUCTION} has no {key!r} with repo, commit, path, lines or a url") from error
        url = f"https://github.com/{repo}/blob/{commit}/{path}#L{first}-L{last}"
        return f"{repo} {path}#{span_text(first, last)}", url

    def compiled(self, kernel: str) -> list[Evidence]:
        """What the compiler made of a kernel, a target each."""
        if kernel not in self._compiled:
            known = compiled_evidence.kernels(self.root)
            if kernel not in known:
                there = ", ".join(known) or "none"
                raise PageError(f"no kernel {kernel!r} in {compiled_evidence.FOLDER}; there are {there}")
            self._compiled[kernel] = [
                compiled_evidence.evidence(kernel, target, self.root) for target in known[kernel]
            ]
        return self._compiled[kernel]

    def generated(self, lesson: str, name: str) -> str:
        path = f"snippets/generated/{lesson}/{name}"
        if not (self.root / path).is_file():
            raise PageError(f"{path} does not exist")
        return (self.root / path).read_text(encoding="utf-8").strip()
