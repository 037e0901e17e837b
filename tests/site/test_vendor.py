"""scripts/vendor.py: copies what is wanted, and notices a copy that differs, is missing, or is too many."""

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
    assert run(monkeypatch, "--check") == 0


@pytest.mark.parametrize("name", ["katex/katex.min.js", "katex/LICENSE", "katex/old.js"])
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
