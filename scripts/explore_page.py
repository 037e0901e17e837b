"""An explorer in a page: its still figure, what that says in words, and what its form is built from."""

import html
import json
import re

from scripts.explorers import fields
from scripts.library import Library
from scripts.listing import PageError


def render(name: str, lang: str, library: Library) -> str:
    """The block that docs/assets/javascripts/explorer.mjs makes live; without it, a figure with its text."""
    if name not in fields.names():
        raise PageError(f"no explorer {name!r}; there are {', '.join(fields.names())}")
    lesson, _, figure = fields.load(name)["figure"].partition("/")
    # The figure may be on the page as well: ids of its own, as scripts/runner/explore.py gives them.
    still = library.generated(lesson, f"{figure}.{lang}.svg").replace("figure-", "explorer-")
    text = re.search(r"<desc[^>]*>(.*?)</desc>", still, re.S)[1]
    data = {
        "name": name,
        "lang": lang,
        "fields": fields.form(name, lang),
        "words": fields.words()["form"][lang],
    }
    about = html.escape(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    return (
        f'<div class="explorer" data-explorer="{about}">\n<figure class="drawing">{still}</figure>\n'
        f'<p class="explorer-text" data-search-exclude="true">{text}</p>\n</div>'
    )
