"""The simulation of lesson L1: what every policy must keep to, and what is recorded of it."""

import json
from itertools import pairwise

import pytest

from scripts.memory_policies import (
    ANSWER,
    FACTORS,
    MAX_LEN,
    PROMPT,
    SEATS,
    Arena,
    Contiguous,
    Paged,
    Request,
    all_policies,
    make_requests,
    simulate,
)
from scripts.records import ROOT

RECORDED = json.loads((ROOT / "snippets/generated/traces/l1_paged_cache.json").read_text())["simulation"]


def test_the_trace_is_what_its_words_say():
    requests = make_requests()
    assert requests == make_requests() and requests != make_requests(seed=1)
    for request in requests:
        assert PROMPT[0] <= request.prompt < PROMPT[1] and ANSWER[0] <= request.answer < ANSWER[1]
    below = sum(request.prompt < (PROMPT[0] * PROMPT[1]) ** 0.5 for request in requests)
    assert 0.4 < below / len(requests) < 0.6  # half of them, by the logarithm


def test_the_first_hole_that_is_large_enough():
    arena = Arena()
    a, b, c = (arena.take(size) for size in (10, 20, 5))
    assert (a, b, c) == ((0, 10), (10, 30), (30, 35))
    arena.give_back(b)
    assert arena.take(25) == (35, 60) and arena.take(8) == (10, 18) and arena.take(12) == (18, 30)
    assert arena.extent == 60


def test_a_piece_grows_by_its_factor_and_copies_what_is_in_it():
    policy = Contiguous(1.5)
    policy.admit(0, 10)
    assert (policy.reserved, policy.copied) == (15, 0)
    for _ in range(5):
        policy.append(0)
    assert (policy.reserved, policy.copied) == (15, 0)  # just full
    policy.append(0)
    assert (policy.reserved, policy.copied, policy.extent) == (23, 15, 15 + 23)  # both existed
    policy.release(0)
    assert policy.reserved == 0


def test_a_large_piece_stops_at_the_longest_sequence():
    policy = Contiguous(2.0)
    policy.admit(0, MAX_LEN - 1)
    assert policy.reserved == MAX_LEN


@pytest.mark.parametrize("name", all_policies())
def test_no_policy_has_less_than_is_used(name):
    """Nor an extent below what it has reserved; and only growing copies."""
    requests = make_requests(80, seed=3)
    policy = all_policies()[name]
    outcome = simulate(policy, requests)
    assert all(reserved >= used for reserved, used in zip(outcome.reserved, outcome.used, strict=True))
    assert policy.extent >= max(outcome.reserved)
    assert outcome.generated == SEATS * len(outcome.used)
    assert (sum(outcome.copied) > 0) == name.startswith("grow")


def test_the_steps_of_a_request():
    """Three tokens of an answer are three steps; the next request takes the seat."""
    requests = [Request(4, 3)] * SEATS + [Request(4, 1)] * SEATS
    outcome = simulate(Paged(4), requests)
    assert outcome.used == [SEATS * n for n in (5, 6, 7, 5)]
    assert outcome.reserved == [SEATS * 8] * 4


def test_what_is_recorded_says_what_the_page_says():
    told = RECORDED["policies"]
    grown = [told[f"grow {factor:g}"] for factor in FACTORS]
    assert all(a["copied"] > b["copied"] for a, b in pairwise(grown))  # a larger factor copies less
    assert all(a["reserved"] < b["reserved"] for a, b in pairwise(grown))  # and reserves more
    paged = told["page 16"]
    assert paged["copied"] == 0 and paged["extent"] == paged["peak_reserved"]  # no holes
    assert all(paged["extent"] < other["extent"] for name, other in told.items() if name != "page 16")
    assert paged["reserved"] - paged["used"] <= 15 * SEATS * paged["steps"]  # a page less one token each
    assert told["reserve"]["extent"] == SEATS * MAX_LEN
