"""Saying by name what is not here: this package is not PyTorch, and never guesses a result."""

import functools
import sys

import numpy as np

STANDIN = "this page's small stand-in for PyTorch"
_VAR_KEYWORDS = 0x08
_ALIASES = {"axis": "dim", "keepdims": "keepdim"}  # numpy's names, which torch takes as well


def absent(name: str, hint: str = "") -> str:
    """The words in which a missing function, argument or dtype is told."""
    return f"{name} is not in {STANDIN}" + (f": {hint}" if hint else "")


def refuse(name: str, hint: str = ""):
    """A function that raises NotImplementedError when it is called: a name that has to exist."""

    def refused(*args, **kwargs):
        raise NotImplementedError(absent(name, hint))

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    return refused


def offered(function, name: str):
    """`function` as readers call it: arguments that it has not are told by name, numpy keeps quiet.

    PyTorch warns neither of 1 / 0 nor of log(-1), and neither does it here.
    """
    code = function.__code__
    known = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    open_ended = bool(code.co_flags & _VAR_KEYWORDS)

    aliases = {alias: own for alias, own in _ALIASES.items() if own in known and alias not in known}

    @functools.wraps(function)
    def call(*args, **kwargs):
        for alias in aliases.keys() & kwargs:
            kwargs[aliases[alias]] = kwargs.pop(alias)
        if kwargs and not open_ended and not known.issuperset(kwargs):
            unknown = next(key for key in kwargs if key not in known)
            raise NotImplementedError(absent(f"{name}({unknown}=...)"))
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    call.__name__, call.__qualname__ = name.rpartition(".")[2], name
    return call


class _Submodules:
    """Last in sys.meta_path: `import torch.distributed` is told like everything else that is missing."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Never finds anything."""
        if name.startswith("torch."):
            raise ModuleNotFoundError(absent(name), name=name)
        return


def watch_imports() -> None:
    """Put the finder above in place, once."""
    if not any(getattr(finder, "__name__", "") == "_Submodules" for finder in sys.meta_path):
        sys.meta_path.append(_Submodules)
