"""The texts of faults and warnings in both languages, from scripts/runner/words.toml."""

import tomllib
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "zh")


@cache
def _words() -> dict:
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def text(kind: str, code: str, values: dict, lang: str) -> str:
    """The text of a `code` in "en" or "zh", with its values put in."""
    parts = dict(values)
    if "tensor" in values:
        parts["tensor"] = values["tensor"] or _words()["nameless"]["tensor"][lang]
    if values.get("program"):
        parts["program"] = tuple(values["program"])
    parts["because"] = ""
    if "programs" in values:
        parts["programs"] = ", ".join(str(tuple(program)) for program in values["programs"])
    if "op" in values:
        parts["op_name"] = _words()["op"][values["op"]][lang]
    if "bad" in values:
        parts["lanes"] = _words()["lanes"]["all"][lang].format_map(values)
    if values.get("because"):
        parts["because"] = text("because", values["because"]["code"], values["because"], lang)
    return _words()[kind][code][lang].format_map(parts)
