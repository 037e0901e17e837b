"""What every launcher refuses, on the host and before any launch.

Nothing here copies device data to the host, unless checked mode asks for it: the interpreter does,
and KERNELS_CHECKED=1, set before this module is imported.
"""

import os
from typing import NamedTuple

import torch
import triton

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
# The kernels are decorated for the interpreter or for the compiler at import: read it then, too.
INTERPRETED = triton.knobs.runtime.interpret
CHECKED = INTERPRETED or os.environ.get("KERNELS_CHECKED") == "1"


class PagedInputs(NamedTuple):
    """The sizes of one call, and both caches as NHD views [num_pages, page_size, Hkv, D]."""

    batch_size: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    page_size: int
    max_pages: int
    k_cache: torch.Tensor
    v_cache: torch.Tensor

    @property
    def group_size(self) -> int:
        """Query heads that share one KV head."""
        return self.num_qo_heads // self.num_kv_heads

    # region block_g
    @property
    def block_g(self) -> int:
        """Rows of the query tile: a tensor-core instruction is 16 rows tall."""
        return max(16, triton.next_power_of_2(self.group_size))  #: rows
    # endregion block_g


def describe(value) -> str:
    """A value as error messages show it; a tensor by dtype, shape and device, never by its data."""
    if not isinstance(value, torch.Tensor):
        return str(value) if isinstance(value, (str, int, float)) else repr(value)
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)} on {value.device}"


def require(ok: bool, name: str, value, wanted: str, error: type[Exception] = ValueError) -> None:
    """Raise `error` naming the argument, what it is and what was wanted, unless `ok`."""
    if not ok:
        raise error(f"{name} is {describe(value)}; wanted {wanted}")


def is_power_of_two(n: int, low: int = 1, high: int | None = None) -> bool:
    """Whether n is a power of two within [low, high]."""
    return n >= low and (high is None or n <= high) and n & (n - 1) == 0


def check_tensor(name: str, tensor, shape: str, like=None, dtype=None) -> None:
    """Rank (the words of `shape`), contiguous last dim, and the dtype and device of `like`."""
    require(isinstance(tensor, torch.Tensor), name, tensor, f"a tensor [{shape}]", TypeError)
    require(tensor.dim() == len(shape.split(",")), name, tensor, f"[{shape}]")
    if dtype is None and like is not None:
        dtype = like.dtype
    if dtype is None:
        wanted = "float16, bfloat16 or float32"
        require(tensor.dtype in DTYPES, name, tensor, wanted, TypeError)
    else:
        require(tensor.dtype == dtype, name, tensor, str(dtype).removeprefix("torch."), TypeError)
    if like is not None:
        require(tensor.device == like.device, name, tensor, f"a tensor on {like.device}")
    contiguous = tensor.shape[-1] <= 1 or tensor.stride(-1) == 1
    require(contiguous, f"the last stride of {name}", tensor.stride(-1), "1: a contiguous last dim")


def check_runnable(name: str, tensor: torch.Tensor) -> None:
    """Refuse bf16 in the interpreter, and a CPU tensor without the interpreter."""
    if INTERPRETED:
        # The interpreter holds bf16 as raw 16-bit integers and computes with those.
        wanted = "float16 or float32: Triton's interpreter computes bf16 wrongly, it needs a GPU"
        require(tensor.dtype != torch.bfloat16, name, tensor, wanted, TypeError)
    else:
        wanted = "a tensor on a GPU, or TRITON_INTERPRET=1 set before `kernels` is imported"
        require(tensor.is_cuda, name, tensor, wanted)
        here = torch.cuda.current_device()  # where Triton launches, wherever the tensors are
        wanted = f"a tensor on cuda:{here}, the current device (torch.cuda.device changes it)"
        require(tensor.device.index == here, name, tensor, wanted)


def check_offsets(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Refuse strides that pass 2**31 elements in dims whose offsets the kernels compute in int32."""
    largest = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size)
    wanted = "less than 2**31: only the first dim may be that far apart"
    require(largest < 2**31, f"the offset of the last row of {name}", largest, wanted)


def check_paged_inputs(
    q, k_cache, v_cache, block_table, seq_lens, kv_layout, kv_dtype=None
) -> PagedInputs:
    """Everything that a paged decode needs to hold, whatever its kernel; kv_dtype: None is q's."""
    require(kv_layout in ("NHD", "HND"), "kv_layout", repr(kv_layout), "'NHD' or 'HND'")
    slot = "page_size, Hkv" if kv_layout == "NHD" else "Hkv, page_size"
    check_tensor("q", q, "B, Hq, D")
    check_tensor("k_cache", k_cache, f"num_pages, {slot}, D", like=q, dtype=kv_dtype)
    check_tensor("v_cache", v_cache, f"num_pages, {slot}, D", like=q, dtype=kv_dtype)
    check_tensor("block_table", block_table, "B, max_pages", like=q, dtype=torch.int32)
    check_tensor("seq_lens", seq_lens, "B", like=q, dtype=torch.int32)
    check_runnable("q", q)

    # region layout
    if kv_layout == "HND":
        k_cache, v_cache = k_cache.transpose(1, 2), v_cache.transpose(1, 2)  #: hnd_view
    # endregion layout
    batch_size, num_qo_heads, head_dim = q.shape
    num_pages, page_size, num_kv_heads, cache_dim = k_cache.shape
    require(v_cache.shape == k_cache.shape, "v_cache", v_cache, "the shape of k_cache")
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        check_offsets(f"a page of {name}", cache.shape[1:3], cache.stride()[1:3])
    require(cache_dim == head_dim, "the last dim of k_cache", cache_dim, f"{head_dim}, as q has")
    require(len(block_table) == batch_size, "block_table", block_table, f"{batch_size} rows, as q")
    require(len(seq_lens) == batch_size, "seq_lens", seq_lens, f"{batch_size} lengths, as q")
    require(page_size > 0, "page_size", page_size, "at least 1 token")
    divides = num_kv_heads > 0 and num_qo_heads > 0 and num_qo_heads % num_kv_heads == 0
    require(divides, "Hq", num_qo_heads, f"a positive multiple of Hkv = {num_kv_heads}")
    if is_checked():
        check_ids(block_table, seq_lens, page_size, num_pages)
    max_pages = block_table.shape[1]
    return PagedInputs(
        batch_size, num_qo_heads, num_kv_heads, head_dim, page_size, max_pages, k_cache, v_cache
    )


def is_checked() -> bool:
    """Whether lengths and page ids are looked at, too, which copies them to the host."""
    return CHECKED


def check_ids(block_table, seq_lens, page_size: int, num_pages: int) -> None:
    """Checked mode: each length fits its table row, each id that is read is a page of the cache."""
    max_pages = block_table.shape[1]
    capacity = max_pages * page_size
    table = block_table.tolist()
    for b, seq_len in enumerate(seq_lens.tolist()):
        wanted = f"0 to {capacity}: a block_table row holds {max_pages} pages of {page_size} tokens"
        require(0 <= seq_len <= capacity, f"seq_lens[{b}]", seq_len, wanted)
        for p, page_id in enumerate(table[b][: -(-seq_len // page_size)]):
            wanted = f"0 to {num_pages - 1}: the cache has {num_pages} pages"
            require(0 <= page_id < num_pages, f"block_table[{b}, {p}]", page_id, wanted)


# region lesson_contract
def check_lesson_inputs(*paged_inputs) -> PagedInputs:
    """`check_paged_inputs`, and what keeps the lesson kernels plain: one page is one tile."""
    inputs = check_paged_inputs(*paged_inputs)
    q = paged_inputs[0]
    check_offsets("a sequence of q", q.shape[1:2], q.stride()[1:2])
    page_size, head_dim, group_size = inputs.page_size, inputs.head_dim, inputs.group_size
    beyond = "in a lesson kernel (fast_decode, of lesson L7, is the one for other sizes)"
    ok = is_power_of_two(page_size, 16, 128)
    require(ok, "page_size", page_size, f"a power of two from 16 to 128 {beyond}")
    ok = is_power_of_two(head_dim, 16, 256)
    require(ok, "head_dim", head_dim, f"a power of two from 16 to 256 {beyond}")
    require(group_size <= 64, "Hq / Hkv", group_size, "1 to 64 query heads a KV head")
    return inputs
# endregion lesson_contract


# region fast_contract
def check_fast_inputs(
    q, k_cache, v_cache, block_table, seq_lens, kv_layout, k_scale, v_scale
) -> PagedInputs:
    """`check_paged_inputs` for fast_decode: more sizes, and e4m3 caches with their scales."""
    fp8 = isinstance(k_cache, torch.Tensor) and k_cache.dtype == torch.float8_e4m3fn
    inputs = check_paged_inputs(
        q, k_cache, v_cache, block_table, seq_lens, kv_layout, torch.float8_e4m3fn if fp8 else None
    )
    page_size, head_dim, group_size = inputs.page_size, inputs.head_dim, inputs.group_size
    require(1 <= page_size <= 1024, "page_size", page_size, "1 to 1024 tokens")
    ok = 8 <= head_dim <= 256 and head_dim % 8 == 0
    require(ok, "head_dim", head_dim, "a multiple of 8 from 8 to 256")
    require(group_size <= 64, "Hq / Hkv", group_size, "1 to 64 query heads a KV head")
    if fp8:
        require(q.dtype != torch.float32, "q", q, "float16 or bfloat16 beside e4m3 caches", TypeError)
        for name, cache in (("k_cache", inputs.k_cache), ("v_cache", inputs.v_cache)):
            strides = list(cache.stride()[:3])
            even = all(stride % 2 == 0 for stride in strides) and cache.data_ptr() % 2 == 0
            wanted = "even strides and an even address: e4m3 is read in pairs"
            require(even, f"{name}'s strides", strides, wanted)
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        if isinstance(scale, torch.Tensor):
            ok = scale.numel() == 1 and scale.dtype == torch.float32 and scale.device == q.device
            require(ok, name, scale, f"one float32 element on {q.device}")
        else:
            ok = scale is None or (isinstance(scale, (int, float)) and not isinstance(scale, bool))
            require(ok, name, scale, "a number, a tensor of one float32 element, or None", TypeError)
    return inputs
# endregion fast_contract
