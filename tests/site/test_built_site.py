"""The built HTML: every link and anchor resolves, nothing comes from outside, both languages are whole."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag

from tests.site.conftest import REPO_URL, SITE_URL

LANGUAGES = {"zh": "", "en": "en/"}
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src",
          "embed": "src", "object": "data", "use": "href", "image": "href"}  # fmt: skip
LEFT_OVER = re.compile(r"\{\{|\}\}|^\s*/{3,}|[\ue000\ue001]|\{\s*#[\w-]+\s*\}", re.MULTILINE)
CSS_URL = re.compile(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)")


@cache
def soup(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(file: Path) -> set[str]:
    return {tag["id"] for tag in soup(file).find_all(id=True)} | {"", "__top"}


def pages(site: Path, lang: str = "") -> dict[str, Path]:
    """A language's pages, or all: URL path from the language's root -> file. The 404 pages are apart."""
    root = site / LANGUAGES.get(lang, "")
    files = {f.relative_to(root).as_posix().removesuffix("index.html"): f for f in root.rglob("index.html")}
    return {path: f for path, f in sorted(files.items()) if lang != "zh" or not path.startswith("en/")}


def resolve(site: Path, file: Path, path: str) -> Path:
    """The file of the site that a URL path on this page means."""
    path = unquote(path)
    target = site / path.lstrip("/") if path.startswith("/") else (file.parent / path if path else file)
    target = target.resolve()
    return target / "index.html" if target.is_dir() else target


def is_outside(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc or parts.scheme) and parts.scheme != "data"


def test_links_and_anchors_resolve(site: Path) -> None:
    broken, seen = [], 0
    for file in [*pages(site).values(), site / "404.html", site / "en/404.html"]:
        for tag in soup(file).find_all(lambda tag: tag.get("href") or tag.get("src")):
            url = tag.get("href") or tag.get("src")
            if is_outside(url) or url.startswith("data:"):
                continue
            seen += 1
            target = resolve(site, file, urlsplit(url).path)
            fragment = unquote(urlsplit(url).fragment)
            if not target.is_file() or (target.suffix == ".html" and fragment not in anchors(target)):
                broken.append((file.relative_to(site).as_posix(), url))
    assert seen > 200
    assert not broken


def test_style_sheets_name_files_that_exist(site: Path) -> None:
    sheets = list(site.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        for match in CSS_URL.finditer(sheet.read_text(encoding="utf-8")):
            url = match[1] or match[2]
            assert not is_outside(url), f"{sheet}: {url}"
            assert url.startswith(("data:", "#")) or resolve(site, sheet, urlsplit(url).path).is_file(), url


def loaded_urls(tag: Tag) -> list[str]:
    """URLs that the browser would fetch for this element by itself."""
    urls = [tag[LOADED[tag.name]]] if tag.get(LOADED.get(tag.name, "")) else []
    if tag.name == "link" and {"stylesheet", "icon", "preload", "modulepreload"} & set(tag.get("rel", [])):
        urls.append(tag["href"])
    style = tag.get("style", "") + (tag.string or "" if tag.name == "style" else "")
    return urls + [m[1] or m[2] for m in CSS_URL.finditer(style)] + tag.get("srcset", "").split()[::2]


def test_nothing_is_fetched_from_outside(site: Path) -> None:
    for file in site.rglob("*.html"):
        for tag in soup(file).find_all(True):
            outside = [url for url in loaded_urls(tag) if is_outside(url)]
            assert not outside, f"{file.relative_to(site)}: {outside}"
            scripted = re.findall(r"https?://[^\s\"'`]+", tag.get_text() if tag.name == "script" else "")
            assert not scripted or tag.get("type") == "application/json", f"{file}: {scripted}"


def test_no_id_stands_twice(site: Path) -> None:
    for file in site.rglob("*.html"):
        ids = [tag["id"] for tag in soup(file).find_all(id=True)]
        assert len(ids) == len(set(ids)), f"{file}: {sorted({i for i in ids if ids.count(i) > 1})}"


def test_both_languages_have_the_same_pages(site: Path) -> None:
    assert set(pages(site, "zh")) == set(pages(site, "en"))
    for root in (site, site / "en"):
        assert (root / "404.html").is_file() and (root / "sitemap.xml").is_file()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_page_names_itself_and_its_other_language(site: Path, lang: str) -> None:
    for path, file in pages(site, lang).items():
        page = soup(file)
        assert page.html["lang"] == lang
        links = {link["hreflang"]: link["href"] for link in page.head.select("link[hreflang]")}
        urls = {language: f"{SITE_URL}{root}{path}" for language, root in LANGUAGES.items()}
        assert links == {**urls, "x-default": urls["zh"]}, file
        assert page.select_one("link[rel=canonical]")["href"] == urls[lang]
        other = next(language for language in LANGUAGES if language != lang)
        switch = page.select_one("a.language-switch")
        assert switch["hreflang"] == other
        assert resolve(site, file, switch["href"]) == site / LANGUAGES[other] / path / "index.html"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_page_has_a_description_and_one_title(site: Path, lang: str) -> None:
    described: dict[str, str] = {}
    for path, file in pages(site, lang).items():
        description = soup(file).select_one("meta[name=description]")["content"]
        assert description.strip(), file
        assert description not in described, (
            f"{path} and {described.get(description)} have the same description"
        )
        described[description] = path
        assert len(soup(file).select("article h1")) == 1, file


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_page_can_be_edited_and_reported(site: Path, lang: str) -> None:
    for path, file in pages(site, lang).items():
        edit, report = (link["href"] for link in soup(file).select(".page-links a"))
        tree = "" if path.startswith("source/") else f"docs/{lang}/"
        assert edit.startswith(f"{REPO_URL}/edit/main/{tree}"), file
        source = Path(__file__).parents[2] / edit.removeprefix(f"{REPO_URL}/edit/main/")
        assert source.is_file(), edit
        assert report.startswith(f"{REPO_URL}/issues/new?title=")


def test_no_syntax_of_ours_is_left_over(site: Path) -> None:
    for file in pages(site).values():
        for text in soup(file).article.find_all(string=LEFT_OVER):
            ours = text.find_parent(["pre", "code"]) or text.find_parent(class_="arithmatex")
            assert ours, f"{file}: {text.strip()[:80]!r}"


def test_every_formula_is_drawn(site: Path) -> None:
    seen = 0
    for file in pages(site).values():
        page = soup(file)
        for formula in page.select(".arithmatex"):
            assert formula.select_one(".katex math") and formula.select_one(".katex-html"), (
                f"{file}: {formula}"
            )
            seen += 1
        styled = [link for link in page.head.select("link[rel=stylesheet]") if "katex" in link["href"]]
        assert len(styled) == bool(page.select(".arithmatex")), file
    assert seen > 200


def test_source_pages_show_every_line_once(site: Path) -> None:
    sources = {path: file for path, file in pages(site).items() if path.startswith("source/")}
    assert sources
    for path, file in sources.items():
        rows = [row["id"] for row in soup(file).select(".listing .row")]
        numbers = [int(row.removeprefix("L")) for row in rows]
        assert numbers == sorted(set(numbers)), path


def test_python_files_of_notebooks_are_not_published(site: Path) -> None:
    assert not list(site.rglob("*.py"))


def test_a_missing_page_is_explained_in_both_languages(site: Path) -> None:
    for file in (site / "404.html", site / "en/404.html"):
        assert {tag["lang"] for tag in soup(file).select("article [lang]")} == {"zh", "en"}
