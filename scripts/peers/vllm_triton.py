"""vLLM's two Triton decode kernels, from an installed vLLM or from its source files alone.

The files import a little of vLLM: its platform, logger and one enum. Read from a folder, they get stand-ins
for these, and the kernels themselves are theirs, unchanged.
"""

import enum
import hashlib
import importlib
import importlib.machinery
import logging
import math
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch
import triton
import triton.language as tl

from scripts.bench_inputs import PageSet, Pool
from scripts.peers import Candidate, Missing, labelled, load

OPS = "vllm.v1.attention.ops"
FILES = ("triton_decode_attention.py", "triton_unified_attention.py")
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128)
SEGMENTS = (8, 16, 32, 64)  # 16 is vLLM's own
MOST_PROGRAMS = 8192  # (sequence, KV head, split); beyond, only the combine grows
FEWEST_TOKENS = 64  # of a split


class KVQuantMode(enum.IntEnum):
    """vllm.v1.kv_cache_interface.KVQuantMode, as far as these kernels know it."""

    NONE = 0
    FP8_PER_TENSOR = 1
    INT8_PER_TOKEN_HEAD = 2
    FP8_PER_TOKEN_HEAD = 3
    INT4_PER_TOKEN_HEAD = 4


def use_folder(folder: Path) -> None:
    """Take the two files from `folder` (or from a checkout of vLLM), whatever is installed."""
    inside = folder / OPS.replace(".", "/")
    folder = inside if inside.is_dir() else folder
    for name in FILES:
        if not (folder / name).is_file():
            raise Missing(f"missing: {folder} has no {name}; wanted vLLM's {OPS.replace('.', '/')}")
    for name in [name for name in sys.modules if name == "vllm" or name.startswith("vllm.")]:
        del sys.modules[name]
    platform = SimpleNamespace(
        is_rocm=lambda: torch.version.hip is not None, is_cuda=lambda: torch.version.cuda is not None,
        is_xpu=lambda: False, fp8_dtype=lambda: torch.float8_e4m3fn,
        is_device_capability_family=lambda family: torch.cuda.get_device_capability()[0] == family // 10,
    )  # fmt: skip
    stand_ins = {
        "vllm": {"__version__": folder_version(folder)},
        "vllm.envs": {"VLLM_BATCH_INVARIANT": False},
        "vllm.logger": {"init_logger": logging.getLogger},
        "vllm.platforms": {"current_platform": platform},
        "vllm.triton_utils": {"tl": tl, "triton": triton},
        "vllm.v1": {},
        "vllm.v1.kv_cache_interface": {"KVQuantMode": KVQuantMode},
        "vllm.v1.attention": {},
        OPS: {},
    }
    for name, content in stand_ins.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        module.__path__ = [str(folder)] if name == OPS else []
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module


def folder_version(folder: Path) -> str:
    """The folder's VERSION file where there is one, and a hash of the two files."""
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()[:12]
    named = folder / "VERSION"
    return f"{named.read_text().strip() if named.is_file() else 'from files'} (sha256 {digest})"


def version() -> str:
    """The installed version, or that of the folder."""
    return load("vllm").__version__


def decode(pool: Pool) -> list[Candidate]:
    """decode_attention_fwd: always two kernels; the caller gives the number of splits."""
    run, shape = load(f"{OPS}.triton_decode_attention").decode_attention_fwd, pool.shape
    q = pool.sets[0].q
    out, lse = torch.empty_like(q), torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    k_scale, v_scale = _scales(pool)

    def candidate(splits: int) -> Candidate:
        partials = torch.empty(*q.shape[:2], splits, shape.head_dim + 1, dtype=torch.float32, device=q.device)

        def launch(s: PageSet):
            run(
                s.q, pool.k_cache, pool.v_cache, out, lse, s.block_table, pool.seq_lens, partials, splits,
                1 / math.sqrt(shape.head_dim), shape.page_size, 0.0, k_scale, v_scale,
            )  # fmt: skip

        return Candidate(labelled(splits=splits), launch, out, lse=lse)

    programs = shape.batch_size * shape.num_kv_heads
    return [
        candidate(splits)
        for splits in SPLITS
        if splits == 1 or (programs * splits <= MOST_PROGRAMS and shape.ctx >= FEWEST_TOKENS * splits)
    ]


def unified(pool: Pool) -> list[Candidate]:
    """unified_attention: 2D (one program per sequence and KV head), and 3D with several segments each."""
    run, shape = load(f"{OPS}.triton_unified_attention").unified_attention, pool.shape
    modes = load("vllm.v1.kv_cache_interface").KVQuantMode
    q = pool.sets[0].q
    out = torch.empty_like(q)
    k_scale, v_scale = _scales(pool)
    starts = torch.arange(shape.batch_size + 1, dtype=torch.int32, device=q.device)
    common = partial(
        run, k=pool.k_cache, v=pool.v_cache, out=out, cu_seqlens_q=starts, max_seqlen_q=1,
        seqused_k=pool.seq_lens, max_seqlen_k=shape.ctx, softmax_scale=1 / math.sqrt(shape.head_dim),
        causal=True, window_size=(-1, -1), softcap=0.0, q_descale=None,
        k_descale=k_scale if shape.is_fp8 else None, v_descale=v_scale if shape.is_fp8 else None,
        kv_quant_mode=modes.FP8_PER_TENSOR if shape.is_fp8 else modes.NONE,
    )  # fmt: skip

    def candidate(setting: str, **more) -> Candidate:
        return Candidate(setting, lambda s: common(q=s.q, block_table=s.block_table, **more), out)

    found = [candidate("2D")]
    for segments in SEGMENTS:
        if segments > 16 and shape.batch_size * shape.num_kv_heads * segments > MOST_PROGRAMS:
            continue
        partials = torch.empty(*q.shape[:2], segments, shape.head_dim, dtype=torch.float32, device=q.device)
        sums = torch.empty(2, *q.shape[:2], segments, dtype=torch.float32, device=q.device)
        found.append(
            candidate(
                f"3D, {segments} segments", seq_threshold_3D=shape.batch_size,
                num_par_softmax_segments=segments, softmax_segm_output=partials,
                softmax_segm_max=sums[0], softmax_segm_expsum=sums[1],
            )
        )  # fmt: skip
    return found


PEERS = {"vllm_decode": decode, "vllm_unified": unified}


def _scales(pool: Pool) -> list[torch.Tensor]:
    """k_scale and v_scale on the device, as vLLM's layers hold them."""
    return [torch.tensor(scale, dtype=torch.float32, device=pool.flat.device) for scale in pool.shape.scales]
