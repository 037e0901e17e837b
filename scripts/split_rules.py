"""How others choose the number of splits, as pure functions on the sizes that our own rule takes.

Written from their sources; snippets/production.toml pins the lines that each names. Each gives the splits
of a sequence where all sequences of the batch are max_seq_len long: fp16, head dim 128, up to 64 query heads
a KV head, one query token. Judged on the times of our kernels (scripts/split_regret.py) they say what a rule
does, not how fast its own kernel is: a rule is made for its kernel's tile and for what its programs cost.
"""

from scripts.split_regret import Rule

FLASH_ATTENTION_TILE = 128  # tokens; head dim 128, paged, pages of less than a tile
MAX_SPLITS = 128
FLASHINFER_MIN_TOKENS = 128  # a chunk, at least
FLASHINFER_BLOCKS_PER_SM = 2
VLLM_MIN_TOKENS = 512
VLLM_SPLITS_PER_SM = 2
VLLM_SEGMENTS = 16
VLLM_TILE = 16  # tokens
VLLM_MIN_PROGRAMS = 128


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


# region flash_attention
def flash_attention(
    batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int
) -> int:
    """FlashAttention-3's heuristic: the fewest splits whose waves are nearly as full as those of the best.

    Source: flash_attention.num_splits_heuristic, flash_attention.get_num_splits.
    Left out: its branch for prefill over KV heads larger than L2; more than one tile of query rows.
    """
    programs, tiles = batch_size * num_kv_heads, ceil_div(max_seq_len, FLASH_ATTENTION_TILE)
    if programs >= 0.8 * num_sms or tiles <= 4:
        return 1
    return fewest_of_full_waves(programs, num_sms, range(1, min(MAX_SPLITS, num_sms, tiles) + 1))


def fewest_of_full_waves(programs: int, slots: int, candidates) -> int:
    """The first candidate whose waves of programs * candidate are at least 85 % as full as the fullest."""
    fullness = {
        splits: programs * splits / (slots * ceil_div(programs * splits, slots)) for splits in candidates
    }
    return next(splits for splits in fullness if fullness[splits] >= 0.85 * max(fullness.values()))


# endregion flash_attention


def flash_attention_2(
    batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int
) -> int:
    """FlashAttention-2's: the same over twice as many slots, without the numbers that make empty splits.

    Source: flash_attention.num_splits_heuristic_fa2.
    Left out: its page size, a multiple of 256, which this rule does not look at.
    """
    programs, tiles = batch_size * num_kv_heads, ceil_div(max_seq_len, FLASH_ATTENTION_TILE)
    slots = 2 * num_sms
    if programs >= 0.8 * slots:
        return 1
    most = min(MAX_SPLITS, slots, tiles)
    useful = [s for s in range(1, most + 1) if s == 1 or ceil_div(tiles, s) != ceil_div(tiles, s - 1)]
    return fewest_of_full_waves(programs, slots, useful)


# region flash_attention_dynamic
def flash_attention_dynamic(
    batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int
) -> int:
    """FlashAttention-3's where the lengths are on the GPU: equal shares of all tiles, with 10 % to spare.

    The heuristic, for a batch of one, is the upper bound; a kernel then sets each sequence's number.
    Source: flash_attention.dynamic_splits, flash_attention.get_num_splits.
    Left out: batches over 992; sorting; sequences of other lengths.
    """
    most = flash_attention(1, num_kv_heads, max_seq_len, page_size, num_sms)
    tiles = ceil_div(max_seq_len, FLASH_ATTENTION_TILE)
    tiles_per_sm = ceil_div(11 * batch_size * tiles * num_kv_heads, 10 * num_sms)
    return max(1, min(ceil_div(tiles, max(1, tiles_per_sm)), most))


# endregion flash_attention_dynamic


# region flashinfer
def flashinfer(batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int) -> int:
    """FlashInfer's plan with tensor cores: the smallest chunk, in pages, for which all chunks run at once.

    Source: flashinfer.prefill_plan, flashinfer.prefill_chunk_search: decode with tensor cores runs its
    prefill kernel. Without them the plan searches alike, over as many blocks as an occupancy query answers,
    not two an SM (flashinfer.decode_split_rule); that answer is the compiled kernel's, so it is not here.
    Left out: windows, a fixed chunk size, more than one tile of query rows.
    """
    num_pages = ceil_div(max_seq_len, page_size)
    return max(1, ceil_div(num_pages, smallest_chunk(
        [num_pages] * batch_size, FLASHINFER_BLOCKS_PER_SM * num_sms // num_kv_heads,
        max(1, FLASHINFER_MIN_TOKENS // page_size),
    )))  # fmt: skip


def smallest_chunk(pages: list[int], most_chunks: int, least: int) -> int:
    """By bisection: the least pages a chunk, from `least` up, that cut `pages` into at most most_chunks."""
    low, high = least, max(1, *pages)
    while low < high:
        middle = (low + high) // 2
        if sum(ceil_div(max(1, n), middle) for n in pages) > most_chunks:
            low = middle + 1
        else:
            high = middle
    return low


# endregion flashinfer


# region vllm
def vllm_decode(batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int) -> int:
    """vLLM's Triton decode kernel, as its MLA backend calls it: a power of two by the longest sequence.

    Source: vllm.decode_num_splits. Left out: the batch-invariant mode, which never splits.
    """
    wanted = max(1, max_seq_len // VLLM_MIN_TOKENS)
    return min(1 << (wanted - 1).bit_length(), VLLM_SPLITS_PER_SM * num_sms)


def vllm_unified(batch_size: int, num_kv_heads: int, max_seq_len: int, page_size: int, num_sms: int) -> int:
    """vLLM's unified kernel: 16 segments while B * Hkv is at most 128, else none.

    Source: vllm.unified_choose_3d, vllm.unified_num_segments, vllm.unified_segment_range.
    Left out: prefill in the batch; the batch-invariant mode; that under CUDA graphs the threshold moves to
    the nearest captured batch size, which for 1, 2 and 8 KV heads it usually is.
    """
    if batch_size > VLLM_MIN_PROGRAMS // num_kv_heads:
        return 1
    tiles = max(1, ceil_div(max_seq_len, VLLM_TILE))
    return ceil_div(tiles, ceil_div(tiles, VLLM_SEGMENTS))  # a segment without tiles returns at once


# endregion vllm


# Those on the page's map, in its order.
RULES: dict[str, Rule] = {
    "flash_attention": flash_attention,
    "flash_attention_dynamic": flash_attention_dynamic,
    "flash_attention_2": flash_attention_2,
    "flashinfer": flashinfer,
    "vllm_decode": vllm_decode,
    "vllm_unified": vllm_unified,
}
