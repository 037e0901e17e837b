"""scripts/formulas.py: what is drawn, what is refused, and what is said where KaTeX is not installed."""

import pytest
from bs4 import BeautifulSoup

from scripts import formulas
from scripts.formulas import Formulas, NoKatexError
from scripts.listing import PageError

LINE = '<p>If <span class="arithmatex">\\(m &lt; 1\\)</span> and code <code>\\(x\\)</code></p>'
BLOCK = '<div class="arithmatex">\\[\no = \\frac{acc}{l}\n\\]</div>'


def drawn(*pages: str) -> list[BeautifulSoup]:
    made = Formulas()
    made.draw((f"page{number}.md", page) for number, page in enumerate(pages))
    return [BeautifulSoup(made.put(page), "html.parser") for page in pages]


def test_a_formula_is_shown_and_can_be_spoken() -> None:
    line, block = drawn(LINE, BLOCK)
    assert line.select_one("span.arithmatex > .katex math annotation").text == "m < 1"
    assert line.select_one(".katex-html")["aria-hidden"] == "true"
    assert not line.select(".katex-display") and line.code.text == "\\(x\\)"
    assert block.select_one("div.arithmatex > .katex-display math[display=block] mfrac")
    assert block.select_one("annotation").text == "o = \\frac{acc}{l}"


def test_all_pages_take_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, katex = [], formulas._katex
    monkeypatch.setattr(formulas, "_katex", lambda new: asked.append(new) or katex(new))
    made = Formulas()
    made.draw([("a.md", LINE + BLOCK), ("b.md", LINE)])
    assert asked == [[("m < 1", False), ("o = \\frac{acc}{l}", True)]]
    made.draw([("a.md", LINE)])
    assert asked[1:] == [[]], "known by now"


@pytest.mark.parametrize(
    ("tex", "reason"),
    [
        (r"\frac{1", "expected '}'"),
        (r"\nosuch x", "Undefined control sequence"),
        (r"\sum_{偶}", "unicodeTextInMathMode"),
    ],
)
def test_a_mistake_names_page_and_formula(tex: str, reason: str) -> None:
    with pytest.raises(PageError) as raised:
        drawn(LINE, f'<span class="arithmatex">\\({tex}\\)</span>')
    said = str(raised.value)
    assert said.startswith(f"page1.md: formula {tex}: ") and reason in said


@pytest.mark.parametrize("missing", ["KATEX", "node"])
def test_without_katex_or_node_the_command_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    absent = formulas.ROOT / "absent"
    monkeypatch.setattr(formulas, missing, absent if missing == "KATEX" else lambda: str(absent))
    with pytest.raises(NoKatexError, match=r"absent is not there; wanted.*make node_modules/\.runner"):
        drawn(LINE)
    (plain,) = drawn("<p>no formula</p>")
    assert str(plain) == "<p>no formula</p>"
