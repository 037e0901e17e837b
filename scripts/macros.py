"""What a page writes instead of typing: listings, reading blocks, and `{{ kind:name }}` macros.

A page is walked once, line by line, before Markdown sees it. Everything it names is looked up then, so a
wrong name fails with the page and the name. Inline macros become text or links on the spot. Whole blocks
(listings, compiled kernels, tables, figures) leave a token behind, which `fill` replaces by their HTML after
Markdown is done: no Markdown rule can touch them. They stand on lines of their own.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from scripts import compiled_page, drill_page, explore_page, run_page, skeletons
from scripts.library import Library
from scripts.listing import PageError, render, span_text, split_spec
from scripts.run_program import case_path

MACRO = re.compile(r"\{\{\s*(\w+):\s*([^{}\s]+)\s*\}\}")
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w-]*)")
BLOCK = re.compile(r"^(\s*)(/{3,})\s*(?:(\w[\w-]*)\s*(?:\|\s*(.*?))?)?\s*$")
FENCES = ("listing", "compiled")  # the languages of fences that we expand
TOKEN = "\ue000{}\ue001"


@dataclass(frozen=True)
class Line:
    """A line of a page, and what the reading block around it shows."""

    text: str
    kind: str = "text"  # "text", "code" (in a fence of another language), "reading", or one of FENCES
    spec: str = ""  # what a fence of ours or a reading block shows
    reading: str = ""


def walk(markdown: str) -> Iterator[Line]:
    """The page's lines; a fence of ours is one line of its kind, a reading block's head one of "reading"."""
    fence, kind, listing = "", "", None  # the open fence; its kind, and its indent and body, where it is ours
    blocks: list[tuple[str, str]] = []  # open blocks: (slashes, spec of the listing beside it or "")
    for text in markdown.splitlines():
        reading = next((spec for _, spec in reversed(blocks) if spec), "")
        m = FENCE.match(text)
        if fence:
            closes = m and m[2].startswith(fence) and text.strip() == m[2]
            fence = "" if closes else fence
            if listing is None:
                yield Line(text, "code", reading=reading)
            elif closes:
                yield Line(listing[0], kind, "\n".join(listing[1:]), reading)
            else:
                listing.append(text.strip())
        elif m:
            fence, kind, listing = m[2], m[3], [m[1]] if m[3] in FENCES else None
            if listing is None:
                yield Line(text, "code", reading=reading)
        elif m := BLOCK.match(text):
            indent, slashes, name, spec = m.groups(default="")
            if name == "reading":
                blocks.append((slashes, spec))
                yield Line(f"{indent}{slashes} reading", "reading", spec)
                continue
            if name:
                blocks.append((slashes, ""))
            elif not any(slashes == other for other, _ in blocks):
                raise PageError(f"{slashes!r} closes no block")
            else:
                while blocks.pop()[0] != slashes:
                    pass
            yield Line(text, reading=reading)
        else:
            yield Line(text, reading=reading)
    if fence or blocks:
        raise PageError(f"the {f'fence {fence}' if fence else f'block {blocks[-1][0]}'} never ends")


@dataclass
class Page:
    """The page in hand, and what was gathered from it."""

    lang: str
    lesson: str = ""  # "" where the page is no lesson
    kernel: str = ""  # the file that `line:NAME` speaks of, from the front matter
    is_source: bool = False  # a full-source page: its rows are L1, L2, ... and its numbers link to themselves
    url: Callable[[str], str] = lambda uri: uri  # from another page's place in the docs to its relative URL
    fragments: list[str] = field(default_factory=list)  # HTML of blocks, by the number in their token
    shown: Counter[str] = field(default_factory=Counter)  # how often each listing was shown


def source_uri(path: str) -> str:
    """Where the full-source page of a file stands among the docs."""
    return f"source/{path.removesuffix('.py')}.md"


def shown_files(markdown: str, kernel: str, lesson: str = "") -> set[str]:
    """Files that a page shows or names lines of, so which need a full-source page."""
    paths = {kernel} if kernel else set()
    for line in walk(markdown):
        if line.spec and line.kind != "compiled":
            paths.add(split_spec(line.spec)[0])
        for kind, name in MACRO.findall(line.text):
            if kind == "line" and ":" in name:
                paths.add(name.partition(":")[0])
            if kind == "hints":
                one, _, level = name.rpartition("/")
                paths.add(skeletons.load(one or lesson, level).source.path)
    return paths | {case_path(*program) for program in shown_programs(markdown)}


def shown_kernels(markdown: str) -> set[str]:
    """Kernels that a page shows compiled."""
    return {name for line in walk(markdown) if line.kind == "compiled" for name in line.spec.split()}


def shown_programs(markdown: str) -> set[tuple[str, str]]:
    """(lesson, level) of every program that a page lets the reader run; level "": the solution."""
    names = [name for line in walk(markdown) for kind, name in MACRO.findall(line.text) if kind == "run"]
    panels = [(lesson, level) for lesson, _, level in (name.partition("/") for name in names)]
    return {(lesson, one) for lesson, level in panels for one in run_page.levels_shown(lesson, level)}


def expand(markdown: str, page: Page, library: Library) -> str:
    """The page's Markdown with every macro expanded; block HTML is left in `page.fragments`."""
    out, prefix = [], ""
    for line in walk(markdown):
        if line.kind == "listing":
            out.append(f"\n{line.text}{_listing(line.spec, page, library)[0]}\n")
            continue
        if line.kind == "compiled":
            block = compiled_page.render(line.spec.split(), library, page.lang, page.url)
            out.append(f"\n{line.text}{_token(page, block)}\n")
            continue
        if line.kind == "reading":
            token, prefix = _listing(line.spec, page, library)
            out.append(f"{line.text} | {token}")
            continue
        text = MACRO.sub(partial(_macro, line=line, prefix=prefix, page=page, library=library), line.text)
        if "{{ " in text and line.kind == "text":
            raise PageError(f"{line.text.strip()!r} holds no macro; wanted '{{{{ kind:name }}}}'")
        out.append(text)
    return "\n".join(out)


def fill(content: str, page: Page) -> str:
    """The page's HTML with each fragment in place of its token."""
    for i, fragment in enumerate(page.fragments):
        token = TOKEN.format(i)
        if content.count(token) != 1:
            raise PageError(f"a block was lost in Markdown; it needs a line of its own: {fragment[:120]!r}")
        content = re.sub(rf"<p>\s*{token}\s*</p>|{token}", lambda _, html=fragment: html, content)
    return content


def _token(page: Page, fragment: str) -> str:
    page.fragments.append(fragment)
    return TOKEN.format(len(page.fragments) - 1)


def _listing(spec: str, page: Page, library: Library) -> tuple[str, str]:
    """(token, prefix of the row ids) of a listing; a section shown twice gets ids of its own each time."""
    path, section = split_spec(spec)
    source = library.source(path)
    page.shown[spec] += 1
    again = f"{page.shown[spec]}-" if page.shown[spec] > 1 else ""
    stem = Path(path).stem
    prefix = "" if page.is_source else f"{stem}-{section}-{again}" if section else f"{stem}-{again}"
    target = "" if page.is_source else page.url(source_uri(path))
    return _token(page, render(source, section, target, prefix)), prefix


def _macro(m: re.Match[str], line: Line, prefix: str, page: Page, library: Library) -> str:
    kind, name = m.groups()
    if kind == "line":
        return _line_ref(name, line.reading, prefix, page, library)
    if kind == "fact":
        return library.fact(name)
    if kind == "compiled":
        return compiled_page.link(name, library)
    if kind == "prod":
        text, url = library.production(name)
        return f'<a class="production" href="{html.escape(url)}">{_literal(text)}</a>'
    if kind not in ("table", "figure", "hints", "mutant", "pitfall", "run", "explore"):
        known = "line, compiled, fact, table, figure, prod, hints, mutant, pitfall, run, explore"
        raise PageError(f"'{m[0]}': no macro {kind!r}; there are {known}")
    if line.text.strip() != m[0]:
        raise PageError(f"'{m[0]}' needs a line of its own")
    if kind == "run":
        return f"\n{line.text[: m.start()]}{_run(name, page, library)}\n"
    if kind == "explore":
        return f"\n{line.text[: m.start()]}{_token(page, explore_page.render(name, page.lang, library))}\n"
    lesson, _, name = name.rpartition("/")
    if not (lesson := lesson or page.lesson):
        raise PageError(f"'{m[0]}': this page belongs to no lesson; wanted '{kind}:LESSON/{name}'")
    indent = line.text[: m.start()]
    if kind == "hints":
        return _hints(lesson, name, indent, page)
    if kind in ("mutant", "pitfall"):
        block = drill_page.mutant if kind == "mutant" else drill_page.pitfall
        fragment = block(f"{lesson}/{name}", page.lang)
    elif kind == "table":
        fragment = library.generated(lesson, f"{name}.{page.lang}.html")
    else:
        svg = library.generated(lesson, f"{name}.{page.lang}.svg")
        fragment = f'<figure class="drawing">{svg}</figure>'
    return f"\n{indent}{_token(page, fragment)}\n"


def _hints(lesson: str, level: str, indent: str, page: Page) -> str:
    """The hints of a level as folded blocks, the solution in the last."""
    blocks = drill_page.hints(lesson, level, page.lang)
    target = page.url(source_uri(skeletons.load(lesson, level).source.path))
    title, listings = drill_page.solution(lesson, level, page.lang, target)
    blocks.append((title, "\n\n".join(_token(page, listing) for listing in listings)))
    rows = []
    for title, text in blocks:
        rows += ["", f'??? question "{title}"', *(f"    {row}" for row in text.splitlines()), ""]
    return "\n".join(indent + row for row in rows)


def _run(name: str, page: Page, library: Library) -> str:
    """The token of a program to run: `run:LESSON`, or `run:LESSON/LEVEL`, the level to begin with."""
    lesson, _, level = name.partition("/")
    path = case_path(lesson, level)
    listing = render(library.source(path), "", page.url(source_uri(path)), f"case-{lesson}-")
    return _token(page, run_page.panel(lesson, level, page.lang, listing, page.url))


def _line_ref(name: str, reading: str, prefix: str, page: Page, library: Library) -> str:
    """A link to named lines: into the listing beside it where that shows them, else into the full source."""
    path, _, name = name.rpartition(":")
    if not (path := path or page.kernel):
        raise PageError(f"'line:{name}': no 'kernel' in the page's front matter; wanted 'line:PATH:{name}'")
    first, last = library.source(path).mark(name)
    beside, section = split_spec(reading)
    lit = path == beside and {first, last} <= set(library.source(path).section(section))
    href = f"#{prefix}L{first}" if lit else f"{page.url(source_uri(path))}#L{first}"
    data = f' data-lines="{first}-{last}"' if lit else ""
    return f'<a class="line-ref" href="{href}"{data}>{span_text(first, last)}</a>'


def _literal(text: str) -> str:
    """Text in which Markdown finds nothing to mark up."""
    return re.sub(r"[_*`\[\]]", lambda m: f"&#{ord(m[0])};", html.escape(text))
