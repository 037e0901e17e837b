"""Compile every rung of the ladder for GPUs that are not here, and write what the compiler made of it.

    python scripts/ladder_evidence.py            # write snippets/generated/l7_fast_decode/evidence.json
    python scripts/ladder_evidence.py --check    # compile again and compare

The lesson's case (G 4, D 128, page 16, fp16), sm_80, sm_90 and sm_120: registers, spills, shared memory, how
many programs an SM holds with them, and the instructions of the page loop and of the whole kernel. A rung
that a target cannot have (TMA and dependent launch before sm_90) has no entry there. A minute, without a GPU.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)  # before triton is imported: this is about the compiler
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # `kernels` and `scripts`, from anywhere

import triton
from rich.progress import track
from triton.compiler import ASTSource

from kernels import l2_paged_decode, l3_split_kv_decode, l7_ladder
from kernels.l7_rungs import OFF, RUNGS, Tile
from kernels.launch import TARGETS, naive_launch, packed_launch
from scripts.compile_targets import GPU_TARGETS, aot_source, nvidia_figures, run_on_cubin
from scripts.compiled_evidence import loops, opcode
from scripts.compiled_lines import sass_rows
from scripts.generated import write_or_check

OUT = ROOT / "snippets/generated/l7_fast_decode/evidence.json"
CASE = {"dtype": "fp16", "group_size": 4, "head_dim": 128, "page_size": 16}
SIZES = {"GROUP_SIZE": 4, "HEAD_DIM": 128, "PAGE_SIZE": 16}
COMBINES = ("combine", "dependent_combine")
# What an SM has: 32-bit registers, bytes of shared memory (1 KB of it kept back a program), warps, programs.
SM = {
    "sm_80": (65536, 164 * 1024, 64, 32),
    "sm_90": (65536, 228 * 1024, 64, 32),
    "sm_120": (65536, 100 * 1024, 48, 24),
}
# How a tile comes: through a pipeline, or, where the loop has none, by plain loads.
READS_TILE = re.compile(r"\b(LDGSTS|UTMALDG)"), re.compile(r"\bLDG\S*\.128")
# These are counted with their modifiers: the width of an access, the function of a MUFU.
WITH_MODIFIERS = ("LD", "ST", "UTMA", "ATOM", "RED", "MUFU", "HMMA")


def kernel_of(name: str, tile: Tile | None = None) -> tuple:
    """(jit function, constexprs) of a rung, with another tile if one is given, or of a combine kernel."""
    if name == "naive":
        return l2_paged_decode._naive_paged_decode_kernel, SIZES
    packed = SIZES | {"BLOCK_G": 16}
    if name.startswith("packed"):
        return l2_paged_decode._paged_decode_kernel, packed | {"SWAP_K_STRIDES": False}
    if name.startswith("split"):
        return l3_split_kv_decode._split_kernel, packed | {"NORMALIZED": True, "l_partial_ptr": None}
    if name in COMBINES:  # 33 splits, 64 a step
        function = (l3_split_kv_decode._combine_kernel, l7_ladder._dependent_combine_kernel)
        return function[name != "combine"], {"BLOCK_S": 64, "BLOCK_D": 32}
    switches = OFF | RUNGS[name].switches
    constants = packed | {"BLOCK_N": (tile or RUNGS[name].launch).block_n} | switches
    if not switches["LAST_COMBINES"]:
        constants |= dict.fromkeys(("o_ptr", "lse_ptr", "counter_ptr"))
    return l7_ladder._ladder_kernel, constants


def source_of(name: str, tile: Tile | None = None) -> ASTSource:
    """The kernel with the types and the alignment that a launch with contiguous tensors would have."""
    function, constants = kernel_of(name, tile)
    types = {"counter_ptr": "*i32"}
    if constants.get("TMA"):
        page = f"tensordesc<{CASE['dtype']}[1,{CASE['page_size']},1,{CASE['head_dim']}]>"
        types |= {"k_ptr": page, "v_ptr": page}
    return aot_source(function, constants, CASE["dtype"], types)


def options_of(name: str, target: str) -> dict:
    """num_warps and num_stages of a rung on a target, and whether it is launched as a dependent."""
    if name in COMBINES:
        return {"num_warps": 1, "num_stages": 3} | ({"launch_pdl": True} if name == COMBINES[1] else {})
    launch = RUNGS[name].launch
    if launch is None:
        sizes = CASE["head_dim"], CASE["page_size"]
        launch = naive_launch(2, *sizes) if name == "naive" else packed_launch(TARGETS[target], 2, 16, *sizes)
    return {"num_warps": launch.num_warps, "num_stages": launch.num_stages}


def available(name: str, target: str) -> bool:
    """Whether a target has what a rung needs."""
    switches = RUNGS[name].switches if name in RUNGS else {"TRIGGER": name}
    needs_sm_90 = switches.get("TMA") or switches.get("TRIGGER", "combine") != "combine"
    return target != "sm_80" or not needs_sm_90


def evidence_of(name: str, target: str) -> dict:
    """What the compiler made of one kernel."""
    options = options_of(name, target)
    compiled = triton.compile(source_of(name), target=GPU_TARGETS[target], options=options)
    figures = {key: value for key, value in nvidia_figures(compiled).items() if key != "tf32_instructions"}
    rows = sass(compiled)
    tile = {"block_n": RUNGS[name].launch.block_n} if is_ladder(name) else {}
    shared = compiled.metadata.shared
    return tile | options | figures | {
        "shared_bytes": shared,
        "programs_per_sm": programs_per_sm(target, figures["num_regs"], shared, options["num_warps"]),
        **eviction(compiled.asm["ptx"]),
        "loop": count(page_loop(rows)),
        "kernel": count(rows),
        **loop_of_base(name, target, options),
    }  # fmt: skip


def sass(compiled) -> list[str]:
    """The instructions of a compiled kernel."""
    disassembly = run_on_cubin("nvdisasm", "-gp", "-c", cubin=compiled.asm["cubin"])
    return [row.text for row in sass_rows(disassembly, compiled.asm["ptx"])]


def loop_of_base(name: str, target: str, options: dict) -> dict:
    """The page loop of the rung that an unkept one starts from, at the tile of the unkept one."""
    if name not in RUNGS or RUNGS[name].kept or not is_ladder(RUNGS[name].base):
        return {}
    base = source_of(RUNGS[name].base, RUNGS[name].launch)
    compiled = triton.compile(base, target=GPU_TARGETS[target], options=options)
    return {"loop_of_base": count(page_loop(sass(compiled)))}


def eviction(ptx: str) -> dict:
    """L2 eviction policies that the PTX makes, and asynchronous copies that use one."""
    copies = [line for line in ptx.splitlines() if "cp.async.c" in line and ".shared" in line]
    used = sum("cache_hint" in line for line in copies)
    return {"policies_made": ptx.count("createpolicy"), "policies_on_copies": used}


def is_ladder(name: str) -> bool:
    return name in RUNGS and isinstance(RUNGS[name].launch, Tile)


def page_loop(rows: list[str]) -> list[str]:
    """The shortest loop in the SASS that reads K or V: the longer ones hold it, or what stands behind it."""
    found = [rows[first : last + 1] for first, last in loops("sass", rows)]
    for reads_a_tile in READS_TILE:
        reading = [loop for loop in found if any(reads_a_tile.search(row) for row in loop)]
        if reading:
            return min(reading, key=len)
    return min(found, key=len, default=[])  # a combine kernel's loop over splits


def count(rows: list[str]) -> dict[str, int]:
    """{opcode: instructions}, by name."""
    opcodes = [name for row in rows if (name := opcode("sass", row)) and name != "NOP"]
    return dict(
        sorted(Counter(n if n.startswith(WITH_MODIFIERS) else n.split(".")[0] for n in opcodes).items())
    )


def programs_per_sm(target: str, num_regs: int, shared_bytes: int, num_warps: int) -> int:
    """How many programs are resident on an SM together, as registers, shared memory and warps allow."""
    registers, shared, warps, programs = SM[target]
    a_program = -(-num_regs // 8) * 8 * 32 * num_warps  # given out in eights a thread
    return min(registers // a_program, shared // (shared_bytes + 1024), warps // num_warps, programs)


def compile_all() -> dict:
    """The whole record."""
    names = [*RUNGS, *COMBINES]
    pairs = [(name, target) for name in names for target in SM if available(name, target)]
    rows = {name: {} for name in names}
    for name, target in track(pairs, "compile"):
        rows[name][target] = evidence_of(name, target)
    return {"triton": triton.__version__, "case": CASE, "rungs": rows}


def to_text(record: dict) -> str:
    """JSON with a line a rung and target."""
    rungs = ",\n".join(
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(target)}: {json.dumps(row)}" for target, row in rows.items())
        + "\n}"
        for name, rows in record["rungs"].items()
    )
    head = f'"triton": {json.dumps(record["triton"])}, "case": {json.dumps(record["case"])}'
    return f'{{{head}, "rungs": {{\n{rungs}\n}}}}\n'


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare with the record, write nothing")
    args = parser.parse_args()
    return write_or_check({OUT: to_text(compile_all())}, [], args.check, "python scripts/ladder_evidence.py")


if __name__ == "__main__":
    sys.exit(main())
