"""How the lesson kernels are launched: warps and stages, and what fits the card."""

import functools
import math
from typing import NamedTuple

import torch
import triton

from kernels.checks import INTERPRETED, PagedInputs, require


class Launch(NamedTuple):
    """num_warps: warps a program; num_stages: depth of the software pipeline over the page loop."""

    num_warps: int
    num_stages: int


class Target(NamedTuple):
    """What a launch has to fit: the backend ("cuda" or "hip") and shared memory a program, in bytes."""

    backend: str
    shared_bytes: int


# The targets that the tests compile for, without having them.
TARGETS = {
    "sm_80": Target("cuda", 163 * 1024),
    "sm_90": Target("cuda", 227 * 1024),
    "sm_120": Target("cuda", 99 * 1024),
    "gfx942": Target("hip", 64 * 1024),
}

# region table
# Warps x stages of the page loop, the fastest on an H200 (snippets/results/nvidia-h200/
# launch_sweep.json) of those that do not spill. Key: bytes an element, rows of the query tile.
# Then page size, and columns for head dims 16, 32, 64, 128, 256; "-": the registers always spill.
TABLE = {
    (2, 16): {
        16: "1x7 1x7 1x7 1x7 2x5",
        32: "1x7 1x7 1x7 2x5 4x3",
        64: "1x7 1x5 2x5 4x3 4x3",
        128: "2x5 4x3 2x2 4x3 8x2",
    },
    (2, 32): {
        16: "1x7 1x7 1x7 2x5 2x5",
        32: "1x7 1x7 2x5 2x5 4x5",
        64: "2x5 2x5 4x5 4x5 8x5",
        128: "2x5 2x2 4x5 8x3 8x2",
    },
    (2, 64): {
        16: "1x7 2x7 4x7 4x5 4x5",
        32: "2x5 2x7 4x7 4x3 4x2",
        64: "4x7 2x5 4x3 4x5 8x5",
        128: "4x7 4x5 4x5 4x2 -",
    },
    (4, 16): {
        16: "1x5 1x5 1x5 4x5 4x2",
        32: "1x5 2x5 2x5 4x3 8x2",
        64: "1x5 4x5 4x2 8x3 16x2",
        128: "2x3 8x5 8x2 8x2 -",
    },
    (4, 32): {
        16: "1x5 1x5 2x5 4x3 8x3",
        32: "1x5 2x5 4x3 8x3 16x2",
        64: "2x5 2x5 8x3 8x3 16x2",
        128: "4x5 4x5 16x2 16x3 -",
    },
    (4, 64): {
        16: "1x5 2x5 4x3 8x3 16x5",
        32: "2x5 2x5 8x5 8x5 16x3",
        64: "2x5 4x5 16x2 16x3 -",
        128: "4x5 8x5 - - -",
    },
}

# Where a program has 99 KB (Ada, consumer Blackwell): more warps, or none, where the above would
# spill there. Key: bytes an element, rows of the query tile, page size, head dim.
TABLE_99KB = {
    (2, 32, 16, 256): "4x5",
    (2, 64, 32, 256): "8x3",
    (2, 64, 64, 128): "8x3",
    (2, 64, 128, 64): "8x5",
    (2, 64, 128, 128): "8x2",
    (4, 16, 128, 32): "8x3",
    (4, 32, 16, 256): "16x3",
    (4, 32, 64, 32): "4x3",
    (4, 32, 64, 128): "8x2",
    (4, 32, 128, 32): "8x3",
    (4, 64, 32, 128): "-",
    (4, 64, 64, 64): "-",
}
# endregion table


# region choose
def choose_launch(inputs: PagedInputs, q: torch.Tensor, packed: bool = True) -> Launch:
    """Warps and stages for this call on its card; ValueError where the card cannot hold the tiles."""
    if INTERPRETED:
        return Launch(1, 1)  # means nothing there
    if not packed:
        return naive_launch(q.element_size(), inputs.head_dim, inputs.page_size)
    return packed_launch(
        current_target(q.device), q.element_size(), inputs.block_g, inputs.head_dim, inputs.page_size
    )


def packed_launch(
    target: Target, element_bytes: int, block_g: int, head_dim: int, page_size: int
) -> Launch:
    """The table's entry, with as many of its stages as the target's shared memory holds."""
    what = f"{element_bytes}-byte elements, head_dim {head_dim}, page_size {page_size}"
    fits = "a smaller page_size, head_dim or group, or fast_decode of lesson L7"
    entry = TABLE[element_bytes, block_g][page_size].split()[head_dim.bit_length() - 5]
    if target.backend == "hip":
        # No more than 4 waves, so that each lane has all 512 registers, and one buffer of K and V.
        too_large = block_g > 16 and page_size * head_dim * element_bytes >= 2**16
        entry = "-" if entry == "-" or too_large else f"{min(4, int(entry.split('x')[0]))}x2"
    elif target.shared_bytes <= 99 * 1024:
        entry = TABLE_99KB.get((element_bytes, block_g, page_size, head_dim), entry)
    require(entry != "-", f"a tile of {block_g} query rows", f"{what}: its registers spill", fits)
    num_warps, num_stages = map(int, entry.split("x"))
    for stages in range(num_stages, 0, -1):
        needed = shared_bytes(target.backend, stages, element_bytes, block_g, head_dim, page_size)
        if needed <= target.shared_bytes:
            return Launch(num_warps, stages)
    raise ValueError(
        f"{what} need {needed} bytes of shared memory a program; this target has "
        f"{target.shared_bytes}; wanted {fits}"
    )
# endregion choose


# region shared
def shared_bytes(
    backend: str, num_stages: int, element_bytes: int, block_g: int, head_dim: int, page_size: int
) -> int:
    """Shared memory of one program, in bytes: an estimate that the compile tests hold to the truth."""
    tile = page_size * head_dim * element_bytes
    q = block_g * head_dim * element_bytes
    p = block_g * page_size * element_bytes
    if backend == "hip":
        return max(tile, q) if num_stages == 1 else 2 * tile + p * (block_g > 16 or element_bytes == 4)
    # The indirect load of the page id takes every other stage: K and V get half as many buffers.
    buffers = max(1, (num_stages - 1) // 2)  #: buffers
    return 2 * tile * buffers + q + p
# endregion shared


def naive_launch(element_bytes: int, head_dim: int, page_size: int) -> Launch:
    """A warp holds 2048 elements of K and as many of V in registers; nothing is staged."""
    tile = page_size * head_dim
    fits = tile * element_bytes <= 2**16
    require(fits, "page_size * head_dim", tile, "less in fp32: the registers of K and V spill")
    return Launch(max(1, tile // 2048), 2)


@functools.cache
def current_target(device: torch.device) -> Target:
    """The target of a card, as Triton's driver reports it."""
    driver = triton.runtime.driver.active
    properties = driver.utils.get_device_properties(device.index or 0)
    return Target(driver.get_current_target().backend, properties["max_shared_mem"])


@functools.cache
def num_sms(device: torch.device) -> int:
    """Streaming multiprocessors of the card; the interpreter runs one program at a time, so 1."""
    return 1 if INTERPRETED else torch.cuda.get_device_properties(device).multi_processor_count


def new_outputs(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """o [B, Hq, D] in q's dtype and lse [B, Hq] fp32, contiguous and not initialised."""
    return (
        torch.empty(q.shape, dtype=q.dtype, device=q.device),
        torch.empty(q.shape[:2], dtype=torch.float32, device=q.device),
    )


# region arguments
def input_arguments(q, inputs: PagedInputs, block_table, seq_lens, sm_scale) -> tuple:
    """What all paged kernels take, in their order: tensors, scale, strides in elements."""
    return (
        q, inputs.k_cache, inputs.v_cache, block_table, seq_lens,
        1.0 / math.sqrt(inputs.head_dim) if sm_scale is None else sm_scale,  #: default_scale
        *q.stride()[:2], *inputs.k_cache.stride()[:3], *inputs.v_cache.stride()[:3],  #: kv_strides
        block_table.stride(0),
    )
# endregion arguments
