"""scripts/vendor.py: copies what is wanted, and notices a copy that differs, is missing, or is too many."""

import gzip
import sys
from pathlib import Path

import pytest

from scripts import vendor


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for package, patterns in vendor.PACKAGES.values():
        for pattern in patterns:
            file = tmp_path / "node_modules" / package / pattern.replace("*", "x")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("content")
    styles = 'src:url(a.woff2) format("woff2"),url(a.woff) format("woff"),url(a.ttf) format("truetype")'
    (tmp_path / "node_modules/katex/dist/katex.min.css").write_text(styles)
    (tmp_path / "node_modules/katex/package.json").write_text('{"version": "1.2.3"}')
    monkeypatch.setattr(vendor, "bundle", lambda node_modules: (b"the editor", ["katex"]))
    monkeypatch.setattr(vendor, "EDITOR", tmp_path / "vendor/codemirror")
    monkeypatch.setattr(vendor, "ROOT", tmp_path)
    monkeypatch.setattr(vendor, "VENDOR", tmp_path / "vendor")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["vendor.py", *arguments])
    return vendor.main()


def test_copies_with_licences_and_without_old_fonts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == 0
    for folder in vendor.PACKAGES:
        assert (root / "vendor" / folder / "LICENSE").is_file()
    assert (root / "vendor/katex/fonts/x.woff2").is_file()
    assert (root / "vendor/katex/katex.min.css").read_text() == 'src:url(a.woff2) format("woff2")'
    assert (root / "vendor/codemirror/codemirror.mjs").read_bytes() == b"the editor"
    assert (root / "vendor/codemirror/LICENSE").read_text() == "katex 1.2.3\n\ncontent\n"
    assert run(monkeypatch, "--check") == 0


@pytest.mark.parametrize(
    "name", ["katex/katex.min.css", "katex/LICENSE", "katex/old.js", "codemirror/codemirror.mjs"]
)
def test_check_names_the_file_and_the_command(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, name: str
) -> None:
    run(monkeypatch)
    (root / "vendor" / name).write_text("edited")
    assert run(monkeypatch, "--check") == 1
    assert f"vendor/{name} is not as installed; run: {vendor.COMMAND}" in capsys.readouterr().err
    run(monkeypatch)
    assert run(monkeypatch, "--check") == 0


def test_a_package_that_is_not_installed_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "node_modules/katex/LICENSE").unlink()
    with pytest.raises(FileNotFoundError, match="katex has no LICENSE; run: npm ci"):
        run(monkeypatch)


def test_an_absent_bundler_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no esbuild; run: npm ci"):
        vendor.bundle(tmp_path)


def test_what_is_committed_is_what_the_packages_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    assert run(monkeypatch, "--check") == 0, capsys.readouterr().err


def test_the_editor_is_light_and_names_whose_it_is() -> None:
    module = (vendor.EDITOR / "codemirror.mjs").read_bytes()
    assert len(gzip.compress(module)) < 150_000
    assert b"sourceMappingURL" not in module and b"https://" not in module
    licence = (vendor.EDITOR / "LICENSE").read_text(encoding="utf-8")
    for package in ("@codemirror/state", "@codemirror/view", "@lezer/python", "style-mod"):
        assert f"{package} " in licence
    assert licence.count("Permission is hereby granted") == licence.count("-" * 80) + 1
