"""Compile a kernel for a GPU that is not here, and read what the compiler made of it.

Shared by compile_grid.py and compiled_view.py, which take TRITON_INTERPRET away before they import this.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

GPU_TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_120": GPUTarget("cuda", 120, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
BIN = Path(triton.__file__).parent / "backends/nvidia/bin"
TYPES = {"block_table_ptr": "*i32", "seq_lens_ptr": "*i32", "sm_scale": "fp32"}


def aot_source(
    function, constants: dict, dtype: str, types: dict[str, str] | None = None, aligned: Iterable[str] = ()
) -> ASTSource:
    """A jit function with the types and the alignment that a launch with contiguous tensors would have.

    Pointers are to `dtype`, lse and partials to fp32, other arguments i32; `types` names the exceptions.
    Pointers and strides are multiples of 16, and so are the arguments in `aligned`.
    """
    types = TYPES | (types or {})

    def type_of(name: str) -> str:
        if name in constants:
            return "constexpr"
        if name.endswith("_ptr"):
            fp32 = name.startswith("lse") or name.endswith("_partial_ptr")
            return types.get(name, "*fp32" if fp32 else f"*{dtype}")
        return types.get(name, "i32")

    names = function.arg_names
    multiples = {n for n in names if n.endswith("_ptr") or n.startswith("stride_")} | set(aligned)
    attrs = {
        (i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n in multiples and n not in constants
    }
    return ASTSource(fn=function, signature={n: type_of(n) for n in names}, constexprs=constants, attrs=attrs)


def run_on_cubin(tool: str, *options: str, cubin: bytes) -> str:
    """What one of NVIDIA's binary tools prints of a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [BIN / tool, *options, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def figures(compiled) -> dict:
    """Registers, spilled bytes, spills in loops and TF32 instructions of a compiled kernel."""
    return amd_figures(compiled) if "amdgcn" in compiled.asm else nvidia_figures(compiled)


def nvidia_figures(compiled) -> dict:
    """Registers a thread, spilled bytes (the stack frame) and TF32 instructions, from the cubin and PTX."""
    cubin = compiled.asm["cubin"]
    used = dict(
        re.findall(r"(REG|STACK):(\d+)", run_on_cubin("cuobjdump", "--dump-resource-usage", cubin=cubin))
    )
    spills_in_loops = 0
    if used["STACK"] != "0":
        spills_in_loops = count_spills_in_loops(run_on_cubin("nvdisasm", "-c", cubin=cubin))
    return {
        "num_regs": int(used["REG"]),
        "spilled_bytes": int(used["STACK"]),
        "spills_in_loops": spills_in_loops,
        "tf32_instructions": compiled.asm["ptx"].count(".tf32"),
    }


def count_spills_in_loops(sass: str) -> int:
    """Loads and stores of local memory between a label and a branch back to it."""
    lines = sass.splitlines()
    labels = {match[1]: n for n, line in enumerate(lines) if (match := re.match(r"(\.L\w+):", line))}
    inside = set()
    for n, line in enumerate(lines):
        target = re.search(r"BRA.*`\((\.L\w+)\)", line)
        if target and labels.get(target[1], n) < n:
            inside.update(range(labels[target[1]], n))
    return sum(bool(re.search(r"\b(STL|LDL)\b", lines[n])) for n in inside)


def amd_figures(compiled) -> dict:
    """The same from the AMDGCN text; xf32 is the name of TF32 there."""
    text = compiled.asm["amdgcn"]
    return {
        "num_regs": int(re.search(r"\.vgpr_count:\s*(\d+)", text)[1]),
        "spilled_bytes": 4 * int(re.search(r"\.vgpr_spill_count:\s*(\d+)", text)[1]),
        "spills_in_loops": 0,  # not looked for: nothing spills there at all
        "tf32_instructions": len(re.findall(r"v_mfma\w*xf32", text)),
    }
