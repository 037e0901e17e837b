"""The site's one MkDocs hook: listings and macros, full-source pages, notebooks, both languages in one build.

mkdocs.yml is the Chinese site and the root of the build; when it is done, it builds mkdocs.en.yml into
`<site_dir>/en`.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jinja2 import Environment
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page as MkDocsPage
from mkdocs.structure.toc import get_toc
from mkdocs.utils import get_relative_url
from mkdocs.utils.meta import get_data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `scripts`, wherever mkdocs was started

from scripts import macros, run_page
from scripts.compiled_evidence import FOLDER
from scripts.compiled_page import compiled_uri
from scripts.formulas import Formulas, NoKatexError
from scripts.library import Library
from scripts.listing import PageError
from scripts.notebook_page import lighten
from scripts.reading import ReadingExtension
from scripts.run_program import program
from scripts.runner_site import RUNNER, place_runner

ENGLISH = "mkdocs.en.yml"
BRANCH = "main"
LESSON_FOLDERS = ("lessons", "problems", "interviews")
SHORT_LOOP = "for(let o=s+1;o<t.length;o++)t.slice(s,o)in e"
WHOLE_LOOP = SHORT_LOOP.replace("o<t.length", "o<=t.length")
WORDS = {
    "zh": {"source": "{} 的完整源码，行号与仓库中的文件一致。", "notebook": "下载这个 notebook（.ipynb）"},
    "en": {"source": "The full source of {}, with the line numbers of the file in the repository.",
           "notebook": "Download this notebook (.ipynb)"},
}  # fmt: skip

log = logging.getLogger("mkdocs.site_hook")
_startup = {"command": "build", "dirty": False}


def on_startup(command: str, dirty: bool) -> None:
    _startup.update(command=command, dirty=dirty)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(ReadingExtension())
    config.extra["library"] = Library(_root(config))
    config.extra["formulas"] = Formulas()
    if repo := config.repo_url or _origin(_root(config)):
        config.repo_url = repo = repo.rstrip("/") + "/"
        config.repo_name = repo.split("/", 3)[3].strip("/")
        config.edit_uri = f"edit/{BRANCH}/{Path(config.docs_dir).relative_to(_root(config)).as_posix()}/"
    return config


def _root(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).parent


def _lang(config: MkDocsConfig) -> str:
    return config.theme["language"]


def _lesson(src_uri: str) -> str:
    """The lesson that a page belongs to, or ""."""
    folder, _, name = src_uri.removesuffix(".md").rpartition("/")
    return name if folder in LESSON_FOLDERS else ""


def _origin(root: Path) -> str:
    """The web address of the clone's origin, or "": then pages carry no edit and issue links."""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    git = subprocess.run(command, capture_output=True, text=True, check=False)
    url = git.stdout.strip().removesuffix(".git")
    if url.startswith("git@"):
        url = "https://" + url[4:].replace(":", "/", 1)
    return url if url.startswith("https://") and "@" not in url else ""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the full source of every file that a page shows, records of compiled kernels, programs to run."""
    library = config.extra["library"]
    paths, records, programs = set(), set(), set()
    for file in files.documentation_pages():
        if file.src_uri.endswith(".md"):
            markdown, meta = get_data(file.content_string)
            with _named(file.src_uri):
                paths |= macros.shown_files(markdown, meta.get("kernel", ""), _lesson(file.src_uri))
                programs |= macros.shown_programs(markdown)
                for kernel in macros.shown_kernels(markdown):
                    records |= {
                        compiled_uri(kernel, one.record["target"]) for one in library.compiled(kernel)
                    }
    for path in sorted(paths):
        description = WORDS[_lang(config)]["source"].format(path)
        content = (
            f"---\ntitle: {path}\ndescription: {description}\n"
            f"source_file: {path}\nsearch: {{exclude: true}}\n---\n"
            f"# `{path}` {{#source}}\n\n{description}\n\n```listing\n{path}\n```\n"
        )
        files.append(File.generated(config, macros.source_uri(path), content=content))
    for uri in sorted(records):
        path = library.root / FOLDER / Path(uri).name
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    for one in sorted(programs):
        files.append(File.generated(config, run_page.program_uri(*one), content=program(*one)))
    return files


@contextmanager
def _named(src_uri: str) -> Iterator[None]:
    """Turns a PageError into the build error that names the page."""
    try:
        yield
    except PageError as error:
        raise PluginError(f"{src_uri}: {error}") from error


def on_page_markdown(markdown: str, page: MkDocsPage, config: MkDocsConfig, files: Files) -> str:
    if not page.file.src_uri.endswith(".md"):
        return markdown

    def url(uri: str) -> str:
        return get_relative_url(files.get_file_from_path(uri).url, page.url)

    page.macros = macros.Page(
        lang=_lang(config),
        lesson=_lesson(page.file.src_uri),
        kernel=page.meta.get("kernel", ""),
        is_source="source_file" in page.meta,
        url=url,
    )
    with _named(page.file.src_uri):
        return macros.expand(markdown, page.macros, config.extra["library"])


def on_page_content(html: str, page: MkDocsPage, config: MkDocsConfig, files: Files) -> str:
    with _named(page.file.src_uri):
        if page.file.src_uri.endswith(".ipynb"):
            page.meta.update(_notebook_meta(page.file))
            page.toc = get_toc([{"level": 1, "id": "section-1", "name": page.title, "children": []}])
            return lighten(html, Path(page.file.src_uri).name, WORDS[_lang(config)]["notebook"])
        # An empty corner heads nothing: to a screen reader it is a cell.
        return macros.fill(html, page.macros).replace("<th></th>", "<td></td>")


def _notebook_meta(file: File) -> dict:
    """A notebook's front matter. Search leads to lessons, so it leaves notebooks out."""
    metadata = json.loads(Path(file.abs_src_path).read_text(encoding="utf-8"))["metadata"]
    if not metadata.get("description"):
        raise PageError("the notebook's metadata has no 'description'")
    return {"description": metadata["description"], "search": {"exclude": True}}


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> None:
    pages = [file.page for file in files.documentation_pages() if file.page]
    try:
        config.extra["formulas"].draw((page.file.src_uri, page.content or "") for page in pages)
    except PageError as error:
        raise PluginError(str(error)) from error
    except NoKatexError as error:
        log.warning("formulas are shown as TeX: %s", error)


def on_page_context(context: dict, page: MkDocsPage, config: MkDocsConfig, nav: Navigation) -> dict:
    page.content = config.extra["formulas"].put(page.content)  # after the search has read the TeX
    context["languages"] = _languages(config, context["base_url"], "" if page.is_homepage else page.url)
    context["runner"] = f"{_site_root(config, context['base_url'])}/{RUNNER}/"
    if config.repo_url and "source_file" in page.meta:
        page.edit_url = f"{config.repo_url}edit/{BRANCH}/{page.meta['source_file']}"
    return context


def on_template_context(context: dict, template_name: str, config: MkDocsConfig) -> dict:
    context["languages"] = _languages(config, context["base_url"], "")
    return context


def _languages(config: MkDocsConfig, base_url: str, path: str) -> list[dict[str, str]]:
    """The page at `path` in every language: `href` relative to the page at hand, `url` in full."""
    languages = config.extra["languages"]
    here = next(language["path"] for language in languages if language["lang"] == _lang(config))
    root = _site_root(config, base_url)
    site = config.site_url.removesuffix(here)
    return [
        {**language, "href": f"{root}/{language['path']}{path}", "url": f"{site}{language['path']}{path}"}
        for language in languages
    ]


def _site_root(config: MkDocsConfig, base_url: str) -> str:
    """The root of both languages, relative to the page at hand."""
    return base_url + "/.." * (Path(config.config_file_path).name == ENGLISH)


def on_post_build(config: MkDocsConfig) -> None:
    _mend_search(Path(config.site_dir))
    if Path(config.config_file_path).name != ENGLISH:
        place_runner(Path(config.site_dir))
        _build_english(config)


def _mend_search(site: Path) -> None:
    """Let the theme's search look at the last character of a Chinese query.

    It cuts a query into words that the index knows, by a loop that stops one character short: of 带宽 it
    would look up 带 alone.
    """
    for worker in site.glob("assets/javascripts/workers/search.*.min.js"):
        script = worker.read_text(encoding="utf-8")
        if script.count(SHORT_LOOP) != 1:
            raise PluginError(
                f"{worker.name} does not hold {SHORT_LOOP!r} once; is the theme's search another?"
            )
        worker.write_text(script.replace(SHORT_LOOP, WHOLE_LOOP), encoding="utf-8")


def _build_english(config: MkDocsConfig) -> None:
    english = _root(config) / ENGLISH
    if not english.is_file():
        return
    child = load_config(
        str(english),
        site_dir=str(Path(config.site_dir) / "en"),
        site_url=config.site_url.rstrip("/") + "/en/",
        strict=config.strict,
    )
    child.plugins.on_startup(**_startup)
    serve_url = child.site_url if _startup["command"] == "serve" else None
    build(child, serve_url=serve_url, dirty=_startup["dirty"])
