"""The form of snippets/production.toml: what a citation needs to be a permanent link. No network."""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlparse

import pytest

PATH = Path(__file__).parents[1] / "snippets" / "production.toml"
TABLE = tomllib.loads(PATH.read_text(encoding="utf-8"))  # a key given twice is an error of the parser

CODE_FIELDS = {"repo", "commit", "path", "lines", "title", "what_zh", "what_en"}
PAPER_FIELDS = {"title", "authors", "year", "url", "what_zh", "what_en"}
HARDWARE_FIELDS = {"title", "figures", "url", "what_zh", "what_en"}
CODE = {
    f"{system}.{name}": entry
    for system, entries in TABLE.items()
    if system not in ("papers", "hardware")
    for name, entry in entries.items()
}
PAPERS = {f"papers.{name}": entry for name, entry in TABLE["papers"].items()}
HARDWARE = {f"hardware.{name}": entry for name, entry in TABLE["hardware"].items()}
ALL = CODE | PAPERS | HARDWARE
HAN = re.compile(r"[\u4e00-\u9fff]")


def each(entries: dict) -> pytest.MarkDecorator:
    """Parametrise a test over (key, entry)."""
    return pytest.mark.parametrize(("key", "entry"), entries.items(), ids=entries)


@each(ALL)
def test_key_and_texts(key, entry):
    assert re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", key)
    for field in ("title", "what_zh", "what_en"):
        text = entry[field]
        assert isinstance(text, str) and text and text == text.strip() and "\n" not in text, field
    assert len(entry["title"]) <= 100
    assert HAN.search(entry["what_zh"]), "what_zh is not Chinese"
    assert not HAN.search(entry["what_en"]) and entry["what_en"].endswith(".")


@each(CODE)
def test_code_entry_is_a_permanent_link(key, entry):
    assert set(entry) == CODE_FIELDS
    assert re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", entry["repo"])
    assert re.fullmatch(r"[0-9a-f]{40}", entry["commit"])
    parts = entry["path"].split("/")
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", part) and part not in (".", "..") for part in parts)
    lines = entry["lines"]
    assert len(lines) == 2 and all(type(line) is int for line in lines)
    assert 1 <= lines[0] <= lines[1]


def test_code_entries_are_distinct():
    places = [(entry["repo"], entry["path"], tuple(entry["lines"])) for entry in CODE.values()]
    assert len(places) == len(set(places))


def test_a_file_is_pinned_to_one_commit():
    pins: dict[tuple[str, str], set[str]] = {}
    for entry in CODE.values():
        pins.setdefault((entry["repo"], entry["path"]), set()).add(entry["commit"])
    assert {place: commits for place, commits in pins.items() if len(commits) > 1} == {}


@each(PAPERS | HARDWARE)
def test_url_is_https(key, entry):
    url = urlparse(entry["url"])
    assert url.scheme == "https" and url.netloc and url.path


@each(PAPERS)
def test_paper(key, entry):
    assert set(entry) == PAPER_FIELDS
    assert entry["authors"].strip()
    assert type(entry["year"]) is int and 1990 <= entry["year"] <= 2100


@each(HARDWARE)
def test_hardware(key, entry):
    assert set(entry) == HARDWARE_FIELDS
    assert {"memory_gb_per_s", "num_sms"} <= set(entry["figures"])
    assert all(value > 0 for value in entry["figures"].values())
