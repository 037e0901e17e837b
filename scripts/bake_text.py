"""How baked numbers are printed, and the words around them in both languages."""

import html
import tomllib
from pathlib import Path

LANGS = ("zh", "en")
_TABLE: dict[str, dict[str, str]] = {}
for _path in sorted(Path(__file__).parent.glob("bake_words*.toml")):
    _TABLE |= tomllib.loads(_path.read_text(encoding="utf-8"))
WORDS = {lang: {name: entry[lang] for name, entry in _TABLE.items()} for lang in LANGS}


def us(value: float) -> str:
    """Microseconds to three digits or the unit: 1838, 65.9, 6.71."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def ratio(value: float) -> str:
    """A factor: 19, 4.2, 1.03."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 1.995 else f"{value:.2f}"


def percent(value: float) -> str:
    """A share: 0.848 -> 85%; below 10 % one decimal more."""
    return f"{value:.0%}" if value >= 0.0995 else f"{value:.1%}"


def shape_name(row: dict) -> str:
    """How a shape is called in facts: 64x1024."""
    return f"{row['batch_size']}x{row['ctx']}"


def shape_text(row: dict) -> str:
    """How a shape is shown: 64 × 1024."""
    return f"{row['batch_size']} × {row['ctx']}"


def table(head: list[str], rows: list[list[str]], texts: int = 1) -> str:
    """An HTML table: the first `texts` columns are text, the others right-aligned figures. Cells are HTML."""
    align = ' style="text-align:right"'
    lines = ["<table>", "<thead><tr>"]
    lines += [f"<th{align if i >= texts else ''}>{html.escape(cell)}</th>" for i, cell in enumerate(head)]
    lines.append("</tr></thead>")
    lines.append("<tbody>")
    for row in rows:
        cells = "".join(f"<td{align if i >= texts else ''}>{cell}</td>" for i, cell in enumerate(row))
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])
