"""What charts of measured rows share: the cells of a row in a chart's table, and the axis of time."""

from scripts.bake_text import WORDS, percent, us
from scripts.chart_spec import Axis


def measured_columns(lang: str) -> tuple[str, ...]:
    """The heads of `measured_cells`."""
    words = WORDS[lang]
    return ("p50, us", "p20, us", "p80, us", "GB/s", words["share"], words["paged_share"], words["error"])


def measured_cells(row: dict) -> tuple[str, ...]:
    """What was measured of a row; "–" where the record does not say."""
    latency = row["latency_us"]
    return (
        *(us(latency[p]) for p in ("p50", "p20", "p80")),
        f"{row['bandwidth_gbps']:.0f}" if "bandwidth_gbps" in row else "–",
        *(
            percent(row[key]) if key in row else "–"
            for key in ("share_of_read_ceiling", "share_of_paged_read")
        ),
        f"{row['relative_error']:.1e}" if "relative_error" in row else "–",
    )


def span_axis(name: str, rows: list[dict], scales: tuple[str, ...], also: list[float] | None = None) -> Axis:
    """An axis of time that holds the p20 and p80 of all rows, and `also`, with some room."""
    values = [row["latency_us"][p] for row in rows for p in ("p20", "p80")] + (also or [])
    return Axis(name, scales, min(values) * 0.85, max(values) * 1.12)
