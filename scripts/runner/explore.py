"""Draw an explorer: the page's still figure, of a reader's own numbers.

    explore("ranges", {"seq_lens": "1000, 37", "num_splits": "4"}, "en")

    svg, text   the figure and its text alternative; null and "" where there is an error
    values      what was read of the form, by field
    error       null, or {field, message}: which entry does not fit, what it is, what is wanted

An explorer is scripts/explorers/NAME.py; figure and trace are those of scripts/figures and scripts/traces.
"""

from scripts import ties
from scripts.explorers import fields, merge, pool, ranges, sms, waste

EXPLORERS = {"merge": merge, "pool": pool, "ranges": ranges, "sms": sms, "waste": waste}


def explore(name: str, values: dict, lang: str) -> dict:
    """The figure of an explorer for a form's entries, text by field, as plain JSON-able data."""
    if name not in EXPLORERS:
        raise ValueError(f"no explorer {name!r}; there are {', '.join(EXPLORERS)}")
    explorer = EXPLORERS[name]
    try:
        read = fields.parse(name, values)
        with ties.ties_allowed():
            drawing = explorer.draw(explorer.trace(read), lang)
    except fields.FieldError as error:
        told = {"field": error.field, "message": fields.explain(name, error, lang)}
        return {"svg": None, "text": "", "values": values, "error": told}
    drawing.name = drawing.name.replace("figure-", "explorer-")  # the still one may be on the page as well
    return {"svg": drawing.svg(), "text": drawing.desc, "values": read, "error": None}
