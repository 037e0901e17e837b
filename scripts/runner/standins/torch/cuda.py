"""There is no GPU in a page: only the names that signatures and launchers mention."""

from torch._names import absent

_HINT = "there is no GPU in a page"


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def _missing_class(name: str):
    class Missing:
        """A name for annotations."""

        def __init__(self, *args, **kwargs) -> None:
            raise NotImplementedError(absent(f"torch.cuda.{name}", _HINT))

    Missing.__name__ = Missing.__qualname__ = name
    return Missing


Stream, Event, CUDAGraph = map(_missing_class, ("Stream", "Event", "CUDAGraph"))


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(absent(f"torch.cuda.{name}", _HINT))
