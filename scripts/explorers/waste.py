"""Memory that reserving, growing and paging waste on a trace of requests, by scripts/memory_policies.py."""

from scripts.explorers.fields import FieldError
from scripts.figures._l1_waste import waste as draw
from scripts.memory_policies import Request, make_requests
from scripts.traces import l1_paged_cache

__all__ = ["draw", "trace"]

MOST_ANSWERS = 5000  # tokens: the page table appends each of them


def trace(values: dict) -> dict:
    sizes = {key: values[key] for key in ("seats", "max_len", "factor", "page_size")}
    if values["trace"] == "own":
        requests = [Request(*request) for request in values["requests"]]
    else:
        requests = make_requests(**l1_paged_cache.TRACES[values["trace"]])
    total, longest = sum(request.answer for request in requests), max(map(sum, requests))
    if total > MOST_ANSWERS:
        raise FieldError("requests", total, "answers", most=MOST_ANSWERS)
    if values["seats"] > len(requests):
        raise FieldError("seats", values["seats"], "seats", n=len(requests))
    if values["max_len"] < longest:
        raise FieldError("max_len", values["max_len"], "max_len", n=longest)
    return {"waste": l1_paged_cache.waste(requests, **sizes)}
