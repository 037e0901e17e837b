"""Decode attention of others, called the way their users call it. One adapter a project; none is needed here.

An adapter has VERSION (a function) and PEERS: the name of a row -> a function that takes a Pool and gives
Candidates, one a setting worth trying. It raises Missing where the project is not installed, or cannot do
the pool's shape; the reason stands in the record.
"""

import importlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType

import torch

from scripts.bench_inputs import PageSet


class Missing(Exception):  # noqa: N818 - a state of the world, no error
    """Why a peer has no figure: not installed, or not made for this shape."""


@dataclass(frozen=True)
class Candidate:
    """One implementation at one setting. `launch` is captured and timed; `call` is what a user writes."""

    setting: str
    launch: Callable[[PageSet], object]
    result: torch.Tensor | None  # o [B, Hq, D], written by `launch`; None: `launch` returns it
    call: Callable[[PageSet], object] | None = None  # None: the launch
    eager: bool = True  # whether `call` is worth timing
    lse: torch.Tensor | None = None  # [B, Hq], written by `launch`, where it does
    context: Callable[[], AbstractContextManager] = nullcontext  # entered around captures and calls


def load(name: str, package: str | None = None) -> ModuleType:
    """Import a peer's module, or raise Missing with the reason."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = package or name.split(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise Missing(f"missing: {package} is not installed") from error
        raise Missing(f"missing: {package} does not import: {error}") from error


def need(ok: bool, reason: str) -> None:
    """Raise Missing unless `ok`."""
    if not ok:
        raise Missing(f"missing: {reason}")


def labelled(**settings) -> str:
    """split=4, pdl=True -> "split 4, pdl on"; what is None is left out."""
    words: Iterable[str] = (
        f"{name.replace('_', ' ')} {('on' if value else 'off') if isinstance(value, bool) else value}"
        for name, value in settings.items()
        if value is not None
    )
    return ", ".join(words)
