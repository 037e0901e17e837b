"""What the worker calls: a request of the page and its answer, both as JSON (messages.mjs has the types)."""

import json
from collections.abc import Callable

from scripts.runner import session


def answer(request: str, say: Callable[[str, str], None]) -> str:
    """Run, check or explore. say: hears "stdout" and what is printed, or "stage" and the case that begins."""

    def printed(text: str) -> None:
        say("stdout", text)

    def begins(step: dict) -> None:
        say("stage", f"{step['done'] + 1}/{step['total']}: {step['case']}")

    asked = json.loads(request)
    kind = asked["type"]
    if kind == "run":
        options = asked["options"]
        result = session.run(
            asked["source"], trace=options.get("trace", True), steps=options.get("steps"), on_stdout=printed
        )
    elif kind == "check":
        from scripts.runner import check

        result = check.check(
            asked["lesson"], asked["level"], asked["source"], asked["lang"], on_step=begins, on_stdout=printed
        )
    elif kind == "explore":
        from scripts.runner import explore

        result = explore.explore(asked["name"], asked["values"], asked["lang"])
    else:
        raise ValueError(f"type is {kind!r}; wanted run, check or explore")
    return json.dumps(result, allow_nan=False)
