"""The fields of an explorer: what a reader may enter, how it is read, and what is said where it does not fit.

A field in NAME.toml: name, kind, default, zh and en (its label). By kind:
    integer, number    min, max; power_of_two; optional: nothing means None, and `none` says what it does
    integers, numbers  min, max of each; least, most: how many
    requests           the same, each "prompt+answer"
    choice             options, as [option_names.zh] and [option_names.en] name them, or by themselves
`when = {field, is}`: shown, and read, only where another field has that value. [wanted.zh] and [wanted.en]
say what trace() wants beyond that. Numbers have two decimals at most.
"""

import re
import tomllib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
SEPARATORS = re.compile(r"[\s,，、;；]+")
INTEGER = re.compile(r"[+-]?\d{1,9}")
NUMBER = re.compile(r"[+-]?\d{1,9}(\.\d{0,2})?")
REQUEST = re.compile(r"(\d{1,6})\+(\d{1,6})")
LISTS = ("integers", "numbers", "requests")


class FieldError(ValueError):
    """What a reader entered cannot be drawn: its field, what it is, what is wanted (a key of the texts)."""

    def __init__(self, field: str, given: object, wanted: str, **values: object) -> None:
        super().__init__(f"{field} is {given!r}; wanted {wanted}")
        self.field, self.given, self.wanted, self.values = field, given, wanted, values


@cache
def load(name: str) -> dict:
    """The explorer's .toml."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def words() -> dict:
    return tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))


def names() -> list[str]:
    """All explorers."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != "words")


def parse(name: str, given: dict) -> dict:
    """Values by field, from what a form gave as text; a field that is left out has its default."""
    values: dict[str, object] = {}
    for field in load(name)["fields"]:
        key = field["name"]
        applies = "when" not in field or values[field["when"]["field"]] == field["when"]["is"]
        raw = given.get(key) if applies else None
        values[key] = read(field, text_of(field["default"]) if raw is None else str(raw).strip())
    return values


def read(field: dict, text: str) -> object:
    """The value of one field."""
    kind = field["kind"]
    if kind == "choice":
        if text not in field["options"]:
            raise FieldError(field["name"], text, "choice", options=field["options"])
        return text
    if not text and field.get("optional"):
        return None
    parts = [part for part in SEPARATORS.split(text) if part] if kind in LISTS else [text]
    pattern = {"integer": INTEGER, "integers": INTEGER, "requests": REQUEST}.get(kind, NUMBER)
    limits = {key: field[key] for key in ("min", "max", "least", "most") if key in field}
    fits = field.get("least", 1) <= len(parts) <= field.get("most", 1)
    found = [pattern.fullmatch(part) for part in parts]
    wanted = "power_of_two" if field.get("power_of_two") else kind
    if not fits or not all(found):
        raise FieldError(field["name"], text, wanted, **limits)
    if kind == "requests":
        items = [tuple(map(int, match.groups())) for match in found]
        flat = [n for item in items for n in item]
    else:
        items = flat = [(int if pattern is INTEGER else float)(part) for part in parts]
    for n in flat:
        if not field["min"] <= n <= field["max"] or (field.get("power_of_two") and n & (n - 1)):
            raise FieldError(field["name"], text, wanted, **limits)
    return items if kind in LISTS else items[0]


def text_of(value: object) -> str:
    """A value as a reader would type it."""
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def explain(name: str, error: FieldError, lang: str) -> str:
    """An error in the reader's language: which field, what it is, what is wanted."""
    spec, common = load(name), words()
    label = next(field[lang] for field in spec["fields"] if field["name"] == error.field)
    template = spec.get("wanted", {}).get(lang, {}).get(error.wanted) or common["wanted"][lang][error.wanted]
    values = dict(error.values)
    if "options" in values:
        values["options"] = common["comma"][lang].join(option_name(spec, o, lang) for o in values["options"])
    given = str(error.given)
    kind = "is" if given else "empty"
    return common[kind][lang].format(label=label, given=given, wanted=template.format(**values))


def option_name(spec: dict, option: str, lang: str) -> str:
    return spec.get("option_names", {}).get(lang, {}).get(option, option)


def form(name: str, lang: str) -> list[dict]:
    """The fields as docs/assets/javascripts/explorer.mjs builds them."""
    spec, made = load(name), []
    for field in spec["fields"]:
        one = {"name": field["name"], "label": field[lang], "kind": field["kind"]}
        one["value"] = text_of(field["default"])
        if field["kind"] == "choice":
            one["options"] = [[option, option_name(spec, option, lang)] for option in field["options"]]
        elif field["kind"] in ("integer", "number"):
            one |= {"min": field["min"], "max": field["max"]}
        if field.get("power_of_two"):
            one["doubles"] = True
        if field.get("optional"):
            one["placeholder"] = field["none"][lang]
        one |= {key: field[key] for key in ("when",) if key in field}
        made.append(one)
    return made
