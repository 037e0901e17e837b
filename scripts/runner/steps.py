"""What one program of a launch did, line by line, with the values of its variables after each line.

    with Recorder(kernel="_paged_decode_kernel", program=(0, 1, 0)) as recorder:
        paged_decode(...)
    recorder.data()    # plain data: scripts/runner/step_record.py

The interpreter runs a kernel as Python, under the kernel's own file name and line numbers. A trace function
sees each line of it, and of the @triton.jit functions that it calls; it is on while the wanted program runs.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import CodeType, FrameType

from triton.runtime import interpreter

from scripts.patching import patched
from scripts.runner.step_lines import SourceLines, Statement
from scripts.runner.step_record import Record

MAX_STEPS = 4000
MAX_NUMBERS = 300_000  # in all values together: some 6 MB of JSON


@dataclass
class _Loop:
    """A loop at work."""

    statement: Statement
    index: int
    iteration: int | None = None  # the one under way


@dataclass
class _Call:
    """A function at work."""

    index: int
    function: int
    frame: FrameType
    lines: SourceLines
    statement: Statement | None = None  # the one under way
    seen: dict[str, tuple[object, int | None]] = field(default_factory=dict)  # variable -> value, its index
    loops: list[_Loop] = field(default_factory=list)  # at work, from the outermost in
    failed: bool = False


class Recorder:
    """Records one program of the first launch of `kernel` that has it, or of the launch of that number."""

    def __init__(
        self,
        kernel: str,
        program: tuple[int, int, int],
        launch: int | None = None,
        max_steps: int = MAX_STEPS,
        max_numbers: int = MAX_NUMBERS,
    ) -> None:
        self.record = Record(kernel, program, max_steps, max_numbers)
        self.kernel, self.program, self.launch = kernel, tuple(program), launch
        self.launched = self.number = 0  # launches so far; the number of the one under way
        self.waiting = False  # inside the launch, the program not yet met
        self.stack: list[_Call] = []
        self.files: dict[str, SourceLines] = {}
        self.patches = ExitStack()

    def data(self) -> dict:
        return self.record.data()

    # The launch: which program runs.

    def __enter__(self) -> "Recorder":
        self.outer_trace = sys.gettrace()
        executor, builder = interpreter.GridExecutor, interpreter.interpreter_builder
        self.patches.enter_context(patched(executor, "__call__", self._execute(executor.__call__)))
        wrapper = self._set_grid_idx(builder.set_grid_idx)
        self.patches.enter_context(patched(builder, "set_grid_idx", wrapper))
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self.patches.close()

    def _execute(self, run: Callable) -> Callable:
        def wrapper(executor: interpreter.GridExecutor, *args: object, **kwargs: object) -> None:
            self.number, self.launched = self.launched, self.launched + 1
            mine = executor.fn.__name__ == self.kernel
            unmet = self.record.head["launch"] is None and self.launch in (None, self.number)
            self.waiting = mine and unmet
            try:
                run(executor, *args, **kwargs)
            finally:
                self._stop()
                self.waiting = False
                if mine:
                    grid = list(interpreter.interpreter_builder.grid_dim)
                    self.record.head["launches"].append({"launch": self.number, "grid": grid})

        return wrapper

    def _set_grid_idx(self, perform: Callable) -> Callable:
        def wrapper(x: int, y: int, z: int) -> None:
            self._stop()
            perform(x, y, z)
            if self.waiting and (x, y, z) == self.program:
                self.waiting = False
                grid = list(interpreter.interpreter_builder.grid_dim)
                self.record.head |= {"launch": self.number, "grid": grid}
                sys.settrace(self._enter)

        return wrapper

    def _stop(self) -> None:
        if sys.gettrace() == self._enter:
            sys.settrace(self.outer_trace)
        self.stack.clear()

    # The trace function: events of one program.

    def _enter(self, frame: FrameType, event: str, arg: object) -> Callable | None:
        """The global trace function: whether a function that is called is one of the reader's."""
        code, record = frame.f_code, self.record
        if event != "call" or record.cut or not _is_kernel_code(code):
            return None
        lines = self.files.get(code.co_filename)
        if lines is None:
            lines = self.files[code.co_filename] = SourceLines(code.co_filename)
        caller = self.stack[-1] if self.stack else None
        call = _Call(len(record.calls), record.function(code, lines), frame, lines)
        if caller is None:
            record.bases = _bases(frame.f_locals)
        line = caller.statement.line if caller and caller.statement else None
        record.add_call(call.function, caller and caller.index, line, self._changes(call))
        self.stack.append(call)
        return self._follow

    def _follow(self, frame: FrameType, event: str, arg: object) -> Callable | None:
        """The local trace function, of every function that `_enter` let in."""
        if self.record.cut or not self.stack or self.stack[-1].frame is not frame:
            return None
        call = self.stack[-1]
        if event == "line":
            statement = call.lines.at(frame.f_lineno)
            if statement is not call.statement:
                self._finish(call, statement)
                self._move(call, statement)
        elif event == "exception":
            call.failed = True
        elif event == "return":
            self._finish(call, None)
            self.stack.pop()
        return self._follow

    def _move(self, call: _Call, statement: Statement) -> None:
        """Leave the loops that do not hold the statement; enter it, if it is a loop."""
        call.statement = statement
        around = [*statement.loops, statement] if statement.is_loop else statement.loops
        while call.loops and call.loops[-1].statement not in around:
            call.loops.pop()
        if not statement.is_loop:
            return
        if call.loops and call.loops[-1].statement is statement:
            call.loops[-1].iteration = None  # back at the header: that iteration is over
            return
        place = self.record.place(statement, call.function)
        index = self.record.add_loop(call.index, place, statement.variable or "", self._iteration())
        call.loops.append(_Loop(statement, index))

    def _finish(self, call: _Call, following: Statement | None) -> None:
        """The statement under way is done: note what it changed; a loop's header may begin an iteration."""
        statement = call.statement
        if statement is None:
            return
        changed = self._changes(call)
        if statement.is_loop and following and statement in following.loops:
            loop = call.loops[-1]
            value = call.seen.get(statement.variable or "", (None, None))[1]
            loop.iteration = self.record.add_iteration(loop.index, value)
        place = self.record.place(statement, call.function)
        self.record.add_step(place, call.index, self._iteration(), changed, call.failed)

    def _iteration(self) -> int | None:
        """The innermost iteration under way, of whichever function at work."""
        for call in reversed(self.stack):
            for loop in reversed(call.loops):
                if loop.iteration is not None:
                    return loop.iteration
        return None

    def _changes(self, call: _Call) -> dict[str, int]:
        """The variables that were assigned since the last call of this, and their values."""
        changed = {}
        for name, value in call.frame.f_locals.items():
            if name in call.seen and call.seen[name][0] is value:
                continue
            index = self._held(value)
            index = self.record.value(value, name) if index is None else index
            call.seen[name] = value, index
            if index is not None:
                changed[name] = index
        return changed

    def _held(self, value: object) -> int | None:
        """The index of a value that a variable at work holds already."""
        for call in self.stack:
            for held, index in call.seen.values():
                if held is value and index is not None:
                    return index
        return None


def _is_kernel_code(code: CodeType) -> bool:
    """Whether it is the body of a @triton.jit function, and none of Triton's own library."""
    for original, rewritten in interpreter.InterpretedFunction.rewritten_fn.items():
        if getattr(rewritten, "__code__", None) is code:
            return original.__module__.partition(".")[0] != "triton"
    return False


def _bases(arguments: dict[str, object]) -> dict[str, tuple[int, int]]:
    """Address and bytes an element of each tensor that the kernel got."""
    bases = {}
    for name, value in arguments.items():
        dtype = getattr(value, "dtype", None)
        if isinstance(dtype, interpreter.tl.pointer_type) and not value.type.is_block():
            itemsize = max(1, dtype.element_ty.primitive_bitwidth // 8)
            bases[name] = int(value.handle.data.flat[0]), itemsize
    return bases
