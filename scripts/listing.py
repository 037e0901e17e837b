"""Named sections of source files, shown with their true line numbers.

A section is what stands between the comments `region NAME` and `endregion NAME`, each on a line of its own.
A line that ends in the comment `#: name` (or `#: a, b`) is named; a name on several lines names the span
from the first to the last. Pages speak of sections and names only, so a page follows its source.
Neither kind of comment is ever shown; line numbers are the file's own and keep the gaps they leave.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES, Token, _TokenType
from pygments.util import ClassNotFound

from scripts.marks import MARK, NAME, REGION, PageError

Span = tuple[int, int]  # first and last line, both included, counted from 1
Tokens = list[tuple[_TokenType, str]]  # one line


@dataclass(frozen=True)
class Source:
    """One file: its shown lines (number -> text, markers stripped), sections and named lines."""

    path: str
    lines: dict[int, str]
    tokens: dict[int, Tokens]
    sections: dict[str, Span]
    marks: dict[str, Span]

    def section(self, name: str) -> list[int]:
        """The lines that a section shows, without blank ones at both ends; "" is the whole file."""
        if not name:
            shown = list(self.lines)
        elif name in self.sections:
            first, last = self.sections[name]
            shown = [no for no in self.lines if first <= no <= last]
        else:
            raise PageError(f"{self.path} has no section {name!r}; it has {_names(self.sections)}")
        while shown and not self.lines[shown[0]]:
            shown.pop(0)
        while shown and not self.lines[shown[-1]]:
            shown.pop()
        if not shown:
            raise PageError(f"{self.path}: section {name!r} shows no line")
        return shown

    def mark(self, name: str) -> Span:
        """The span of lines that a `#: name` comment names."""
        if name not in self.marks:
            raise PageError(f"{self.path} has no line named {name!r}; it has {_names(self.marks)}")
        return self.marks[name]


def _names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none"


def split_spec(spec: str) -> tuple[str, str]:
    """`path:section` -> (path, section); `path` alone -> (path, "") for the whole file."""
    path, _, section = spec.strip().partition(":")
    return path, section


def read_source(root: Path, path: str) -> Source:
    """Read `root/path`. Raises PageError where the file is missing or a marker is malformed."""
    file = root / path
    if not path or not file.resolve().is_relative_to(root.resolve()) or not file.is_file():
        raise PageError(f"{path!r} is not a file of this repository")
    return parse_source(path, file.read_text(encoding="utf-8"))


def parse_source(path: str, text: str) -> Source:
    """Parse a file's text; `path` chooses the lexer, which tells comments from strings."""
    lines: dict[int, str] = {}
    tokens: dict[int, Tokens] = {}
    sections: dict[str, Span] = {}
    marks: dict[str, Span] = {}
    open_sections: list[tuple[str, int]] = []
    for no, row in enumerate(_lex(path, text), 1):
        where = f"{path}:{no}"
        if row and row[-1][0] in Token.Comment:
            comment = row[-1][1]
            alone = not "".join(text for _, text in row[:-1]).strip()
            if alone and (region := REGION.match(comment)):
                _region(where, no, region[1], region[2], open_sections, sections)
                continue
            if mark := MARK.search(comment):
                if alone and not mark.start():
                    raise PageError(f"{where}: {comment!r} stands alone; it belongs after the line it names")
                for name in _mark_names(where, mark[1]):
                    marks[name] = (marks.get(name, (no, no))[0], no)
                row = _rstrip([*row[:-1], (row[-1][0], comment[: mark.start()])])
        tokens[no] = row
        lines[no] = "".join(text for _, text in row)
    if open_sections:
        name, no = open_sections[-1]
        raise PageError(f"{path}:{no}: section {name!r} never ends; wanted '# endregion {name}'")
    return Source(path, lines, tokens, sections, marks)


def _lex(path: str, text: str) -> list[Tokens]:
    """The file as lines of tokens. It is lexed whole, so a section inside a docstring is coloured as one."""
    try:
        lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound as error:
        raise PageError(f"{path}: no syntax highlighting for this kind of file") from error
    rows: list[Tokens] = [[]]
    for kind, value in lexer.get_tokens(text.removesuffix("\n")):
        for i, part in enumerate(value.split("\n")):
            if i:
                rows.append([])
            if part:
                rows[-1].append((kind, part))
    return [_rstrip(row) for row in rows]


def _rstrip(row: Tokens) -> Tokens:
    """The line without white space at its end."""
    while row and not (text := row[-1][1].rstrip()):
        row = row[:-1]
    return [*row[:-1], (row[-1][0], text)] if row else []


def _mark_names(where: str, text: str) -> list[str]:
    names = re.split(r"\s*,\s*", text)
    if not all(NAME.fullmatch(name) for name in names):
        raise PageError(f"{where}: '#: {text}' is no line name; wanted '#: name' or '#: a, b'")
    return names


def _region(
    where: str, no: int, kind: str, name: str, opened: list[tuple[str, int]], sections: dict[str, Span]
) -> None:
    """Open or close a section at line `no`; sections nest, and a name is used once."""
    if not NAME.fullmatch(name):
        raise PageError(f"{where}: '# {kind} {name}' needs one name")
    if kind == "region":
        if name in sections or any(name == other for other, _ in opened):
            raise PageError(f"{where}: section {name!r} starts a second time")
        opened.append((name, no))
        return
    if not opened or opened[-1][0] != name:
        inner = f"the innermost open section is {opened[-1][0]!r}" if opened else "no section is open"
        raise PageError(f"{where}: '# endregion {name}', but {inner}")
    sections[name] = (opened.pop()[1] + 1, no - 1)


def row_html(tokens: Tokens, indent: int) -> str:
    """One line as HTML, its first `indent` characters left out."""
    out = []
    for kind, text in tokens:
        css = STANDARD_TYPES.get(kind) or STANDARD_TYPES.get(kind.parent, "")
        cut = min(indent, len(text))
        indent -= cut
        if text := html.escape(text[cut:], quote=False):
            out.append(f'<span class="{css}">{text}</span>' if css and css != "w" else text)
    return "".join(out)


def span_text(first: int, last: int) -> str:
    """How lines are named in print: "L57" or "L57–L59"."""
    return f"L{first}" if first == last else f"L{first}–L{last}"


def render(source: Source, section: str, source_page: str, prefix: str) -> str:
    """HTML of a listing: a caption and one row a line.

    `source_page` is the URL of the full-source page, relative to the page that shows the listing ("" on
    that page itself); row ids are `prefix` + "L57". Numbers are CSS content, so they are not copied.
    """
    shown = source.section(section)
    indent = min(len(text) - len(text.lstrip()) for no in shown if (text := source.lines[no]))
    title = html.escape(f"{source.path} · {span_text(shown[0], shown[-1])}")
    rows = "\n".join(
        f'<span class="row" id="{prefix}L{no}">'
        f'<a class="no" href="{source_page}#L{no}" data-no="{no}" tabindex="-1" aria-hidden="true"></a>'
        f"{row_html(source.tokens[no], indent)}</span>"
        for no in shown
    )
    return (
        '<div class="listing highlight" data-search-exclude="true">'
        f'<a class="listing-caption" href="{source_page}#L{shown[0]}">{title}</a>'
        f'<pre style="--digits:{len(str(shown[-1]))}">'
        f'<code tabindex="0" role="region" aria-label="{title}">'
        f'<span class="rows">{rows}</span></code></pre></div>'
    )
