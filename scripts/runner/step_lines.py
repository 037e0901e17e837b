"""The statements of a source file by line, and the loops around each: what a step of the recorder is."""

import ast
import linecache
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TEXT_LINES = 8  # of a long statement; the file has the rest


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement: a simple one whole, a compound one as far as its header goes."""

    file: str  # as the frames of it name it
    line: int  # 1-based, of its first line
    end: int  # of its last
    text: str  # without the indentation that all its lines share
    loops: tuple["Statement", ...] = ()  # the loops that repeat it, from the outermost in
    variable: str | None = None  # of a `for`: its target; of a `while`: ""
    last: int = 0  # of a loop: the last line of its body

    @property
    def is_loop(self) -> bool:
        return self.variable is not None


@dataclass
class SourceLines:
    """A file as its frames name it; `at` gives the statement of a line."""

    file: str
    _by_line: dict[int, Statement] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = linecache.getlines(self.file)
        try:
            tree = ast.parse("".join(self._lines))
        except SyntaxError:  # not the text that runs: every line is then a statement of its own
            return
        for node in tree.body:
            self._add(node, ())

    @property
    def name(self) -> str:
        """What a reader calls the file: its place in the project, else its last part."""
        path = Path(self.file)
        return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name

    @property
    def own(self) -> bool:
        """Whether the reader wrote it: a text that was given a name, no file with a place of its own."""
        return not Path(self.file).is_absolute()

    def at(self, line: int) -> Statement:
        if line not in self._by_line:
            self._by_line[line] = Statement(self.file, line, line, self._text(line, line))
        return self._by_line[line]

    def _add(self, node: ast.stmt, loops: tuple[Statement, ...]) -> None:
        body = getattr(node, "body", None)
        first, end = node.lineno, node.end_lineno or node.lineno
        if not isinstance(body, list):
            statement = Statement(self.file, first, end, self._text(first, end), loops)
            self._claim(statement, first, end)
            return
        header = max(first, body[0].lineno - 1)
        header = min(header, self._end_of_header(node, first))
        variable, last = None, 0
        if isinstance(node, ast.For | ast.While):
            variable = ast.unparse(node.target) if isinstance(node, ast.For) else ""
            last = max(child.end_lineno or child.lineno for child in body)
        statement = Statement(self.file, first, header, self._text(first, header), loops, variable, last)
        self._claim(statement, first, header)
        inner = (*loops, statement) if statement.is_loop else loops
        for child in body:
            self._add(child, inner)
        for name in ("orelse", "finalbody"):
            for child in getattr(node, name, []):
                self._add(child, loops)
        for handler in getattr(node, "handlers", []):
            for child in handler.body:
                self._add(child, loops)

    @staticmethod
    def _end_of_header(node: ast.stmt, first: int) -> int:
        """The last line of what stands before the body: comments above the body are not of it."""
        parts = [getattr(node, name, None) for name in ("iter", "test", "args", "returns")]
        parts += [item.context_expr for item in getattr(node, "items", [])]
        inner = [n for part in parts if part is not None for n in ast.walk(part)]
        return max([first, *(n.end_lineno for n in inner if getattr(n, "end_lineno", None))])

    def _claim(self, statement: Statement, first: int, end: int) -> None:
        for line in range(first, end + 1):
            self._by_line.setdefault(line, statement)

    def _text(self, first: int, end: int) -> str:
        lines = [line.rstrip("\n") for line in self._lines[first - 1 : min(end, first + _TEXT_LINES - 1)]]
        lines = [line.split("  #: ")[0].rstrip() for line in lines]
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        return "\n".join(line[indent:] for line in lines)
