"""torch.nn: nothing but `functional`."""

from torch._names import absent
from torch.nn import functional

__all__ = ["functional"]


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(absent(f"torch.nn.{name}"))
