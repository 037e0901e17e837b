"""Triton's own compiler front end over a reader's kernels, on an IR that holds nothing (null_ir.py).

triton/compiler/code_generator.py, as it is, goes through a kernel with the types of its arguments. What it
refuses is what the compiler refuses, word for word; the passes after it do not run here.
"""

import ast
import contextlib
import io
import warnings
from typing import ClassVar

import triton.language as tl
from triton import knobs
from triton.compiler import code_generator
from triton.compiler.errors import CompilationError, UnsupportedLanguageConstruct
from triton.language.extra import cuda
from triton.runtime import jit
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from scripts.runner import hooks
from scripts.runner.sm90 import Options, min_dot_size

TILE_AS_CONDITION = "Boolean value of Tensor with more than one value is ambiguous"


class Scope(dict):
    """Globals; a @triton.jit function among them becomes the compiler's when it is asked for."""

    def __getitem__(self, name):
        return compiled(super().__getitem__(name))

    def get(self, name, default=None):
        return compiled(super().get(name, default))


class FrontEnd(code_generator.CodeGenerator):
    """Triton's, where @triton.jit gave functions for the interpreter; its errors know their file and line."""

    notes: ClassVar[list[tuple[str, str, int, dict]]] = []  # of the check under way: code, file, line, values

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.gscope = Scope(self.gscope)
        self.tests: dict[ast.AST, ast.AST] = {}  # conditions, and the statement or expression of each

    def visit(self, node):
        try:
            value = super().visit(node)
            if node in self.tests and code_generator._is_non_scalar_tensor(value):
                # The compiler finds it when it verifies what it built.
                error = UnsupportedLanguageConstruct(self.jit_fn.src, node, TILE_AS_CONDITION)
                error.endless = isinstance(self.tests[node], ast.While)
                raise error
            return value
        except CompilationError as error:
            if not hasattr(error, "place"):
                error.place = self.file_name, self.begin_line + getattr(error.node, "lineno", 1)
            raise

    def visit_While(self, node):  # noqa: N802
        self.tests[node.test] = node
        super().visit_While(node)

    def visit_IfExp(self, node):  # noqa: N802
        self.tests[node.test] = node
        return super().visit_IfExp(node)

    def visit_BoolOp(self, node):  # noqa: N802
        return self._told_if_tile(node, super().visit_BoolOp(node), type(node.op).__name__.lower())

    def visit_UnaryOp(self, node):  # noqa: N802
        value = super().visit_UnaryOp(node)
        return self._told_if_tile(node, value, "not") if isinstance(node.op, ast.Not) else value

    def call_Function(self, node, fn, args, kws):  # noqa: N802
        args = list(args)
        value = super().call_Function(node, fn, list(args), kws)
        if fn in (tl.core.builtin_min, tl.core.builtin_max):
            self._told_if_tile(node, value, "min" if fn is tl.core.builtin_min else "max")
        if fn is tl.dot and args[0].type.scalar == tl.float32:
            named = kws.get("input_precision") or (args[3] if len(args) > 3 else None)
            if getattr(named, "value", named) in (None, "tf32"):
                self._note("tf32", node)
        return value

    def _told_if_tile(self, node, value, word: str):
        """Python's own operators see a tile as one true value; the compiler goes through its elements."""
        if code_generator._is_non_scalar_tensor(value):
            self._note("tile_logic", node, word=word)
        return value

    def _note(self, code: str, node, **values) -> None:
        self.notes.append((code, self.file_name, self.begin_line + node.lineno, values))

    def get_Attribute(self, lhs, attr):  # noqa: N802
        if isinstance(lhs, tl.core.base_value):
            function = compiled(getattr(tl.standard, attr, None))
            if isinstance(function, JITFunction) and hasattr(type(lhs), attr):
                return code_generator.BoundJITMethod(lhs, function)  # x.sum(0): a member that is a function
        return compiled(super().get_Attribute(lhs, attr))


class References(jit.DependenciesFinder):
    """Triton's look at what a function names; an error knows its node."""

    def visit(self, node):
        try:
            return super().visit(node)
        except Exception as error:
            if hasattr(node, "lineno") and not hasattr(error, "node"):
                error.node = node
            raise

    def record_reference(self, val, var_dict=None, name=None):
        super().record_reference(compiled(val))  # and no copy of its value


def install() -> None:
    """Once a process: Triton makes these classes by name."""
    code_generator.CodeGenerator = FrontEnd
    jit.DependenciesFinder = References


def forget(file: str) -> None:
    """Triton keeps each function that it made, and that the globals of its file."""
    kept = jit._triton_jit_function_registry
    for name in [n for n, made in kept.items() if made.fn.__code__.co_filename == file]:
        del kept[name]


def compiled(value):
    """A @triton.jit function as the compiler has it; anything else as it is."""
    if not isinstance(value, InterpretedFunction):
        return value
    made = value.__dict__.get("compiled")
    if made is None:
        made = value.compiled = JITFunction(value.fn, **value.kwargs)
        made.__globals__ = Scope(hooks.own_globals(value.fn))
        if hasattr(value, "_must_use_result"):
            made._must_use_result = value._must_use_result
    return made


def refusal(function, types: dict, constants: dict) -> CompilationError | None:
    """What the front end says of a kernel with arguments of these types; None if it takes it."""
    kernel = compiled(function)
    file, line = jit.get_jit_fn_file_line(kernel)
    with _compiling():
        try:
            kernel.cache_key  # noqa: B018, it looks at every name
        except Exception as error:
            refused = CompilationError(kernel.src, getattr(error, "node", None), str(error))
            refused.place = file, line - 1 + getattr(refused.node, "lineno", 1)
            return refused
        arguments = [
            tl.constexpr(compiled(constants[name])).type if name in constants else _type(types[name])
            for name in kernel.arg_names
        ]
        generator = FrontEnd(
            None, code_generator.ASTFunction([], arguments, {}), gscope=kernel.get_capture_scope(),
            function_name=kernel.__name__, jit_fn=kernel, is_kernel=True, file_name=file, begin_line=line,
            options=Options(), codegen_fns={"min_dot_size": min_dot_size, "convert_custom_types": _convert},
            module_map={"triton.language.extra.libdevice": cuda.libdevice}, is_gluon=False,
        )  # fmt: skip
        try:
            generator.visit(kernel.parse())
        except CompilationError as error:
            return error
    return None


def _type(name: str | tuple):
    if isinstance(name, tuple):
        return tl.tuple_type([_type(item) for item in name])
    return tl.constexpr(1).type if name == "constexpr" else tl.str_to_ty(name, None)


@contextlib.contextmanager
def _compiling():
    """As in a process without the interpreter; what the compiler prints or warns of stays out."""
    with knobs.runtime.scope(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        knobs.runtime.interpret = False
        warnings.simplefilter("ignore")
        yield


def _convert(argument, kind, _rounding, _semantic=None):
    """A float8 that the GPU knows in part: its conversion is inline assembly."""
    return tl.tensor(_semantic.builder.create_fp_to_fp(argument.handle, kind, None), kind)
