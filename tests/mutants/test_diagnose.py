"""The wrong references: each is told from what is right and from every other; names lead to a section."""

import pytest
import torch

from kernels import paged_attention_reference
from scripts import mutant_files
from scripts.diagnose import SIGNS, WORDS, describe, diagnose, known_mistakes
from scripts.mutant_problems import problems_of
from tests.helpers.lesson import sections

MISTAKES = [(lesson, name) for lesson in mutant_files.LESSONS for name in known_mistakes(lesson)]


def _as_got(problem, result):
    """A wrong reference as a kernel would return it; an lse that it leaves open becomes one like no other."""
    o, lse = result
    return o.to(problem.dtype), torch.full(o.shape[:-1], -777.0) if lse is None else lse.float()


@pytest.mark.parametrize(("lesson", "mutant_id"), MISTAKES, ids=lambda value: value)
def test_a_mistake_is_told_from_every_other(lesson, mutant_id):
    outputs, sign = known_mistakes(lesson)[mutant_id]
    observed = [(p, _as_got(p, list(outputs(p))[-1])) for p in problems_of(lesson)]
    assert diagnose(lesson, observed, [sign] if sign else []) == [mutant_id]


@pytest.mark.parametrize("lesson", mutant_files.LESSONS)
def test_what_is_right_is_no_mistake(lesson):
    observed = [(p, _as_got(p, p.expected())) for p in problems_of(lesson)]
    assert diagnose(lesson, observed) == []


def test_an_exception_is_no_mistake():
    assert (
        diagnose("l2_paged_decode", [(p, None) for p in problems_of("l2_paged_decode")], ["unwritten"]) == []
    )


def test_two_mistakes_at_once_have_no_name():
    observed = []
    for p in problems_of("l2_paged_decode"):
        q, k_cache, v_cache, table, lens = p.case.args
        kwargs = p.case.kwargs | {"sm_scale": 1.0, "return_lse": True}
        o, lse = paged_attention_reference(q.flip(1), k_cache, v_cache, table, lens, **kwargs)
        observed.append((p, (o, lse)))
    assert diagnose("l2_paged_decode", observed) == []


def test_every_mutant_is_a_known_mistake_and_back():
    known = {mutant_id for _, mutant_id in MISTAKES}
    assert known == {one for lesson in mutant_files.LESSONS for one in mutant_files.all_ids(lesson)}
    signs = {sign for lesson in mutant_files.LESSONS for _, sign in known_mistakes(lesson).values()} - {None}
    assert signs == set(SIGNS)


@pytest.mark.parametrize("mutant_id", mutant_files.every_id())
def test_the_section_to_read_again_is_there(mutant_id):
    mutant = mutant_files.load(mutant_id)
    assert set(mutant.name) == {"zh", "en"} and all(mutant.name.values())
    for lang in ("zh", "en"):
        assert mutant.section in sections(lang, mutant.lesson)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_description_names_the_mistake_and_where_to_read(lang):
    failure = {"check": "values", "message": "row 0", "index": [0, 1], "expected": "1", "got": "2"}
    report = {"ok": False, "lesson": "l2_paged_decode", "mistakes": ["l2_paged_decode/tf32"], **failure}
    rows, colon = describe(report, lang).splitlines(), WORDS[lang]["is"]
    assert rows[0].startswith("[values] ") and rows[1] == "row 0"
    assert [row.partition(colon)[2] for row in rows[2:5]] == ["[0, 1]", "1", "2"]
    assert rows[-2].endswith(
        f"l2_paged_decode/tf32{WORDS[lang]['is']}{mutant_files.load('l2_paged_decode/tf32').name[lang]}"
    )
    assert rows[-1].endswith(f"docs/{lang}/lessons/l2_paged_decode.md#pitfall-tf32")


def test_every_kind_of_failure_has_words_in_both_languages():
    assert set(WORDS["zh"]) == set(WORDS["en"]) > set(mutant_files.CHECKS)
