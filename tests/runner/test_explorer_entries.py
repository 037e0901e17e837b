"""What a reader may enter in an explorer, and what is said of an entry that does not fit."""

import json

import pytest

from scripts.explorers import fields
from scripts.generated import ROOT
from tests.runner.explored import GPUS, LANGS, drawn
from tests.runner.helpers import in_page

# Explorer, entries, the field that is named, what it is called to be, what is wanted in zh and en.
WRONG = [
    ("ranges", {"page_size": "48"}, "page_size", "48", ("2 的幂", "a power of two from 16 to 128")),
    ("ranges", {"seq_lens": "9000"}, "seq_lens", "9000", ("3072", "at most 3072 tokens")),
    ("ranges", {"seq_lens": "1, 2, 3, 4, 5"}, "seq_lens", "1, 2, 3, 4, 5", ("1 到 4 个", "1 to 4")),
    ("ranges", {"num_splits": "many"}, "num_splits", "many", ("1 到 8 的整数", "a whole number from 1 to 8")),
    ("merge", {"scores": "1, x"}, "scores", "1, x", ("两位小数", "1 to 6 numbers")),
    ("merge", {"scores": "1.234"}, "scores", "1.234", ("两位小数", "two decimals at most")),
    ("merge", {"scores": "nan"}, "scores", "nan", ("-99 到 99", "from -99 to 99")),
    ("merge", {"values": "1, 2"}, "values", "1, 2", ("4 个", "4 of them, as many as scores")),
    ("merge", {"cut": "5"}, "cut", "5", ("0 到 4", "0 to 4: there are 4 scores")),
    ("pool", {"prompts": "1 2 3 4 5 6 7"}, "prompts", "1 2 3 4 5 6 7", ("1 到 6 个", "1 to 6")),
    ("pool", {"num_pages": "0"}, "num_pages", "0", ("1 到 48", "from 1 to 48")),
    ("pool", {"steps": "-1"}, "steps", "-1", ("0 到 500", "from 0 to 500")),
    ("pool", {"steps": "501"}, "steps", "501", ("0 到 500", "from 0 to 500")),
    ("sms", {"gpu": "TPU"}, "gpu", "TPU", ("NVIDIA H200，132 个 SM", "one of NVIDIA H200, 132 SMs")),
    ("sms", {"batch_size": "256", "num_splits": "60"}, "num_splits", "60", ("99 个", "99 programs")),
    ("sms", {"batch_size": "256", "num_kv_heads": "32"}, "batch_size", "256", ("131072", "131072")),
    ("waste", {"trace": "own", "requests": "1+2, 3"}, "requests", "1+2, 3", ("120+40", "such as 120+40")),
    ("waste", {"trace": "own", "requests": "1+4000 2+4000"}, "requests", "8000", ("5000", "at most 5000")),
    ("waste", {"trace": "own", "requests": "1+2"}, "seats", "8", ("请求数 1", "at most 1, the number")),
    ("waste", {"max_len": "100"}, "max_len", "100", ("至少", "at least")),
    ("waste", {"factor": "1"}, "factor", "1", ("1.05 到 4", "from 1.05 to 4")),
]  # fmt: skip


def test_what_does_not_fit_is_named_with_what_it_is_and_what_is_wanted():
    answers = drawn([(name, values, lang) for name, values, *_ in WRONG for lang in LANGS])
    for i, (name, values, field, given, wanted) in enumerate(WRONG):
        spec = next(one for one in fields.load(name)["fields"] if one["name"] == field)
        for lang, want, (answer, _) in zip(LANGS, wanted, answers[2 * i : 2 * i + 2], strict=True):
            assert (answer["svg"], answer["error"]["field"], answer["values"]) == (None, field, values)
            said = answer["error"]["message"]
            assert spec[lang] in said and given in said and want in said, said
            assert "{" not in said and ("应为" in said) == (lang == "zh")


def test_an_empty_entry_is_called_so():
    (answer, _), (english, _) = drawn([("pool", {"steps": "  "}, "zh"), ("pool", {"steps": ""}, "en")])
    assert "是空的" in answer["error"]["message"] and "is empty" in english["error"]["message"]


def test_a_name_that_is_none_is_refused():
    said = in_page("""
        from scripts.runner.explore import explore
        try:
            explore("tables", {}, "en")
        except ValueError as error:
            result = str(error)
    """)
    assert said == "no explorer 'tables'; there are merge, pool, ranges, sms, waste"


def test_the_cards_are_those_with_a_record():
    """SM counts are not typed twice without being compared."""
    cards = {}
    for path in ROOT.glob("snippets/results/*/*.json"):
        gpu = json.loads(path.read_text(encoding="utf-8"))["gpu"]
        cards.setdefault(gpu["name"], gpu.get("num_sms"))
    assert cards == GPUS
    spec = fields.load("sms")
    assert next(f for f in spec["fields"] if f["name"] == "gpu")["options"] == list(GPUS)
    for lang in LANGS:
        assert all(str(num_sms) in fields.option_name(spec, gpu, lang) for gpu, num_sms in GPUS.items())


@pytest.mark.parametrize("lang", LANGS)
def test_the_form_has_what_the_page_needs(lang: str):
    for name in fields.names():
        for one in fields.form(name, lang):
            assert one["label"] and isinstance(one["value"], str)
            assert fields.parse(name, {one["name"]: one["value"]}) == fields.parse(name, {})
    doubles = [one["name"] for one in fields.form("ranges", lang) if one.get("doubles")]
    assert doubles == ["page_size"]
    assert [one["when"] for one in fields.form("waste", lang) if "when" in one] == [
        {"field": "trace", "is": "own"}
    ]


def test_the_chosen_traces_are_as_long_as_a_page_can_bear():
    asked = [("waste", {"trace": name}, "en") for name in ("mixed", "short", "long")]
    for answer, data in drawn(asked):
        assert answer["error"] is None and data["waste"]["policies"]["page"]["steps"] > 100
