"""How `fast_decode` is launched: its tiles, and how a second launch costs little Python.

Lesson: l7_fast_decode. Source: own.
"""

import functools
from typing import NamedTuple

import torch

from kernels.checks import INTERPRETED, require
from kernels.launch import Target, current_target


class Tile(NamedTuple):
    """block_n: tokens an iteration; num_warps: a program; num_stages: of the pipeline."""

    block_n: int
    num_warps: int
    num_stages: int


# region tiles
# Tokens x warps x stages: the fastest on an H200 of those that do not spill (the lesson's sweep).
# Key: bytes an element of the cache, rows of the query tile; columns: D up to 16, 32, 64, 128, 256.
TILES = {
    (1, 16): "64x1x4 64x1x4 64x1x4 32x1x4 16x1x4",
    (1, 32): "64x1x4 64x1x4 32x1x4 32x2x4 32x4x4",
    (1, 64): "64x4x4 64x4x4 64x4x4 32x4x4 32x4x4",
    (2, 16): "64x1x4 64x1x4 32x1x4 16x1x4 16x2x4",
    (2, 32): "64x1x4 64x1x4 32x1x4 16x2x4 16x4x4",
    (2, 64): "64x4x4 64x4x4 32x4x4 16x4x4 16x4x4",
    (4, 16): "16x1x4 16x1x4 16x1x4 16x4x4 16x4x3",
    (4, 32): "16x1x4 16x1x4 16x2x4 16x4x4 16x8x3",
    (4, 64): "16x1x4 16x2x4 16x4x4 16x8x4 16x16x3",
}
# With more programs than the SMs hold at once, fewer of them side by side are faster.
MANY = {(2, 16, 128): Tile(64, 2, 2)}
PROGRAMS_AT_ONCE = 4.5  # an SM
# endregion tiles


# region choose_tile
def choose_tile(
    target: Target, kv_bytes: int, block_g: int, block_d: int, programs_per_sm: float
) -> Tile:
    """The table's tile, with as many of its stages as fit."""
    columns = TILES[kv_bytes, block_g].split()
    tile = Tile(*map(int, columns[max(0, block_d.bit_length() - 5)].split("x")))
    if programs_per_sm > PROGRAMS_AT_ONCE:
        tile = MANY.get((kv_bytes, block_g, block_d), tile)
    if target.backend == "hip":
        tile = tile._replace(num_warps=min(4, tile.num_warps), num_stages=2)
    for stages in range(tile.num_stages, 0, -1):
        tile = tile._replace(num_stages=stages)
        if tile_shared_bytes(tile, kv_bytes, block_g, block_d) <= target.shared_bytes:
            return tile
    needed = tile_shared_bytes(tile, kv_bytes, block_g, block_d)
    what = f"a tile of {tile.block_n} tokens x {block_d} dims"
    raise ValueError(f"{what} is {needed} bytes of shared memory; this target has {target.shared_bytes}")


def tile_shared_bytes(tile: Tile, kv_bytes: int, block_g: int, block_d: int) -> int:
    """Shared memory of one program, an estimate from above: K, V a stage, and q and p."""
    kv = 2 * tile.block_n * block_d * kv_bytes * max(1, tile.num_stages - 1)
    return kv + block_g * (block_d + 2 * tile.block_n) * max(2, kv_bytes)
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
    divides by 16, whether it is 1. Later launches skip all that and run what the first compiled; so
    whoever keeps one of these must have the alignment of pointers and all strides in its key.
    """

    def __init__(self, kernel, grid: tuple[int, int, int], constants: dict, options: dict):
        self.kernel, self.grid, self.constants, self.options = kernel, grid, constants, options
        self.constant_values = tuple(constants.values())
        self.run = None

    def __call__(self, *args):
        """Launch; a tensor argument may be given as its address after the first time."""
        if self.run is not None:
            self.run(*args, *self.constant_values)
            return
        compiled = self.kernel[self.grid](*args, **self.constants, **self.options)
        if not INTERPRETED:
            self.run = compiled[self.grid]
# endregion frozen
