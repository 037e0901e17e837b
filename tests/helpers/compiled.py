"""What the compiler makes of the lesson kernels for an H200 (sm_90), as JSON: the child process of
tests/kernels/test_lesson_numbers_compiled.py, since the suite itself may run in the interpreter."""

import json
import re
from collections import Counter
from unittest import mock

from scripts import compile_grid  # first: it takes TRITON_INTERPRET away
from scripts.compile_grid import source_of
from scripts.compile_targets import GPU_TARGETS, nvidia_figures

import triton  # isort: skip
import triton.language as tl  # isort: skip
from triton.compiler import ASTSource  # isort: skip

LESSON_CASE = ("sm_90", "fp16", 4, 128, 16)  # dtype, G, D, PAGE of the examples
LOOP = re.compile(r"^(\$L\w+):[^\n]*Inner Loop Header.*?bra\s+\1;", re.MULTILINE | re.DOTALL)
OPCODE = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)", re.MULTILINE)


@triton.jit
def _dot_kernel(out_ptr, a_ptr, b_ptr, IEEE: tl.constexpr):
    """Grid (1,): out = a @ b, [16, 16] each."""
    offs = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a, b = tl.load(a_ptr + offs), tl.load(b_ptr + offs)
    out = tl.dot(a, b, input_precision="ieee") if IEEE else tl.dot(a, b)
    tl.store(out_ptr + offs, out)


def figures(source: ASTSource, num_warps: int, num_stages: int) -> dict:
    """Registers, spills, shared memory; the instructions of the PTX and of its loop, and its waits."""
    options = {"num_warps": num_warps, "num_stages": num_stages}
    compiled = triton.compile(source, target=GPU_TARGETS["sm_90"], options=options)
    ptx = compiled.asm["ptx"]
    loop = match[0] if (match := LOOP.search(ptx)) else ""
    return nvidia_figures(compiled) | {
        "shared_bytes": compiled.metadata.shared,
        "instructions": Counter(OPCODE.findall(ptx)),
        "loop": Counter(OPCODE.findall(loop)),
        "loop_waits": [int(n) for n in re.findall(r"cp\.async\.wait_group\s+(\d+)", loop)],
        "times_log2_e": ptx.count("0f3FB8AA3B"),
    }


def dot_source(ieee: bool) -> ASTSource:
    """A product of fp32 tiles."""
    signature = dict.fromkeys(("out_ptr", "a_ptr", "b_ptr"), "*fp32") | {"IEEE": "constexpr"}
    return ASTSource(fn=_dot_kernel, signature=signature, constexprs={"IEEE": ieee})


def combine_source(block_s: int, block_d: int) -> ASTSource:
    """The combine kernel with a tile of our own choice."""
    point = ("combine", *LESSON_CASE)
    function, _ = compile_grid.kernel_and_constants(point)
    constants = {"BLOCK_S": block_s, "BLOCK_D": block_d}
    with mock.patch.object(compile_grid, "kernel_and_constants", return_value=(function, constants)):
        return source_of(point)


def main() -> None:
    packed, swapped, naive = (source_of((k, *LESSON_CASE)) for k in ("packed", "packed_swap_k", "naive"))
    result = {f"packed 1x{stages}": figures(packed, 1, stages) for stages in range(2, 8)}
    result["packed 4x3"] = figures(packed, 4, 3)
    result["swapped 1x7"] = figures(swapped, 1, 7)
    result |= {f"naive 1x{stages}": figures(naive, 1, stages) for stages in (2, 7)}
    result |= {f"combine 64x{columns}": figures(combine_source(64, columns), 1, 3) for columns in (32, 128)}
    result |= {f"fp32 dot, ieee {ieee}": figures(dot_source(ieee), 1, 3) for ieee in (False, True)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
