"""Where this runner reaches into Triton's interpreter; everything else of it is as published.

launches   get windows of addresses, and are noted down (scripts/runner/launches.py)
patching   tl's functions are patched once a launch, not again in every function that a kernel calls, and
           what a called function patched is put back too
globals    what the interpreter puts among a file's globals is remembered: a compiler does not see it
refusals   bfloat16 and float8 (the interpreter would compute on their bits), and what it has not, by name
autotune   takes the first configuration: there is nothing to time
asserts    tl.device_assert is looked at, as with TRITON_DEBUG=1; the published interpreter never does
"""

from types import FunctionType, ModuleType

from triton.language.extra import libdevice
from triton.runtime import autotuner, interpreter

from scripts.runner import explain, launches
from scripts.runner.faults import Unsupported
from scripts.runner.memory import MEM

_REFUSED_TYPES = {
    "get_bf16_ty": "tl.bfloat16", "get_fp8e4nv_ty": "tl.float8e4nv", "get_fp8e4b15_ty": "tl.float8e4b15",
    "get_fp8e4b8_ty": "tl.float8e4b8", "get_fp8e5_ty": "tl.float8e5", "get_fp8e5b16_ty": "tl.float8e5b16",
}  # fmt: skip
_injected: dict[int, set[str]] = {}  # by id of a file's globals: names that the interpreter put there

_patched: list = []  # of each launch at work: the scope of its patches, for which functions, in which modules


def install() -> None:
    """Once a process, after triton is imported."""
    _hook_launches()
    _hook_patching()
    _hook_globals()
    _refuse_by_name()
    autotuner.Autotuner._bench = _first_configuration
    interpreter.interpreter_semantic.device_assert = _device_assert


def give_globals(function) -> None:
    """As the interpreter does: its own globals, where the function's file has none of that name."""
    names = function.__globals__
    missing = interpreter.__dict__.keys() - names.keys()
    names.update({name: interpreter.__dict__[name] for name in missing})
    _injected.setdefault(id(names), set()).update(missing)


def own_globals(function) -> dict:
    """The globals of a function's file, without the interpreter's."""
    injected = _injected.get(id(function.__globals__), ())
    theirs = interpreter.__dict__
    return {
        name: value
        for name, value in function.__globals__.items()
        if name not in injected or value is not theirs.get(name)
    }


def forget() -> None:
    """Files of an earlier run are gone, and the id of their globals may come again."""
    alive = {id(f.__globals__) for f in interpreter.InterpretedFunction.rewritten_fn}
    for key in _injected.keys() - alive:
        del _injected[key]


def _hook_launches() -> None:
    execute, convert = interpreter.GridExecutor.__call__, interpreter._implicit_cvt

    def call(executor, *args, **kwargs):
        _patched.append(None)
        try:
            return launches.CURRENT[0].run(execute, executor, args, kwargs)
        finally:
            _patched.pop()

    interpreter.GridExecutor.__call__ = call
    interpreter._implicit_cvt = lambda value: launches.CURRENT[0].pointer(convert, value)


def _hook_patching() -> None:
    patch = interpreter._patch_lang

    def patch_once(function):
        if not _patched:  # as Triton says without the interpreter
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
        if _patched[-1] is None:
            _patched[-1] = patch(function), {function}, _languages(function)
            return _patched[-1][0]
        scope, functions, languages = _patched[-1]
        if function not in functions:
            functions.add(function)
            if not _languages(function) or not _languages(function) <= languages:
                scope._changes.extend(patch(function)._changes)
                languages |= _languages(function)
        return interpreter._LangPatchScope()  # the launch's scope has it

    interpreter._patch_lang = patch_once


def _languages(function) -> set[int]:
    """Which of the modules that get patched a function's file names."""
    modules = {id(value) for value in function.__globals__.values() if isinstance(value, ModuleType)}
    return modules & {id(interpreter.tl), id(interpreter.tl.core)}


def _hook_globals() -> None:
    perform = interpreter.FunctionRewriter._compile_and_exec

    def compile_and_exec(rewriter, tree):
        give_globals(rewriter.fn)
        return perform(rewriter, tree)

    interpreter.FunctionRewriter._compile_and_exec = compile_and_exec
    rewrite = interpreter.InterpretedFunction.rewrite

    def rewrite_and_tell(function):
        made = rewrite(function)
        made.jit = function  # GridExecutor gets what was made alone
        return made

    interpreter.InterpretedFunction.rewrite = rewrite_and_tell


def _refuse_by_name() -> None:
    builder, semantic = interpreter.InterpreterBuilder, interpreter.interpreter_semantic
    for method, name in _REFUSED_TYPES.items():
        setattr(builder, method, _refusing("dtype", name))
    builder.create_inline_asm = _refusing("operation", "tl.inline_asm_elementwise")
    semantic.dot_scaled = _refusing("operation", "tl.dot_scaled")
    builder.new_block = _refusing("operation", "tl.map_elementwise")
    for name, function in vars(libdevice).items():
        if isinstance(function, FunctionType):  # a stub, to be replaced by the backend's
            refusing = _refusing("operation", f"libdevice.{name}")
            refusing.__module__ = libdevice.__name__  # by which the compiler knows its own
            setattr(libdevice, name, refusing)

    def missing(_builder, name: str):
        if name.startswith(("create_", "get_", "new_")):
            raise Unsupported("operation", name=name)
        raise AttributeError(name)

    builder.__getattr__ = missing


def _refusing(code: str, name: str):
    def refuse(*_arguments, **_options):
        raise Unsupported(code, name=name)

    return refuse


def _first_configuration(tuner, *args, config, **meta) -> list[float]:
    """Autotuner._bench: every configuration takes as long as the first, which is then the one taken."""
    launches.CURRENT[0].remark("autotune", explain.reader_line(MEM), kernel=tuner.base_fn.__name__)
    return [0.0, 0.0, 0.0]


def _device_assert(condition, message: str, mask) -> None:
    """TritonSemantic.device_assert, which also hears of every int32 that wraps around: that is no error."""
    if "overflow detected for operation" in message:
        return
    holds = condition.handle.data.astype(bool)
    if mask is not None:
        holds = holds | ~mask.handle.data.astype(bool)
    if not holds.all():
        raise AssertionError(f"tl.device_assert: {message}" if message else "tl.device_assert")
