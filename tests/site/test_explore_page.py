"""The block that `{{ explore:NAME }}` puts into a page."""

import html
import json
import re

import pytest

from scripts import explore_page, macros
from scripts.explorers import fields
from scripts.generated import ROOT
from scripts.library import Library
from scripts.listing import PageError

LIBRARY = Library(ROOT)


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("name", fields.names())
def test_a_block_has_the_still_figure_its_text_and_its_form(name: str, lang: str) -> None:
    block = explore_page.render(name, lang, LIBRARY)
    about = json.loads(html.unescape(re.search(r'data-explorer="([^"]*)"', block)[1]))
    assert (about["name"], about["lang"], about["fields"]) == (name, lang, fields.form(name, lang))
    assert set(about["words"]) == {"legend", "open", "reset", "loading", "once", "drawing", "failed"}
    still = (ROOT / f"snippets/generated/{fields.load(name)['figure']}.{lang}.svg").read_text(
        encoding="utf-8"
    )
    svg = re.search(r"<svg.*</svg>", block, re.S)[0]
    assert svg == still.strip().replace("figure-", "explorer-") and block.count("figure-") == 0
    desc = re.search(r"<desc[^>]*>(.*)</desc>", still)[1]
    assert f">{desc}</p>" in block and block.startswith('<div class="explorer" ')


def test_the_macro_stands_alone_and_knows_its_names() -> None:
    page = macros.Page(lang="en")
    text = macros.expand("{{ explore:pool }}\n", page, LIBRARY)
    assert 'class="explorer"' in macros.fill(text.strip(), page)
    with pytest.raises(PageError, match="no explorer 'tables'; there are merge, pool, ranges, sms, waste"):
        macros.expand("{{ explore:tables }}\n", macros.Page(lang="en"), LIBRARY)
    with pytest.raises(PageError, match="needs a line of its own"):
        macros.expand("see {{ explore:pool }}\n", macros.Page(lang="en"), LIBRARY)
