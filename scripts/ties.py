"""Whether a number halfway between two roundings is refused.

What is committed must be the same bytes from every CPU, so there a tie is an error and another example is
wanted. A figure of a reader's own numbers is compared with nothing: inside `ties_allowed` it is simply drawn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_REFUSED: ContextVar[bool] = ContextVar("ties_refused", default=True)


def refused() -> bool:
    """Whether a tie is an error now."""
    return _REFUSED.get()


@contextmanager
def ties_allowed() -> Iterator[None]:
    """Inside it ties are rounded, to the even neighbour."""
    token = _REFUSED.set(False)
    try:
        yield
    finally:
        _REFUSED.reset(token)
