"""Compile the lesson kernels for GPUs that are not here, and say what the compiler made of them.

    python scripts/compile_grid.py            # write snippets/generated/compile_grid.json
    python scripts/compile_grid.py --check    # compile again and compare

Every supported (dtype, head dim, group, page size), for sm_80, sm_90, sm_120 and gfx942, at the warps and
stages that kernels/launch.py gives it there: registers, spilled bytes, shared memory, TF32 instructions.
What launch.py refuses for a target is recorded with its reason. Needs no GPU; minutes of compiling.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import sys
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)  # before triton is imported: this is about the compiler
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # `kernels` and `scripts`, from anywhere

import triton
from rich.progress import track
from triton.compiler import ASTSource

from kernels import l2_paged_decode, l3_split_kv_decode, l3_unnormalized_partials, l7_fast_decode
from kernels.l7_launch import Tile, block_d, choose_tile, masks_all
from kernels.launch import TARGETS, Launch, naive_launch, packed_launch
from scripts.compile_targets import GPU_TARGETS, aot_source, figures
from scripts.generated import write_or_check

OUT = ROOT / "snippets/generated/compile_grid.json"
ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp8": 1}
HEAD_DIMS = (16, 32, 64, 128, 256)
PAGE_SIZES = (16, 32, 64, 128)
ODD_HEAD_DIMS = (72, 80, 96, 192)  # and page sizes, that fast_decode alone takes
ODD_PAGE_SIZES = (1, 8, 24, 64, 544)
GROUPS = (4, 32, 64)  # one for each height of the query tile: 16, 32 and 64 rows

DEPENDENT_LAUNCH = ("sm_90", "sm_120")  # targets with programmatic dependent launch
E4M3 = ("sm_90", "sm_120")  # and with an instruction that converts e4m3

packed = l2_paged_decode._paged_decode_kernel
split = l3_split_kv_decode._split_kernel


def grid_points() -> list[tuple]:
    """(kernel, target, dtype, group_size, head_dim, page_size) of everything that is compiled."""
    sizes = list(itertools.product(TARGETS, ("fp16", "bf16", "fp32"), GROUPS, HEAD_DIMS, PAGE_SIZES))
    points = [("packed", *size) for size in sizes]
    # The other kernels have the same loop, or none: bf16 and more rows say nothing new of them.
    four_rows = [size for size in sizes if size[1] != "bf16" and size[2] == 4]
    points += [("split", *size) for size in four_rows]
    points += [("naive", *size) for size in four_rows if size[4] in (16, 128)]
    one_page_size = [size for size in sizes if size[2] == 4 and size[4] == 16]
    for kernel in ("packed_swap_k", "split_unnormalized", "combine", "combine_unnormalized"):
        points += [(kernel, *size) for size in one_page_size]
    return points + fast_points()


def fast_points() -> list[tuple]:
    """Likewise for fast_decode: page and tile are apart there, so each axis is walked by itself."""
    points = []
    for target in TARGETS:
        sizes = list(itertools.product(("fp16", "fp32", "fp8"), GROUPS, HEAD_DIMS, (16,)))
        sizes += itertools.product(("fp16", "fp8"), (4,), ODD_HEAD_DIMS, (16,))
        sizes += itertools.product(("fp16", "fp8"), (4,), (128,), ODD_PAGE_SIZES)
        points += [("fast", target, *size) for size in sizes]
        points += [(k, target, t, 4, 128, 16) for k in ("fast_many", "fast_direct") for t in ("fp16", "fp8")]
        points.append(("fast_combine", target, "fp16", 4, 128, 16))
    return points


def kernel_and_constants(point: tuple):
    """The jit function of a point, and its constexprs."""
    kernel, _, _, group_size, head_dim, page_size = point
    if kernel.startswith("fast"):
        return fast_kernel_and_constants(point)
    sizes = {"GROUP_SIZE": group_size, "HEAD_DIM": head_dim, "PAGE_SIZE": page_size}
    if kernel == "naive":
        return l2_paged_decode._naive_paged_decode_kernel, sizes
    if kernel == "combine":
        # 64 splits a step: 2048 elements a tile, as launch_combine makes them.
        return l3_split_kv_decode._combine_kernel, {"BLOCK_S": 64, "BLOCK_D": min(32, head_dim)}
    if kernel == "combine_unnormalized":
        function = l3_unnormalized_partials._combine_unnormalized_kernel
        return function, {"HEAD_DIM": head_dim, "BLOCK_S": 16}
    sizes["BLOCK_G"] = max(16, group_size)
    if kernel == "packed":
        return packed, sizes | {"SWAP_K_STRIDES": False}
    if kernel == "packed_swap_k":
        return packed, sizes | {"SWAP_K_STRIDES": True}
    if kernel == "split":
        return split, sizes | {"NORMALIZED": True, "l_partial_ptr": None}
    return split, sizes | {"NORMALIZED": False}


def fast_kernel_and_constants(point: tuple):
    """Likewise for fast_decode: lse wanted, dependent launch where there is one."""
    kernel, target, dtype, group_size, head_dim, page_size = point
    dependent = target in DEPENDENT_LAUNCH
    if kernel == "fast_combine":
        sizes = {"HEAD_DIM": head_dim, "BLOCK_S": 64, "BLOCK_D": 32}
        return l7_fast_decode._fast_combine_kernel, sizes | {"PDL": dependent, "slots_ptr": None}
    is_fp8 = dtype == "fp8"
    rows, columns = max(16, group_size), block_d(head_dim, is_fp8)
    constants = {
        "GROUP_SIZE": group_size, "HEAD_DIM": head_dim, "PAGE_SIZE": page_size, "BLOCK_G": rows,
        "BLOCK_D": columns, "BLOCK_N": launch_of(point).block_n,
        "MASK_ALL": masks_all(ELEMENT_BYTES[dtype], rows, columns), "FP8": is_fp8, "PDL": dependent,
        "INTERPRETED": False, "work_ptr": None, "k_scale_ptr": None, "v_scale_ptr": None,
        **({"partial_ptr": None} if kernel == "fast_direct" else {}),
    }  # fmt: skip
    return l7_fast_decode._fast_decode_kernel, constants


def fast_types(dtype: str) -> dict[str, str]:
    """What is no pointer to q's dtype among the arguments of fast_decode; e4m3 comes in pairs."""
    pairs = {"k_ptr": "*i16", "v_ptr": "*i16"} if dtype == "fp8" else {}
    return {"partial_ptr": "*fp32", "qk_scale": "fp32", "o_scale": "fp32"} | pairs


def launch_of(point: tuple) -> Launch | Tile:
    """Warps and stages, of fast_decode also tokens; ValueError where the target is refused."""
    kernel, target, dtype, group_size, head_dim, page_size = point
    if kernel == "fast_combine":
        return Launch(2, 3)
    if kernel.startswith("fast"):
        columns = block_d(head_dim, dtype == "fp8")
        per_sm = 8 if kernel == "fast_many" else 4
        rows, merges = max(16, group_size), kernel != "fast_direct"
        return choose_tile(TARGETS[target], ELEMENT_BYTES[dtype], rows, columns, per_sm, merges)
    if kernel.startswith("combine"):
        return Launch(1, 3)
    if kernel == "naive":
        return naive_launch(ELEMENT_BYTES[dtype], head_dim, page_size)
    rows = max(16, group_size)
    return packed_launch(TARGETS[target], ELEMENT_BYTES[dtype], rows, head_dim, page_size)


def source_of(point: tuple) -> ASTSource:
    """The kernel with the types and the alignment that a launch with contiguous tensors would have."""
    function, constants = kernel_and_constants(point)
    if point[0].startswith("fast"):
        dtype = "fp16" if point[2] == "fp8" else point[2]  # of q
        return aot_source(function, constants, dtype, fast_types(point[2]))
    return aot_source(function, constants, point[2])


def compile_point(point: tuple) -> dict:
    """One row of the record."""
    row = dict(zip(("kernel", "target", "dtype", "group_size", "head_dim", "page_size"), point, strict=True))
    try:
        launch = launch_of(point)
    except ValueError as refusal:
        return row | {"refused": str(refusal)}
    if row["dtype"] == "fp8" and row["target"] not in E4M3:
        return row | {"refused": "no instruction converts e4m3"}
    options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    compiled = triton.compile(source_of(point), target=GPU_TARGETS[row["target"]], options=options)
    return row | launch._asdict() | {"shared_bytes": compiled.metadata.shared} | figures(compiled)


def compile_grid(jobs: int) -> dict:
    """The whole record: the Triton that compiled it, and a row a point."""
    points = grid_points()
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        rows = list(track(pool.map(compile_point, points, chunksize=8), "compile", total=len(points)))
    return {"triton": triton.__version__, "rows": rows}


def to_text(record: dict) -> str:
    """JSON with a row a line."""
    rows = ",\n".join(json.dumps(row) for row in record["rows"])
    return f'{{"triton": {json.dumps(record["triton"])}, "rows": [\n{rows}\n]}}\n'


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare with the record, write nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: all cores)")
    args = parser.parse_args()
    text = to_text(compile_grid(args.jobs))
    return write_or_check({OUT: text}, [], args.check, "python scripts/compile_grid.py")


if __name__ == "__main__":
    sys.exit(main())
