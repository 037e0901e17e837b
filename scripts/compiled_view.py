"""Compile chosen kernels for GPUs that are not here; keep every stage, and the source lines it came from.

    python scripts/compiled_view.py                  # write snippets/generated/compiled/
    python scripts/compiled_view.py --check          # compile again and compare
    python scripts/compiled_view.py --only l2_packed # these alone

A file a kernel and target: figures, TTGIR, PTX and SASS (or AMDGCN), and for each of their lines the place
in the source, from the line tables. What another Triton compiled can not be compared; --check says so.
"""

import argparse
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)  # before triton is imported: this is about the compiler
# Triton's cache knows a kernel by its text, not by its file: what another clone has compiled would bring that
# clone's paths. So this folder has a cache of its own.
os.environ["TRITON_CACHE_DIR"] = str(Path(__file__).resolve().parents[1] / ".artifacts/triton")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # `kernels` and `scripts`, from anywhere

import triton
from rich.progress import track

from scripts import compile_grid
from scripts.compile_targets import GPU_TARGETS, aot_source, figures, run_on_cubin
from scripts.compiled_evidence import FOLDER, classes, loops
from scripts.compiled_lines import Place, Row, amdgcn_rows, ptx_rows, sass_rows, ttgir_rows
from scripts.compiled_source import code_hash, functions
from scripts.generated import write_or_check

OUT = ROOT / FOLDER
COMMAND = "python scripts/compiled_view.py"


@dataclass(frozen=True)
class Kernel:
    """What is compiled: a jit function, and its constexprs and compiler options by the target's name."""

    function: object
    setting: Callable[[str], tuple[dict, dict]]
    dtype: str = "fp16"
    types: dict[str, str] = field(default_factory=dict)  # of arguments that `aot_source` would type otherwise
    aligned: tuple[str, ...] = ()  # arguments that are multiples of 16, beside pointers and strides
    targets: tuple[str, ...] = tuple(GPU_TARGETS)
    cache: str = ""  # dtype of the KV cache, where it is another


# All in the lessons' case: fp16, 4 query heads a KV head, D = 128, 16 tokens a page.
CASE = ("fp16", 4, 128, 16)


def lesson(kernel: str, **more: object) -> Kernel:
    """A kernel of compile_grid.py, at the launcher's warps and stages."""
    function, constants = compile_grid.kernel_and_constants((kernel, "", *CASE))

    def setting(target: str) -> tuple[dict, dict]:
        return constants, compile_grid.launch_of((kernel, target, *CASE))._asdict()

    return Kernel(function, setting, **more)


def fast(kernel: str, fp8: bool = False, **more: object) -> Kernel:
    """A kernel of L7 as compile_grid.py has it: equal splits, scales given as numbers."""

    dtype = "fp8" if fp8 else CASE[0]

    def point(target: str) -> tuple:
        return kernel, target, dtype, *CASE[1:]

    def setting(target: str) -> tuple[dict, dict]:
        _, constants = compile_grid.kernel_and_constants(point(target))
        launch = compile_grid.launch_of(point(target))
        options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
        return constants, options | ({"launch_pdl": True} if constants["PDL"] else {})

    function, _ = compile_grid.kernel_and_constants(point("sm_90"))
    return Kernel(function, setting, types=compile_grid.fast_types(dtype), **more)


KERNELS = {
    "l2_naive": lesson("naive"),
    "l2_packed": lesson("packed"),
    "l3_split": lesson("split"),
    "l3_combine": lesson("combine", aligned=("head_dim",)),
    "l7_fast": fast("fast"),
    "l7_fast_fp8": fast("fast_direct", fp8=True, targets=compile_grid.E4M3, cache="e4m3"),
    "l7_combine": fast("fast_combine"),
}


def stages(compiled) -> Iterator[tuple[str, list[Row]]]:
    """(name, rows) of each stage, from Triton's IR to what the GPU runs."""
    asm = compiled.asm
    yield "ttgir", list(ttgir_rows(asm["ttgir"]))
    if "amdgcn" in asm:
        yield "amdgcn", list(amdgcn_rows(asm["amdgcn"]))
        return
    yield "ptx", list(ptx_rows(asm["ptx"]))
    disassembly = run_on_cubin("nvdisasm", "-gp", "-c", cubin=asm["cubin"])
    yield "sass", list(sass_rows(disassembly, asm["ptx"]))


def of_this_repository(chain: tuple[Place, ...]) -> tuple[Place, ...]:
    """The chain without the lines of Triton's own library, its paths relative to the root."""
    inside = [(Path(path), line) for path, line in chain if Path(path).is_relative_to(ROOT / "kernels")]
    return tuple((path.relative_to(ROOT).as_posix(), line) for path, line in inside)


def compile_kernel(name: str, target: str) -> dict:
    """The record of one kernel on one target."""
    kernel = KERNELS[name]
    constants, options = kernel.setting(target)
    source = aot_source(kernel.function, constants, kernel.dtype, kernel.types, kernel.aligned)
    compiled = triton.compile(source, target=GPU_TARGETS[target], options=options)
    rows = {stage: [(row.text, of_this_repository(row.chain)) for row in found]
            for stage, found in stages(compiled)}  # fmt: skip
    own = Path(kernel.function.fn.__code__.co_filename).relative_to(ROOT).as_posix()
    chains = [chain for found in rows.values() for _, chain in found]
    places = sorted({*itertools.chain(*chains)}, key=lambda place: (place[0] != own, place))
    spans = functions(ROOT, places)
    return {
        "kernel": name,
        "function": kernel.function.__name__,
        "target": target,
        "triton": triton.__version__,
        "dtype": kernel.dtype + (f", {kernel.cache} cache" if kernel.cache else ""),
        "constants": {key: value for key, value in constants.items() if not key.endswith("_ptr")},
        "num_warps": compiled.metadata.num_warps,
        "num_stages": compiled.metadata.num_stages,
        "shared_bytes": compiled.metadata.shared,
        **figures(compiled),
        "functions": spans,
        "code_hash": code_hash(ROOT, spans),
        "stages": {stage: stage_record(stage, found, spans) for stage, found in rows.items()},
    }


def stage_record(stage: str, rows: list[tuple[str, tuple[Place, ...]]], spans: list) -> dict:
    """A stage's text, a letter a row for its class, its loops, and the places, as runs over the rows.

    `chains` are numbers: file (its place among the files of `functions`), line, and again for each call
    site. `runs` are pairs: number of the chain (-1: none), rows.
    """
    files = list(dict.fromkeys(path for path, *_ in spans))
    numbers: dict[tuple[Place, ...], int] = {(): -1}
    runs: list[int] = []
    for chain, run in itertools.groupby(chain for _, chain in rows):
        runs += [numbers.setdefault(chain, len(numbers) - 1), sum(1 for _ in run)]
    texts = [text for text, _ in rows]
    return {
        "text": "\n".join(texts),
        "classes": classes(stage, texts),
        "loops": loops(stage, texts),
        "chains": [
            [n for path, line in chain for n in (files.index(path), line)] for chain in numbers if chain
        ],
        "runs": runs,
    }


def to_text(record: dict) -> str:
    """JSON with a stage a line."""
    head = json.dumps({key: value for key, value in record.items() if key != "stages"})
    lines = ",\n".join(
        f"{json.dumps(stage)}: {json.dumps(content, separators=(',', ':'))}"
        for stage, content in record["stages"].items()
    )
    return f'{head[:-1]}, "stages": {{\n{lines}\n}}}}\n'


def by_another_triton() -> set[str]:
    """The versions of Triton that compiled what is there, other than the one that is here."""
    there = {json.loads(path.read_text(encoding="utf-8"))["triton"] for path in OUT.glob("*.json")}
    return there - {triton.__version__}


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare with what is there, write nothing")
    parser.add_argument("--only", nargs="+", choices=KERNELS, help="these kernels (default: all)")
    args = parser.parse_args()
    if args.check and (others := by_another_triton()):
        print(f"not compared: compiled by Triton {', '.join(others)}, and this is {triton.__version__}")
        return 0
    names = args.only or list(KERNELS)
    jobs = [(name, target) for name in names for target in KERNELS[name].targets]
    files = {
        OUT / f"{name}.{target}.json": to_text(compile_kernel(name, target))
        for name, target in track(jobs, "compile")
    }
    present = [path for path in OUT.glob("*.json") if not args.only or path.name.split(".")[0] in args.only]
    return write_or_check(files, present, args.check, COMMAND)


if __name__ == "__main__":
    sys.exit(main())
