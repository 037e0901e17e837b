"""How `fast_decode` is launched: its tiles, and how a second launch costs little Python.

Lesson: l7_fast_decode. Source: own.
"""

import functools
from typing import NamedTuple

import torch
import triton

from kernels.checks import INTERPRETED, require
from kernels.launch import Target, current_target


class Tile(NamedTuple):
    """block_n: tokens an iteration; num_warps: a program; num_stages: of the pipeline."""

    block_n: int
    num_warps: int
    num_stages: int


# region tiles
# Tokens x warps x stages: the fastest of a sweep, snippets/results/nvidia-h200/tile_sweep.json, that
# spill on no target (to 3 %, which it takes to change one).
# Key: bytes an element of the cache, rows of the query tile; columns: D up to 16, 32, 64, 128, 256;
# e4m3 begins at 32.
TILES = {
    (1, 16): "- 128x1x3 128x4x3 64x4x3 16x2x4",
    (1, 32): "- 128x2x3 64x1x3 32x2x4 64x4x3",
    (1, 64): "- 128x2x3 64x4x3 32x4x4 32x4x3",
    (2, 16): "128x1x3 64x1x4 64x1x3 16x1x4 16x2x3",  #: row_fp16
    (2, 32): "64x1x3 64x2x3 64x2x3 32x2x3 16x2x3",
    (2, 64): "128x2x3 64x2x3 64x4x3 16x4x4 16x4x3",
    (4, 16): "64x1x3 64x2x3 32x2x3 16x2x3 16x4x3",
    (4, 32): "64x2x3 16x1x3 16x2x3 32x8x3 16x8x3",
    (4, 64): "64x2x3 32x2x4 32x8x3 16x8x3 16x16x3",
}
# With splits, where a waiting combine kernel would crowd the next launch onto a few SMs.
SPLIT = {(1, 16, 128): Tile(64, 2, 3)}  #: split_tile
# With more programs an SM than fit side by side, tiles of which more fit.
MANY = {(1, 16, 128): Tile(16, 1, 4), (2, 16, 128): Tile(16, 1, 3)}
PROGRAMS_AT_ONCE = 7  # an SM  #: at_once
# endregion tiles


# region choose_tile
def block_d(head_dim: int, fp8: bool) -> int:
    """Columns of a tile: D rounded up to what a tensor-core product takes; of e4m3, each half of it."""
    return max(32 if fp8 else 16, 1 << (head_dim - 1).bit_length())


def choose_tile(
    target: Target, kv_bytes: int, block_g: int, columns: int, programs_per_sm: float, merges: bool
) -> Tile:
    """The table's tile, with as many of its stages as fit; merges: whether splits are combined."""
    row = TILES[kv_bytes, block_g].split()
    tile = Tile(*map(int, row[columns.bit_length() - 5].split("x")))
    if merges:
        tile = SPLIT.get((kv_bytes, block_g, columns), tile)
    if programs_per_sm > PROGRAMS_AT_ONCE:
        tile = MANY.get((kv_bytes, block_g, columns), tile)
    if target.backend == "hip":
        tile = tile._replace(num_warps=min(4, tile.num_warps), num_stages=2)
    for stages in range(tile.num_stages, 0, -1):  #: fit
        tile = tile._replace(num_stages=stages)
        if tile_shared_bytes(tile, kv_bytes, block_g, columns) <= target.shared_bytes:
            return tile
    needed = tile_shared_bytes(tile, kv_bytes, block_g, columns)
    what = f"a tile of {tile.block_n} tokens x {columns} dims"
    raise ValueError(f"{what} is {needed} bytes of shared memory; this target has {target.shared_bytes}")


def masks_all(kv_bytes: int, block_g: int, columns: int) -> bool:
    """Whether one masked loop does for all tiles: a second copy of the step would spill there."""
    return kv_bytes == 4 or block_g * columns >= 8192


def tile_shared_bytes(tile: Tile, kv_bytes: int, block_g: int, columns: int) -> int:
    """Shared memory of one program, an estimate from above: K, V a stage, and q and p."""
    # 64 rows and 4 warps are a wgmma on sm_90, which reads a buffer while the next ones fill.
    buffers = tile.num_stages if block_g == 64 and tile.num_warps >= 4 else max(1, tile.num_stages - 1)
    kv = 2 * tile.block_n * columns * kv_bytes * buffers
    return kv + block_g * (columns + 2 * tile.block_n) * max(2, kv_bytes)
# endregion choose_tile


@functools.cache
def has_dependent_launch(device: torch.device) -> bool:
    """Whether kernels can be launched before the ones they wait for are done: sm_90 and later."""
    if INTERPRETED or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= (9, 0)


def require_fp8(device: torch.device) -> None:
    """Refuse an e4m3 cache where the card has no instruction to convert it."""
    if INTERPRETED:
        return
    backend = current_target(device).backend
    capability = torch.cuda.get_device_capability(device)
    ok = backend == "cuda" and capability >= (8, 9)
    wanted = "fp16 or bf16 here: e4m3 is converted by an instruction that NVIDIA cards have from sm_89 on"
    require(ok, "the dtype of k_cache", torch.float8_e4m3fn, wanted, TypeError)


# region frozen
class FrozenKernel:
    """A kernel with its grid and constants, for arguments that always have the same types.

    The first launch goes through Triton's JIT, which looks at every argument: its type, whether it
    divides by 16, whether it is 1. Later launches run what the first compiled, on addresses, and
    look at nothing; so whoever keeps one must have the alignment of every tensor, and every stride,
    in its key. Triton's launch hooks (profilers use them) are not called for those.
    """

    def __init__(self, kernel, grid: tuple[int, int, int], constants: dict, options: dict):
        self.kernel, self.grid, self.constants, self.options = kernel, grid, constants, options
        self.constant_values = tuple(constants.values())
        self.launch = None

    def __call__(self, tensors: tuple, *numbers) -> None:
        """Launch with the kernel's tensors, some of them None, and then its numbers."""
        if self.launch is None:
            compiled = self.kernel[self.grid](  #: slow_way
                *tensors, *numbers, **self.constants, **self.options
            )
            if not INTERPRETED:
                self.device = triton.runtime.driver.active.get_current_device()
                self.function, self.metadata = compiled.function, compiled.packed_metadata
                self.launch = compiled.run
            return
        stream = triton.runtime.driver.active.get_current_stream(self.device)
        addresses = [None if tensor is None else tensor.data_ptr() for tensor in tensors]  #: addresses
        self.launch(  #: fast_way
            *self.grid, stream, self.function, self.metadata, None, None, None,
            *addresses, *numbers, *self.constant_values,
        )
# endregion frozen
