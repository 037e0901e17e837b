"""The write kernel of a paged cache: K and V of new tokens go to the slots that they were given.

Lesson: l1_paged_cache. Reference: write_kv_reference. Source: own.
"""

import torch
import triton
import triton.language as tl

from kernels.checks import check_offsets, check_runnable, check_tensor, is_checked, require

BLOCK = 1024  # elements of K, and of V, that one program moves


# TODO: The kernel, with grid (N, blocks of a row): a program stores one block of a token's K and V.
#   Call its pointers k_ptr, v_ptr, k_cache_ptr, v_cache_ptr and slot_mapping_ptr: the tests look
#   accesses up by these names, and want both rows loaded before the first store.


def write_kv(k, v, k_cache, v_cache, slot_mapping, *, kv_layout="NHD") -> None:
    """Write K and V of new tokens into their slots of a paged cache; all other slots stay as they are.

    Args:
        k, v: [N, Hkv, D] fp16, bf16 (GPU only) or fp32, any strides with a contiguous last dim (so
            slices of a fused QKV projection); D a multiple of 8, up to 1024, and V may have a D of
            its own. v and v_cache None: only K, for a model that stores one tensor a token.
        k_cache, v_cache: [num_pages, page_size, Hkv, D] ("NHD") or [num_pages, Hkv, page_size, D]
            ("HND"), k's dtype, any strides with a contiguous last dim; written in place.
        slot_mapping: [N] int32 or int64: page * page_size + slot in the page. A token at -1 is not
            stored. No two tokens may have the same slot.

    Raises:
        ValueError, TypeError: before any launch, naming the argument. The slots themselves are
            checked in the interpreter and under KERNELS_CHECKED=1 only.
    """
    pairs = check_write_inputs(k, v, k_cache, v_cache, slot_mapping, kv_layout)
    # TODO: Launch. pairs has (new, NHD view of its cache) of K, and of V unless v is None:
    #   whatever the layout, hand the kernel strides. There may be no tokens at all.


def check_write_inputs(k, v, k_cache, v_cache, slot_mapping, kv_layout):
    """Everything that `write_kv` needs to hold; returns (new, NHD view of its cache) of K and V."""
    require(kv_layout in ("NHD", "HND"), "kv_layout", repr(kv_layout), "'NHD' or 'HND'")
    require((v is None) == (v_cache is None), "v_cache", v_cache, "None with v, and only with it")
    slot = "page_size, Hkv" if kv_layout == "NHD" else "Hkv, page_size"
    check_tensor("k", k, "N, Hkv, D")
    check_runnable("k", k)
    named = [("k", k, k_cache)] + ([("v", v, v_cache)] if v is not None else [])
    pairs = []
    for name, new, cache in named:
        check_tensor(name, new, "N, Hkv, D", like=k)
        check_tensor(f"{name}_cache", cache, f"num_pages, {slot}, D", like=k)
        cache = cache.transpose(1, 2) if kv_layout == "HND" else cache
        num_heads, head_dim = new.shape[1:]
        require(new.shape[:2] == k.shape[:2], name, new, f"{list(k.shape[:2])} first, as k")
        require(num_heads >= 1, f"Hkv of {name}", num_heads, "at least 1")
        ok = head_dim % 8 == 0 and 8 <= head_dim <= 1024
        require(ok, f"the last dim of {name}", head_dim, "a multiple of 8 from 8 to 1024")
        ok = tuple(cache.shape[2:]) == (num_heads, head_dim)
        require(ok, f"{name}_cache", cache, f"[num_pages, page_size, {num_heads}, {head_dim}] as NHD")
        ok = cache.shape[:2] == pairs[0][1].shape[:2] if pairs else cache.shape[1] >= 1
        require(ok, f"{name}_cache", cache, "the pages of k_cache, of at least 1 token")
        check_offsets(f"a token of {name}", new.shape[1:2], new.stride()[1:2])
        check_offsets(f"a slot of {name}_cache", cache.shape[2:3], cache.stride()[2:3])
        pairs.append((new, cache))
    integer = torch.int32 if getattr(slot_mapping, "dtype", None) == torch.int32 else torch.int64
    check_tensor("slot_mapping", slot_mapping, "N", like=k, dtype=integer)
    require(len(slot_mapping) == len(k), "slot_mapping", slot_mapping, f"{len(k)} slots, as k")
    if is_checked():
        num_pages, page_size = pairs[0][1].shape[:2]
        check_slots(slot_mapping, num_pages * page_size)
    return pairs


def check_slots(slot_mapping, num_slots: int) -> None:
    """Checked mode: each slot is one of the cache or -1, and no slot is given twice."""
    owner: dict[int, int] = {}
    for i, slot in enumerate(slot_mapping.tolist()):
        wanted = f"-1, or 0 to {num_slots - 1}: the cache has {num_slots} slots"
        require(-1 <= slot < num_slots, f"slot_mapping[{i}]", slot, wanted)
        if slot >= 0:
            other = owner.setdefault(slot, i)
            wanted = f"a slot of its own: token {other} has it already"
            require(other == i, f"slot_mapping[{i}]", slot, wanted)
