"""Every mutant of lesson L1 is caught by the lesson's own tests, besides the drill's cases."""

import importlib.util
import itertools
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from scripts.mutant_files import FOLDER, ROOT, Mutant
from tests.helpers.mode import ON_GPU  # before anything imports triton

from kernels import l1_paged_cache  # isort: skip
from scripts.tracer import TraceError, trace  # isort: skip
from tests.helpers.l1_write import Write  # isort: skip
from tests.kernels.test_l1_paged_cache import CacheMachine  # isort: skip

LESSON = "l1_paged_cache"
NUMBER = itertools.count()


def load(path: Path) -> Mutant:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    data["edits"] = tuple((edit["find"], edit["replace"]) for edit in data["edits"])
    return Mutant(f"{LESSON}/{path.stem}", **data)


ALL = {path.stem: load(path) for path in sorted((FOLDER / LESSON).glob("*.toml"))}


def module_of(mutant: Mutant, folder: Path):
    """The edited file as a module of its own; a real file, since Triton reads its source."""
    path = folder / f"l1_mutant_{next(NUMBER)}.py"
    path.write_text(mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8")), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def machine(mutant: Mutant, folder: Path) -> None:
    """The model-based test of the cache, on the mutant's table or cache."""
    module = module_of(mutant, folder)
    patches = {}
    if hasattr(module, "PageTable") and mutant.file.endswith("l1_page_table.py"):
        patches = {"PageTable": module.PageTable, "OutOfPagesError": module.OutOfPagesError}
    cache = module.PagedKVCache if hasattr(module, "PagedKVCache") else l1_paged_cache.PagedKVCache
    tests = "tests.kernels.test_l1_paged_cache"
    error = patches.get("OutOfPagesError", l1_paged_cache.OutOfPagesError)
    with (
        mock.patch.multiple(l1_paged_cache, **patches) if patches else nullcontext(),
        mock.patch("tests.helpers.l1_cache.PagedKVCache", cache),
        mock.patch(f"{tests}.OutOfPagesError", error),
    ):
        run_state_machine_as_test(CacheMachine, settings=settings(max_examples=60, stateful_step_count=30))


def values(mutant: Mutant, folder: Path) -> None:
    """Both layouts, inputs that are slices, bit by bit against the reference."""
    module = module_of(mutant, folder)
    for kv_layout in ("NHD", "HND"):
        call = Write([37, 5, 95, 0], kv_layout=kv_layout)
        expected = call.run(module.write_kv_reference)
        for found, wanted in zip(call.run(module.write_kv), expected, strict=True):
            assert (found == wanted).all(), f"{kv_layout}: {int((found != wanted).sum())} elements differ"


def tracer(mutant: Mutant, folder: Path) -> None:
    """What is stored for a token without a slot: nothing."""
    call = Write([37, -1, 5])
    with trace() as t:
        module_of(mutant, folder).write_kv(*call.args)
    t.assert_in_bounds()
    assert {a.program[0] for a in t.writes("k_cache_ptr")} == {0, 2}


def big_cache(mutant: Mutant, folder: Path) -> None:
    """In a process of its own, since the wrong address kills it."""
    module = module_of(mutant, folder)
    code = (
        "from tests.helpers import l1_big_write as big; import importlib.util as util; "
        f"spec = util.spec_from_file_location('mutant', {str(module.__file__)!r}); "
        "mutant = util.module_from_spec(spec); spec.loader.exec_module(mutant); "
        "big.write_kv = mutant.write_kv; big.check('NHD')"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"exit status {run.returncode}: {run.stderr[-300:]}"


CHECKS = {"values": values, "tracer": tracer, "big_cache": big_cache}
KERNEL = {"skipped_slot_written": tracer, "int32_slot": big_cache}  # the others by values


@pytest.mark.parametrize("name", ALL)
def test_a_mutant_is_caught(name, tmp_path):
    mutant = ALL[name]
    by = KERNEL.get(name, values) if mutant.file == "kernels/l1_write_kv.py" else machine
    if by is tracer and ON_GPU:
        pytest.skip("the tracer needs the interpreter")
    with pytest.raises((AssertionError, TraceError, RuntimeError, IndexError)) as caught:
        by(mutant, tmp_path)
    print(f"{name}: {caught.type.__name__}: {caught.value}")


@pytest.mark.parametrize("check", ["values", "tracer"])
def test_the_kernel_itself_passes(check, tmp_path):
    if check == "tracer" and ON_GPU:
        pytest.skip("the tracer needs the interpreter")
    solution = Mutant("", "kernels/l1_write_kv.py", "", "", check, {}, ())
    CHECKS[check](solution, tmp_path)
