"""What the compiler makes of write_kv for the four targets, as JSON: the child process of
tests/kernels/test_l1_compiled.py, since the suite itself may run in the interpreter."""

import json
import re
from collections import Counter

from scripts import compile_grid  # first: it takes TRITON_INTERPRET away
from scripts.compile_targets import GPU_TARGETS, aot_source, figures

import triton  # isort: skip

from kernels.l1_write_kv import BLOCK, _write_kv_kernel  # isort: skip

# (name, dtype, Hkv, D, page size, int32 slots)
CASES = (
    ("lesson", "fp16", 8, 128, 16, False),
    ("bf16", "bf16", 8, 128, 16, True),
    ("fp32", "fp32", 8, 64, 16, False),
    ("odd", "fp16", 3, 72, 24, False),
    ("small", "fp16", 1, 8, 1, False),
    ("latent", "fp16", 1, 576, 64, False),
    ("wide", "fp32", 40, 256, 128, False),
)
ACCESS = re.compile(r"\b(ld\.global[\w.]*|st\.global[\w.]*|(?:global|buffer)_(?:load|store)_\w+)")


def compile_case(target: str, dtype: str, heads: int, head_dim: int, page_size: int, int32: bool, name: str):
    """The compiled kernel, with the strides of a contiguous launch."""
    row = heads * head_dim
    constants = {
        "PAGE_SIZE": page_size, "NUM_HEADS": heads, "K_DIM": head_dim, "V_DIM": head_dim,
        "BLOCK": min(BLOCK, triton.next_power_of_2(row)),
    }  # fmt: skip
    if name == "latent":
        constants |= {"v_ptr": None, "v_cache_ptr": None}
    source = aot_source(_write_kv_kernel, constants, dtype, {"slot_mapping_ptr": "*i32" if int32 else "*i64"})
    if head_dim % 16:  # such strides are not what a launch calls divisible by 16
        names = source.fn.arg_names
        source.attrs = {key: value for key, value in source.attrs.items() if names[key[0]].endswith("_ptr")}
    return triton.compile(source, target=GPU_TARGETS[target], options={"num_warps": 4})


def main() -> None:
    found = {}
    for target in GPU_TARGETS:
        for name, *case in CASES:
            compiled = compile_case(target, *case, name)
            text = compiled.asm["ptx"] if "ptx" in compiled.asm else compiled.asm["amdgcn"]
            found[f"{target} {name}"] = figures(compiled) | {
                "shared_bytes": compiled.metadata.shared, "accesses": Counter(ACCESS.findall(text)),
                "order": ["load" if "ld." in op or "load" in op else "store" for op in ACCESS.findall(text)],
            }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    assert compile_grid
    main()
