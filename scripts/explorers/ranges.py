"""Page ranges of the splits, as the kernel's own split_range gives them."""

from scripts.explorers.fields import FieldError
from scripts.figures._l3_ranges import page_ranges as draw
from scripts.traces import l3_split_kv_decode

__all__ = ["draw", "trace"]

MOST_PAGES = 192  # that a row of the figure can show apart


def trace(values: dict) -> dict:
    most = MOST_PAGES * values["page_size"]
    if (longest := max(values["seq_lens"])) > most:
        raise FieldError(
            "seq_lens", longest, "pages", most=most, pages=MOST_PAGES, page_size=values["page_size"]
        )
    return {"page_ranges": l3_split_kv_decode.split_ranges(**values)}
