"""Stand-in for Triton's compiled module triton._C.libtriton: what interpreter mode asks of it.

Written for Triton 3.7.1; tests/runner/test_libtriton.py compares every name and number with the real module.
tl.fma is none of it: this version's interpreter multiplies and adds in numpy, with two roundings where a GPU
has one, and so does the page.
"""

import enum
import os
import sys
from types import ModuleType

from scripts.runner import null_ir
from scripts.runner.memory import MEM

_IR_ENUMS = {
    "MEM_SEMANTIC": {"RELAXED": 1, "ACQUIRE": 2, "RELEASE": 3, "ACQUIRE_RELEASE": 4},
    "MEM_SYNC_SCOPE": {"GPU": 1, "CTA": 2, "SYSTEM": 3},
    "ATOMIC_OP": {
        "AND": 1, "OR": 2, "XOR": 3, "ADD": 4, "FADD": 5,
        "MAX": 6, "MIN": 7, "UMAX": 8, "UMIN": 9, "XCHG": 10,
    },
    "DESCRIPTOR_REDUCE_KIND": {
        "ADD": 1, "MIN": 2, "MAX": 3, "INC": 4, "DEC": 5, "AND": 6, "OR": 7, "XOR": 8,
    },
    "CACHE_MODIFIER": {"NONE": 1, "CA": 2, "CG": 3, "WB": 4, "CS": 5, "WT": 6, "CV": 7},
    "EVICTION_POLICY": {"NORMAL": 1, "EVICT_FIRST": 2, "EVICT_LAST": 3},
    "PADDING_OPTION": {"PAD_ZERO": 1, "PAD_NAN": 2},
    "PROPAGATE_NAN": {"NONE": 0, "ALL": 65535},
    "ROUNDING_MODE": {"RTZ": 0, "RTNE": 1},
    "INPUT_PRECISION": {"TF32": 0, "TF32x3": 1, "IEEE": 2, "BF16x3": 3, "BF16x6": 4},
    "ScaleDotElemTypeTY": {"E4M3": 0, "E5M2": 1, "E2M3": 2, "E3M2": 3, "E2M1": 4, "BF16": 5, "FP16": 6},
}  # fmt: skip
_INTERPRETER_ENUMS = {
    "MEM_SEMANTIC": {"ACQUIRE_RELEASE": 0, "ACQUIRE": 1, "RELEASE": 2, "RELAXED": 3},
    "RMW_OP": {
        "ADD": 0, "FADD": 1, "AND": 2, "OR": 3, "XOR": 4, "XCHG": 5, "MAX": 6, "MIN": 7, "UMIN": 8, "UMAX": 9,
    },
}  # fmt: skip
_IR_CLASSES = {  # named in annotations, and by the front end, which may run on an IR that holds nothing
    "attribute": object, "block": null_ir.Block, "block_argument": null_ir.Value, "builder": null_ir.Builder,
    "context": object, "module": null_ir.Module, "type": null_ir.Type, "value": null_ir.Value,
}  # fmt: skip


def getenv(key: str, default: str | None = None) -> str | None:
    return os.environ.get(key, default)


def getenv_bool(key: str, default: bool = False) -> bool:
    value = os.environ.get(key)
    return default if value is None else value.lower() in ("1", "y", "on", "yes", "true")


def native_specialize_impl(_backend, arg, is_const: bool, specialize_value: bool, _align: bool):
    """(type as Triton spells it, specialisation key) of an argument; interpreter mode asks for no key."""
    from triton._utils import type_canonicalisation_dict

    if arg is None:
        return "constexpr", None
    if isinstance(arg, bool):
        return "u1", None
    if isinstance(arg, int):
        if specialize_value and arg == 1:
            return "constexpr", 1
        if -(2**31) <= arg < 2**31:
            return "i32", None
        return ("u64" if 2**63 <= arg < 2**64 else "i64"), None
    if isinstance(arg, float):
        return "fp32", None
    if hasattr(arg, "data_ptr"):
        name = str(arg.dtype).split(".")[-1]
        return ("*k" if is_const else "*") + type_canonicalisation_dict[name], None
    raise TypeError(f"an argument of type {type(arg).__name__}; wanted a tensor, a number or a tl.constexpr")


def install() -> None:
    """Put the stand-in into sys.modules, before triton is imported."""
    if "triton" in sys.modules:
        raise RuntimeError("triton is imported already; wanted install() before it")
    package = ModuleType("triton._C")
    package.__path__ = []
    library = _module("triton._C.libtriton")
    package.libtriton = library
    library.getenv, library.getenv_bool = getenv, getenv_bool
    library.native_specialize_impl = native_specialize_impl
    library.get_cache_invalidating_env_vars = dict
    library.ir = _module("triton._C.libtriton.ir", _IR_ENUMS)
    for name, kind in _IR_CLASSES.items():
        setattr(library.ir, name, kind)
    library.ir.make_attr = lambda *_arguments: None
    library.interpreter = _module("triton._C.libtriton.interpreter", _INTERPRETER_ENUMS)
    for name in ("load", "store", "atomic_rmw", "atomic_cas"):
        setattr(library.interpreter, name, getattr(MEM, name))
    library.linear_layout = _module("triton._C.libtriton.linear_layout")
    library.linear_layout.LinearLayout = type("LinearLayout", (), {})
    library.gluon_ir = _module("triton._C.libtriton.gluon_ir")
    modules = (
        package, library, library.ir, library.interpreter, library.linear_layout, library.gluon_ir,
        *_gluon(),
    )  # fmt: skip
    sys.modules.update({module.__name__: module for module in modules})


def _gluon() -> list[ModuleType]:
    """Gluon, a second language that the front end knows: two of its functions are compared with by name."""
    names = ("triton.experimental", "triton.experimental.gluon", "triton.experimental.gluon.language")
    package, gluon, language = (_module(name) for name in names)
    package.gluon, gluon.language = gluon, language
    language.static_assert = language.static_print = lambda *_arguments: None
    return [package, gluon, language]


def _module(name: str, enums: dict[str, dict[str, int]] | None = None) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    for enum_name, members in (enums or {}).items():
        setattr(module, enum_name, enum.IntEnum(enum_name, members))
    return module
