"""One tile of a paged cache: its pages, its bytes, and its step of the online softmax.

Lesson: l7_fast_decode. Reference: paged_attention_reference.
Source: own.
"""

import triton
import triton.language as tl


# region unpack
@triton.jit
def unpack_e4m3(pairs, dtype: tl.constexpr, INTERPRETED: tl.constexpr):
    """int16 tile, each element two e4m3 of neighbouring dims -> (even dims, odd dims) in dtype.

    In pairs, because the tensor core wants V's tokens side by side, and the instruction that turns
    a tile round while it reads it from shared memory (ldmatrix.trans) moves 16 bits at a time.
    """
    if INTERPRETED:
        low = (pairs & 0xFF).to(tl.uint8).to(tl.float8e4nv, bitcast=True)
        high = ((pairs >> 8) & 0xFF).to(tl.uint8).to(tl.float8e4nv, bitcast=True)
        even, odd = low.to(dtype), high.to(dtype)
    else:
        even, odd = tl.inline_asm_elementwise(  #: unpack_asm
            """{
            .reg .b16 first, second;
            .reg .b32 x, y;
            mov.b32 {first, second}, $2;
            cvt.rn.f16x2.e4m3x2 x, first;
            cvt.rn.f16x2.e4m3x2 y, second;
            prmt.b32 $0, x, y, 0x5410;
            prmt.b32 $1, x, y, 0x7632;
            }""",
            "=r,=r,r", [pairs], dtype=(tl.float16, tl.float16), is_pure=True, pack=2,
        )  #: unpack_asm
        even, odd = even.to(dtype), odd.to(dtype)
    return even, odd
# endregion unpack


# region page_ids
@triton.jit
def page_ids_of(
    table_ptr, offset, tokens_left, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Physical pages of the BLOCK_N tokens from `offset` on: one a tile where a page holds the
    tile, else one a token; 0 where no token is left, and then nothing of the table is read."""
    offs_n = tl.arange(0, BLOCK_N)
    if PAGE_SIZE % BLOCK_N == 0:
        ids = tl.load(table_ptr + offset // PAGE_SIZE, mask=tokens_left > 0, other=0)  #: one_id
    else:
        if BLOCK_N % PAGE_SIZE == 0:  # the tile starts with a page: the compiler knows the rest
            pages = offset // PAGE_SIZE + offs_n // PAGE_SIZE  #: many_ids
        else:
            pages = (offset + offs_n) // PAGE_SIZE
        ids = tl.load(table_ptr + pages, mask=offs_n < tokens_left, other=0)
    return ids.to(tl.int64)  # int64: id * stride passes 2**31 in a cache of a few GiB  #: int64
# endregion page_ids


# region tile
@triton.jit
def load_tile(
    ptr, page_ids, offset, tokens_left, stride_page, stride_n,
    PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr,
    COLUMNS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr, MASKED: tl.constexpr,
):
    """[BLOCK_N, BLOCK_COLUMNS] of one KV head; what is no token or no column is 0."""
    offs_n = tl.arange(0, BLOCK_N)
    offs_c = tl.arange(0, BLOCK_COLUMNS)
    if PAGE_SIZE % BLOCK_N == 0:
        # One page: a scalar base, and rows a constant stride apart.
        ptr += page_ids * stride_page + (offset % PAGE_SIZE) * stride_n  #: one_base
        rows = offs_n * stride_n
    elif BLOCK_N % PAGE_SIZE == 0:
        rows = page_ids * stride_page + (offs_n % PAGE_SIZE) * stride_n  #: many_pages
    else:
        rows = page_ids * stride_page + ((offset + offs_n) % PAGE_SIZE) * stride_n  #: any_page
    ptrs = ptr + rows[:, None] + offs_c[None, :]
    if MASKED:
        mask = (offs_n < tokens_left)[:, None] & (offs_c < COLUMNS)[None, :]
        tile = tl.load(ptrs, mask=mask, other=0)
    elif COLUMNS < BLOCK_COLUMNS:
        tile = tl.load(ptrs, mask=(offs_c < COLUMNS)[None, :], other=0)
    else:
        tile = tl.load(ptrs)  #: bare_load
    return tile


@triton.jit
def attend_tile(
    q, q_odd, m_i, l_i, acc, acc_odd,
    k_ptr, v_ptr, page_ids, offset, tokens_left, qk_scale,
    stride_k_page, stride_k_n, stride_v_page, stride_v_n,
    PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr,
    COLUMNS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr, MASKED: tl.constexpr,
    FP8: tl.constexpr, INTERPRETED: tl.constexpr,
):
    """One step of the online softmax, in base 2; only a MASKED tile may hold less than BLOCK_N."""
    k = load_tile(
        k_ptr, page_ids, offset, tokens_left, stride_k_page, stride_k_n,
        PAGE_SIZE, BLOCK_N, COLUMNS, BLOCK_COLUMNS, MASKED,
    )
    v = load_tile(
        v_ptr, page_ids, offset, tokens_left, stride_v_page, stride_v_n,
        PAGE_SIZE, BLOCK_N, COLUMNS, BLOCK_COLUMNS, MASKED,
    )
    if FP8:
        k_even, k_odd = unpack_e4m3(k, q.dtype, INTERPRETED)
        s = tl.dot(q, tl.trans(k_even), input_precision="ieee")
        s = tl.dot(q_odd, tl.trans(k_odd), s, input_precision="ieee") * qk_scale  #: two_halves
    else:
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * qk_scale  # [BLOCK_G, BLOCK_N]  #: scores
    if MASKED:
        s = tl.where((tl.arange(0, BLOCK_N) < tokens_left)[None, :], s, -float("inf"))
    m_new = tl.maximum(m_i, tl.max(s, 1))
    alpha = tl.exp2(m_i - m_new)
    p = tl.exp2(s - m_new[:, None])  #: exp2
    l_i = l_i * alpha + tl.sum(p, 1)
    p = p.to(q.dtype)
    if FP8:
        v_even, v_odd = unpack_e4m3(v, q.dtype, INTERPRETED)
        acc = tl.dot(p, v_even, acc * alpha[:, None], input_precision="ieee")
        acc_odd = tl.dot(p, v_odd, acc_odd * alpha[:, None], input_precision="ieee")  #: two_accs
    else:
        acc = tl.dot(p, v, acc * alpha[:, None], input_precision="ieee")
    return m_new, l_i, acc, acc_odd
# endregion tile
