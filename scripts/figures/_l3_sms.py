"""A figure of the l3_split_kv_decode lesson: which SMs have work, without splits and with them."""

from math import prod

from scripts.figures import _sms
from scripts.figures._words import counted, words_of
from scripts.svg import HIT, MUTED, Drawing

WORDS = words_of("l3_split_kv_decode")
WIDTH, COLUMNS, TOP = 720, 14, 60


def sm_grid(trace: dict, lang: str) -> Drawing:
    """The same batch on the SMs of one card, by paged_decode and by split_kv_decode; waves and tail."""
    words, data = WORDS["sm_grid"][lang], trace["sm_grid"]
    num_sms = data["num_sms"]
    names = {
        "card": data["gpu"].removeprefix("NVIDIA "), "sms": num_sms, "batch": data["batch_size"],
        "ctx": data["ctx"], "heads": data["num_kv_heads"],
        "splits": counted(data["num_splits"], words["splits"]),
        "l2_grid": text_of(data["unsplit_grid"]), "l3_grid": text_of(data["grid"]),
        "by": words["chosen" if data["chosen"] else "given"],
    }  # fmt: skip
    names |= {
        "l2_told": told(data["unsplit_grid"], num_sms, words),
        "l3_told": told(data["grid"], num_sms, words),
        "waves": waves(data["grid"], num_sms, words),
    }
    below = TOP + _sms.height(COLUMNS, num_sms) + 10
    d = Drawing("figure-l3-sm-grid", WIDTH, below + 76, words["title"].format(**names),
                words["desc"].format(**names))  # fmt: skip
    d.text(16, 26, words["card"].format(**names), 14, weight=600)
    split = "l3" if data["kernel"] == "_split_kernel" else "one"  # one split: L2's kernel, and no combine
    for heading, key, grid, x in (("l2", "l2", data["unsplit_grid"], 16), (split, "l3", data["grid"], 388)):
        _sms.panel(d, x, TOP, COLUMNS, num_sms, grid, words[heading].format(**names), names[f"{key}_told"],
                   tail=True)  # fmt: skip
    d.rect(12, below, WIDTH - 24, 32, fill=HIT, opacity=0.55, radius=4)
    d.text(24, below + 21, names["waves"], 13)
    d.text(16, below + 60, words["model"], 13, fill=MUTED)
    return d


def text_of(grid: list[int]) -> str:
    return ", ".join(map(str, grid))


def told(grid: list[int], num_sms: int, words: dict) -> str:
    """How the programs of a grid are spread over the SMs."""
    counts = _sms.placed(prod(grid), num_sms)
    kind = "idle" if 0 in counts else "even" if min(counts) == max(counts) else "uneven"
    return words[f"told_{kind}"].format(
        programs=counted(sum(counts), words["program"]), idle=counted(counts.count(0), words["sm"]),
        most=max(counts), least=min(counts),
    )  # fmt: skip


def waves(grid: list[int], num_sms: int, words: dict) -> str:
    """How many times round the card, and how full the last time."""
    programs = prod(grid)
    full, tail = divmod(programs, num_sms)
    kind = ("tail" if full else "part") if tail else "full"
    share = programs / (num_sms * (full + bool(tail)))
    return words[f"waves_{kind}"].format(
        programs=counted(programs, words["program"]), idle=counted(num_sms - tail, words["sm"]), n=programs,
        sms=num_sms, full=full, waves=counted(full, words["wave"]), tail=tail, percent=round(100 * share),
    )  # fmt: skip
