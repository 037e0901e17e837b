"""Split rules of others: every number here is worked out by hand from their sources, for 132 SMs."""

import tomllib

import pytest

from scripts import records, split_rules
from scripts.split_regret import PAGE_SIZE, grid

SMS = 132

# (B, Hkv, ctx), splits, why
FLASH_ATTENTION = [
    # 8 programs, up to 128 splits; 33 fill two waves. 14: 112/132 = 0.848 < 0.85; 15: 120/132 = 0.909.
    ((1, 8, 32768), 15),
    # 64 programs, 32 tiles. One: 64/132 = 0.48. Two: 128/132 = 0.97, and nothing is fuller.
    ((8, 8, 4096), 2),
    # 1 program: the fullest is 128 splits, 128/132; 85 % of it is 108.8 splits.
    ((1, 1, 131072), 109),
    # 112 programs are over 0.8 * 132 = 105.6; 104 are not.
    ((14, 8, 4096), 1),
    # 104: 1 to 4 splits fill 1 to 4 waves to 0.788; 5 fill 4 waves to 520/528 = 0.985.
    ((13, 8, 4096), 5),
    # 4 tiles never split; 5 tiles do: the fullest is 5/132, and 85 % of 5 is 4.25.
    ((1, 1, 512), 1),
    ((1, 1, 513), 5),
]
FLASH_ATTENTION_2 = [
    # 264 slots. 28: 224/264 = 0.848; 29: 232/264 = 0.879. 256 tiles in 29: 9 each, in 28: 10; none is empty.
    ((1, 8, 32768), 29),
    # 64 programs: 4 splits are 256/264; 3 are 192/264 = 0.73.
    ((8, 8, 4096), 4),
    # 4 tiles are enough here: 4 splits are the fullest, 3 leave two tiles a split as 2 do.
    ((1, 1, 512), 4),
    # 512 programs are over 0.8 * 264.
    ((64, 8, 1024), 1),
]
FLASH_ATTENTION_DYNAMIC = [
    # 256 tiles x 8 heads x 1.1 / 132 = 17.07, so 18 an SM: 256 / 18 -> 15; the bound for one sequence is 15.
    ((1, 8, 32768), 15),
    # 8 x 32 tiles x 8 x 1.1 / 132 = 17.07 -> 18; 32 / 18 -> 2.
    ((8, 8, 4096), 2),
    # 4 x 16 x 2 x 1.1 / 132 = 1.07 -> 2; 16 / 2 = 8, under the bound of 14 (2 programs: 85 % of 16 is 13.6).
    ((4, 2, 2048), 8),
    # The heuristic stops at 105.6 programs. This goes on: 14 x 32 x 8 x 1.1 / 132 = 29.9 -> 30; 32 / 30 -> 2,
    ((14, 8, 4096), 2),
    # and 16 x 64 x 8 x 1.1 / 132 = 68.3 -> 69; one split holds all 64 tiles.
    ((16, 8, 8192), 1),
]
FLASHINFER = [
    # 264 / 8 = 33 chunks of at least 2048 / 33 = 62.06 pages: 63, and 2048 / 63 -> 33.
    ((1, 8, 32768), 33),
    # 33 chunks for 8 sequences of 256 pages: 4 each are 32, 5 would be 40. Chunks of 64 pages.
    ((8, 8, 4096), 4),
    # 264 chunks for 8192 pages: 31.03 -> 32 pages, 256 chunks.
    ((1, 1, 131072), 256),
    # A chunk has 8 pages at least: 32 pages in 4.
    ((1, 1, 512), 4),
    ((1, 1, 16), 1),
    # 64 sequences are more than 33 chunks.
    ((64, 8, 1024), 1),
]
VLLM_DECODE = [
    ((1, 8, 32768), 64), ((64, 8, 32768), 64),  # neither batch nor heads matter
    ((1, 1, 131072), 256), ((1, 1, 262144), 264),  # at most twice the SMs
    ((1, 1, 511), 1), ((1, 1, 1535), 2), ((1, 1, 1536), 4),  # 1535 // 512 = 2, 1536 // 512 = 3 -> 4
]  # fmt: skip
VLLM_UNIFIED = [
    ((16, 8, 4096), 16), ((17, 8, 4096), 1),  # 128 / 8 sequences
    ((128, 1, 512), 16), ((129, 1, 512), 1),
    # 17 tiles of 16 tokens: two a segment, so 9 segments have any; 16 tiles and less: one each.
    ((1, 1, 272), 9), ((1, 1, 256), 16), ((1, 1, 40), 3),
]  # fmt: skip
CASES = {
    "flash_attention": FLASH_ATTENTION, "flash_attention_2": FLASH_ATTENTION_2,
    "flash_attention_dynamic": FLASH_ATTENTION_DYNAMIC, "flashinfer": FLASHINFER,
    "vllm_decode": VLLM_DECODE, "vllm_unified": VLLM_UNIFIED,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sizes", "splits"),
    [(name, *case) for name, cases in CASES.items() for case in cases],
)
def test_by_hand(name, sizes, splits):
    assert split_rules.RULES[name](*sizes, PAGE_SIZE, SMS) == splits


def test_every_rule_has_cases():
    assert set(CASES) == set(split_rules.RULES)


@pytest.mark.parametrize("name", split_rules.RULES)
def test_legal_and_measured_on_the_whole_grid(name):
    for point in grid():
        splits = split_rules.RULES[name](point.batch_size, point.num_kv_heads, point.ctx, PAGE_SIZE, SMS)
        assert 1 <= splits <= max(point.splits()), point


@pytest.mark.parametrize("name", split_rules.RULES)
def test_sources_are_pinned(name):
    text = split_rules.RULES[name].__doc__
    table = tomllib.loads((records.ROOT / "snippets/production.toml").read_text(encoding="utf-8"))
    keys = [word.strip(".,:;()") for word in text.replace("\n", " ").split() if "." in word.strip(".,:;()")]
    cited = [key for key in keys if key.split(".")[0] in table]
    assert cited
    for key in cited:
        system, entry = key.split(".")
        assert entry in table[system], key


def test_chunk_search_takes_sequences_of_any_length():
    assert split_rules.smallest_chunk([10, 100], 4, 1) == 34  # 1 + 3; 33 pages would give 1 + 4
    assert split_rules.smallest_chunk([0, 8], 2, 1) == 8  # an empty sequence is a chunk too
    assert split_rules.smallest_chunk([5], 1, 8) == 8
