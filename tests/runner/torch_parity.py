"""Programs run with real PyTorch here and with the page's stand-in in one child, and compared."""

import json
from pathlib import Path

import numpy as np
import torch

from tests.runner import torch_run
from tests.runner.helpers import ROOT, in_page

STANDINS = ROOT / "scripts/runner/standins"
CHILD = """
import json
from pathlib import Path
sys.path.insert(0, {standins!r})
import torch
assert Path(torch.__file__).parent.parent == Path({standins!r}), torch.__file__
assert not any(name.startswith("triton") for name in sys.modules)
from tests.runner import torch_run
programs = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
result = [torch_run.run(program) for program in programs]
"""
# The logarithm and the cosine of `randn` in float32 are those of PyTorch's AVX2 code.
BIT_IDENTICAL = torch.backends.cpu.get_cpu_capability() == "AVX2"
# What two ways to compute may differ by, relative to the largest element: by bytes of an element.
LIMITS = {2: 2.0**-10, 4: 1e-6, 8: 1e-14}


def standin(programs: list[str], tmp_path: Path) -> list[dict]:
    """What the stand-in makes of them, in one child process without torch and without Triton."""
    asked = tmp_path / "programs.json"
    asked.write_text(json.dumps(programs), encoding="utf-8")
    return in_page(CHILD.format(standins=str(STANDINS)), boot=False, arguments=(str(asked),))


def real(programs: list[str]) -> list[dict]:
    """What PyTorch makes of them."""
    return [torch_run.run(program) for program in programs]


def numbers(encoded: dict) -> np.ndarray:
    """The elements of an encoded tensor."""
    bits = bytes.fromhex(encoded["bits"])
    if encoded["tensor"] == "bfloat16":
        return (np.frombuffer(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(bits, encoded["tensor"])


def difference(wanted: dict, got: dict, exact: bool | float = False) -> str | None:
    """How a result differs from PyTorch's, or None."""
    if "raises" in wanted or "raises" in got:
        return None if wanted.get("raises") == got.get("raises") else f"wanted {wanted}, got {got}"
    return value_difference(wanted["value"], got["value"], exact)


def value_difference(wanted: dict, got: dict, exact: bool | float) -> str | None:
    """How an encoded value differs; exact: to the last bit, or what elements may differ by (relative)."""
    if wanted == got:
        return None
    if wanted.get("items") is not None and got.get("items") is not None:
        if len(wanted["items"]) != len(got["items"]):
            return f"{len(got['items'])} items, wanted {len(wanted['items'])}"
        for w, g in zip(wanted["items"], got["items"], strict=True):
            if found := value_difference(w, g, exact):
                return found
        return None
    if "tensor" in wanted and "tensor" in got:
        for what in ("tensor", "shape", "stride"):
            if wanted[what] != got[what] and not (what == "stride" and _same_layout(wanted, got)):
                return f"{what} is {got[what]}, wanted {wanted[what]}"
        return None if wanted["bits"] == got["bits"] else _numbers(numbers(wanted), numbers(got), exact)
    if wanted.get("kind") == got.get("kind") == "float" and exact is not True:
        a, b = (float.fromhex(x["plain"]) for x in (wanted, got))
        if abs(a - b) <= LIMITS[4] * max(1.0, abs(a)):
            return None
    return f"is {got}, wanted {wanted}"


def _same_layout(wanted: dict, got: dict) -> bool:
    """Whether strides differ only where they say nothing."""
    if 0 in wanted["shape"]:
        return True
    sizes = zip(wanted["shape"], wanted["stride"], got["stride"], strict=True)
    return all(n == 1 or a == b for n, a, b in sizes)


def _numbers(wanted: np.ndarray, got: np.ndarray, exact: bool | float) -> str | None:
    if wanted.dtype.kind == "f":
        same = (wanted == got) | (np.isnan(wanted) & np.isnan(got))
        with np.errstate(all="ignore"):
            error = np.abs(wanted.astype(np.float64) - got.astype(np.float64))
        size = max(1.0, np.abs(wanted[np.isfinite(wanted)].astype(np.float64)).max(initial=0.0))
        allowed = 0.0 if exact is True else max(exact, LIMITS[wanted.itemsize])
        limit = size * allowed
        bad = ~same & ~(error <= limit)
    else:
        bad = wanted != got
    if not bad.any():
        return None
    at, count = int(np.argmax(bad)), int(bad.sum())
    return f"{count} of {bad.size} elements differ, element {at} is {got[at]!r}, wanted {wanted[at]!r}"
