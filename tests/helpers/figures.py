"""What every figure has to be: an SVG that reads well in both colour schemes, whatever is drawn in it."""

import re
import xml.etree.ElementTree as ET

from scripts.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"


def assert_sound(text: str, least: int = 60) -> None:
    """Named, described in more than `least` characters, in the site's colours, no text small or cut off."""
    root = ET.fromstring(text)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert root.get("role") == "img" and len(ids) == len(set(ids))
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby").split() == [title.get("id"), desc.get("id")] == ids
    assert title.text and len(desc.text) > least
    assert not re.search(r"[{}]", "".join(root.itertext())), "a placeholder was left"
    # Only the site's colours, so that both schemes hold, and no text below 12 px.
    for element in root.iter():
        for name in ("fill", "stroke"):
            value = element.get(name)
            assert value in (None, "none") or value.startswith("var(--fig-"), value
        assert float(element.get("font-size", 12)) >= 12
    _, _, width, height = map(float, root.get("viewBox").split())
    for element in root.iter(f"{SVG}text"):
        size, x = float(element.get("font-size")), float(element.get("x"))
        shift = {None: 0, "middle": 0.5, "end": 1}[element.get("text-anchor")]
        wide = text_width(element.text, size, element.get("font-family") is not None)
        assert x - shift * wide >= 0 and x + (1 - shift) * wide <= width, element.text
        assert 0 < float(element.get("y")) <= height
    for element in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(element.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert w >= 0 and h >= 0 and x >= 0 and y >= 0 and x + w <= width + 3 and y + h <= height, (
            element.attrib
        )
