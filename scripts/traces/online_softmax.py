"""The online_softmax lesson: the state after each block of the worked example."""

from scripts.trace_examples import SCORES, VALUES, softmax_of, states


def record() -> dict:
    """States by block size, and the kernel's result."""
    return {
        "scores": SCORES,
        "values": VALUES,
        "states": {str(n): states(SCORES, VALUES, n) for n in (1, 2, 4)},
        "result": softmax_of(SCORES, VALUES),
    }
