"""An attribute replaced for a while. unittest.mock does it too, but brings asyncio along: slow in a page."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def patched(owner: object, name: str, value: object) -> Iterator[None]:
    """owner.name is `value` inside; what the owner itself had, or had not, is put back."""
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
