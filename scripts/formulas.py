"""Draw the formulas of the pages while the site is built, so that no script has to do it in a browser.

KaTeX (scripts/formulas.mjs, under Node.js) makes of each both MathML, which screen readers speak, and what is
shown; docs/assets/vendor/katex has its styles and fonts. One process draws all formulas of a build.
"""

import html
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from scripts.browsers import node
from scripts.listing import PageError

ROOT = Path(__file__).resolve().parents[1]
KATEX = ROOT / "node_modules/katex"
COMMAND = "make node_modules/.runner"
# As arithmatex marks them, and notebook_page.py: \(...\) in the line, \[...\] as a block.
MARKED = re.compile(r'(<(span|div) class="arithmatex">)\s*\\([(\[])(.*?)\\[)\]]\s*</\2>', re.DOTALL)


class NoKatexError(RuntimeError):
    """KaTeX, or Node.js that runs it, is not installed."""


class Formulas:
    """What the formulas of a build look like."""

    def __init__(self) -> None:
        self._html: dict[tuple[str, bool], str] = {}

    def draw(self, pages: Iterable[tuple[str, str]]) -> None:
        """Draw the formulas of all pages, given as (name, HTML).

        Raises PageError where KaTeX does not understand one, and NoKatexError.
        """
        where = {}
        for name, content in pages:
            for found in MARKED.finditer(content):
                where.setdefault(_formula(found), name)
        new = [formula for formula in where if formula not in self._html]
        for formula, one in zip(new, _katex(new), strict=True):
            if "error" in one:
                raise PageError(f"{where[formula]}: formula {formula[0]}: {one['error']}")
            self._html[formula] = one["html"]

    def put(self, content: str) -> str:
        """The page's HTML, with every formula that was drawn in its place."""

        def shown(found: re.Match) -> str:
            drawn = self._html.get(_formula(found))
            return f"{found[1]}{drawn}</{found[2]}>" if drawn else found[0]

        return MARKED.sub(shown, content)


def _formula(found: re.Match) -> tuple[str, bool]:
    """The TeX of a formula, and whether it is a block."""
    return html.unescape(found[4]).strip(), found[3] == "["


def _katex(formulas: list[tuple[str, bool]]) -> list[dict[str, str]]:
    if not formulas:
        return []
    if not KATEX.is_dir():
        raise NoKatexError(f"{KATEX.relative_to(ROOT)} is not there; wanted: {COMMAND}")
    asked = json.dumps([{"tex": tex, "block": block} for tex, block in formulas])
    command = [node(), str(ROOT / "scripts/formulas.mjs")]
    try:
        made = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise NoKatexError(f"{command[0]} is not there; wanted Node.js: {COMMAND}") from error
    return json.loads(made.stdout)
