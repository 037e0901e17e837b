"""The record that scripts/runner/steps.py makes, as plain data, and the tables that its steps refer to.

    kernel, program, launch, grid    what was recorded; launch is null where no launch has such a program
    launches   [{launch, grid}]      every launch of that kernel
    files      [{name, own}]         own: what the reader wrote, not a module of the project
    functions  [{name, file, line}]
    places     [{function, line, end, text}]             a statement; a compound one as far as its header goes
    calls      [{function, parent, line, arguments}]     a function at work; parent, line: its caller, where
    loops      [{call, place, variable, parent, count}]  a loop at work; parent: the iteration it is inside of
    iterations [{loop, number, value, first, last}]      value: of the loop's variable; first, last: steps
    steps      [{place, call, at, changed}]              at: innermost iteration; changed: variable -> value
    values     [step_values.encode(...)]
    cut        null, or {"limit": "steps" | "values", "most": n}: the record ends before the program does
    failed     null, or the step whose line raised

Every reference is an index. A step is what one execution of a statement did; where it called a function, the
steps of that come first. The variable of a `while` is "".
"""

from types import CodeType

from scripts.runner.step_lines import SourceLines, Statement
from scripts.runner.step_values import encode


class Record:
    """The tables, filled as the program goes on."""

    def __init__(
        self, kernel: str, program: tuple[int, int, int], most_steps: int, most_numbers: int
    ) -> None:
        self.most_steps, self.most_numbers = most_steps, most_numbers
        self.numbers = 0
        self.bases: dict[str, tuple[int, int]] = {}
        self.files, self.functions, self.places, self.calls = [], [], [], []
        self.loops, self.iterations, self.steps, self.values = [], [], [], []
        self.head = {"kernel": kernel, "program": list(program), "launch": None, "grid": None, "launches": []}
        self.cut: dict | None = None
        self.failed: int | None = None
        self._known: dict[object, int] = {}  # files by name, functions by code, places by statement

    def data(self) -> dict:
        tables = ("files", "functions", "places", "calls", "loops", "iterations", "steps", "values")
        lists = {name: getattr(self, name) for name in tables}
        return {**self.head, **lists, "cut": self.cut, "failed": self.failed}

    def file(self, lines: SourceLines) -> int:
        return self._index(lines.file, self.files, lambda: {"name": lines.name, "own": lines.own})

    def function(self, code: CodeType, lines: SourceLines) -> int:
        return self._index(
            code,
            self.functions,
            lambda: {"name": code.co_name, "file": self.file(lines), "line": code.co_firstlineno},
        )

    def place(self, statement: Statement, function: int) -> int:
        return self._index(
            statement,
            self.places,
            lambda: {
                "function": function,
                "line": statement.line,
                "end": statement.end,
                "text": statement.text,
            },
        )

    def value(self, value: object, name: str) -> int | None:
        """The index of a new value of a variable; None for what is not shown."""
        data = encode(value, self.bases, name)
        if data is None:
            return None
        self.numbers += _count(data.get("data"))
        self.values.append(data)
        return len(self.values) - 1

    def add_call(self, function: int, parent: int | None, line: int | None, arguments: dict) -> None:
        self.calls.append({"function": function, "parent": parent, "line": line, "arguments": arguments})

    def add_loop(self, call: int, place: int, variable: str, parent: int | None) -> int:
        loop = {"call": call, "place": place, "variable": variable, "parent": parent, "count": 0}
        self.loops.append(loop)
        return len(self.loops) - 1

    def add_iteration(self, loop: int, value: int | None) -> int:
        number = self.loops[loop]["count"]
        self.loops[loop]["count"] += 1
        step = len(self.steps)
        self.iterations.append({"loop": loop, "number": number, "value": value, "first": step, "last": step})
        return len(self.iterations) - 1

    def add_step(self, place: int, call: int, at: int | None, changed: dict[str, int], failed: bool) -> None:
        step = len(self.steps)
        self.steps.append({"place": place, "call": call, "at": at, "changed": changed})
        while at is not None:
            self.iterations[at]["last"] = step
            at = self.loops[self.iterations[at]["loop"]]["parent"]
        if failed and self.failed is None:
            self.failed = step
        if len(self.steps) >= self.most_steps:
            self.cut = {"limit": "steps", "most": self.most_steps}
        elif self.numbers > self.most_numbers:
            self.cut = {"limit": "values", "most": self.most_numbers}

    def _index(self, key: object, table: list, make) -> int:
        if key not in self._known:
            row = make()
            self._known[key] = len(table)
            table.append(row)
        return self._known[key]


def _count(data: object) -> int:
    return sum(map(_count, data)) if isinstance(data, list) else 1
