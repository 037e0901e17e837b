"""Make a page of a notebook as light as the other pages.

mkdocs-jupyter puts JupyterLab's styles, its copy buttons and addresses of outside servers (MathJax, Mermaid)
into every page. Only the cells are kept. Our stylesheet dresses them, and formulas are marked as arithmatex
marks them, so that formulas.py draws them, too.
"""

import re

from bs4 import BeautifulSoup, NavigableString

from scripts.listing import PageError

DROPPED = (
    "script, style, .zeroclipboard-container, .clipboard-copy-txt, .jp-Collapser,"
    " .highlight-ipynb span:not([class])"
)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)


def lighten(content: str, download: str, label: str) -> str:
    """The cells of an HTML page made by mkdocs-jupyter, below a link that downloads the notebook itself."""
    soup = BeautifulSoup(content, "html.parser")
    cells = soup.select_one(".jupyter-wrapper")
    if cells is None:
        raise PageError("mkdocs-jupyter made no .jupyter-wrapper; has its template changed?")
    for tag in cells.select(DROPPED):
        tag.decompose()
    for tag in cells.select('[id^="cell-id="], .jp-Cell-inputWrapper'):
        del tag["id"], tag["tabindex"]
    # mkdocs-jupyter makes ids of a heading's ASCII letters, so none of a Chinese one; numbers serve both.
    for number, tag in enumerate(cells.select(":is(h1, h2, h3, h4, h5, h6)"), 1):
        tag["id"] = f"section-{number}"
        for link in tag.select(".anchor-link"):
            link["class"], link["href"] = "headerlink", f"#{tag['id']}"
    for tag in cells.select(".highlight-ipynb"):
        tag["class"] = "highlight"
        code = soup.new_tag("code")
        code.extend(list(tag.pre.contents))
        tag.pre.append(code)
    for text in cells.select_one(".jp-Notebook").find_all(string=FORMULA):
        if text.find_parent(class_="jp-RenderedMarkdown") and not text.find_parent(["code", "pre"]):
            text.replace_with(*_formulas(soup, text))
    return f'<p class="download"><a href="{download}" download>{label}</a></p>\n{cells}'


def _formulas(soup: BeautifulSoup, text: str) -> list:
    """The text cut at its formulas, each in an element of class arithmatex."""
    parts, end = [], 0
    for m in FORMULA.finditer(text):
        formula = soup.new_tag("span", attrs={"class": "arithmatex"})
        formula.string = f"\\[{m[1]}\\]" if m[1] else f"\\({m[2]}\\)"
        parts += [NavigableString(text[end : m.start()]), formula]
        end = m.end()
    return [*parts, NavigableString(text[end:])]
