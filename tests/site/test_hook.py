"""scripts/site_hook.py in small builds: source pages, both languages, failures that name page and item."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from scripts import formulas

HOOK = Path(__file__).resolve().parents[2] / "scripts/site_hook.py"
CONFIG = f"""\
site_name: demo
site_url: https://example.org/sub/
repo_url: https://github.com/owner/name
docs_dir: docs/zh
hooks: [{HOOK}]
theme: {{name: mkdocs, language: zh}}
plugins: {{}}
not_in_nav: /source/
extra:
  languages:
    - {{lang: zh, name: 中文, path: ""}}
    - {{lang: en, name: English, path: en/}}
"""
ENGLISH = "INHERIT: mkdocs.yml\ndocs_dir: docs/en\ntheme: {language: en}\n"
LESSON = (
    "---\nkernel: kernels/demo.py\n---\n# Demo\n\n```listing\nkernels/demo.py:body\n```\n\n{{ line:one }}\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for lang in ("zh", "en"):
        (tmp_path / "docs" / lang / "lessons").mkdir(parents=True)
        (tmp_path / "docs" / lang / "index.md").write_text("# Home\n\n[demo](lessons/demo.md)\n")
        (tmp_path / "docs" / lang / "lessons/demo.md").write_text(LESSON)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/demo.py").write_text("# region body\nx = 1  #: one\n# endregion body\n")
    (tmp_path / "mkdocs.yml").write_text(CONFIG)
    (tmp_path / "mkdocs.en.yml").write_text(ENGLISH)
    return tmp_path


def run(project: Path, strict: bool = True) -> Path:
    config = load_config(str(project / "mkdocs.yml"), strict=strict)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return project / "site"


@pytest.mark.parametrize("tree", ["", "en"])
def test_a_shown_file_has_a_source_page_in_each_language(project: Path, tree: str) -> None:
    site = run(project) / tree
    page = BeautifulSoup((site / "lessons/demo/index.html").read_text(), "html.parser")
    assert page.select_one(".line-ref")["href"] == "../../source/kernels/demo/#L2"
    assert page.select_one("#demo-body-L2 .no")["href"] == "../../source/kernels/demo/#L2"
    source = BeautifulSoup((site / "source/kernels/demo/index.html").read_text(), "html.parser")
    assert source.select_one("#L2").text == "x = 1"


def test_a_file_that_no_page_shows_has_none(project: Path) -> None:
    (project / "kernels/other.py").write_text("x = 1\n")
    assert not (run(project) / "source/kernels/other").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("zh/index.md", "```listing\nkernels/demo.py:no\n```", "index.md: kernels/demo.py has no section"),
        ("en/lessons/demo.md", "{{ fact:no }}", "lessons/demo.md: snippets/generated/facts.json does not"),
        ("en/index.md", "{{ line:kernels/gone.py:x }}", "index.md: 'kernels/gone.py' is not a file"),
        ("en/lessons/demo.md", '<span class="arithmatex">\\\\(\\no\\\\)</span>',
         "lessons/demo.md: formula \\no: KaTeX parse error"),
        ("zh/index.md", "/// reading | kernels/demo.py:body\n", "index.md: the block /// never ends"),
    ],
)  # fmt: skip
def test_a_wrong_name_fails_the_build_and_names_the_page(
    project: Path, caplog: pytest.LogCaptureFixture, name: str, text: str, message: str
) -> None:
    (project / "docs" / name).write_text(f"# Broken\n\n{text}\n")
    with pytest.raises(Abort):
        run(project)
    assert message in caplog.text


def test_without_katex_pages_show_tex_and_say_so(
    project: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "docs/en/index.md").write_text(
        '# Home\n\n<span class="arithmatex">\\\\(m &lt; 1\\\\)</span>\n'
    )
    monkeypatch.setattr(formulas, "KATEX", formulas.ROOT / "absent")
    run(project, strict=False)
    assert "formulas are shown as TeX: absent is not there; wanted: make" in caplog.text
    assert "\\(m &lt; 1\\)" in (project / "site/en/index.html").read_text()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_broken_link_fails_in_either_language(project: Path, lang: str) -> None:
    (project / "docs" / lang / "index.md").write_text("# Home\n\n[gone](gone.md)\n")
    with pytest.raises(Abort, match="strict mode"):
        run(project)


def test_the_marker_of_a_missing_kernel_fails(project: Path) -> None:
    (project / "kernels/demo.py").unlink()
    with pytest.raises(Abort):
        run(project)
