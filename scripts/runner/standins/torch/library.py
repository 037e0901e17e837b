"""torch.library: an op is its Python function here, since nothing compiles around it."""

from torch._names import absent


class CustomOp:
    """What `custom_op` makes of a function."""

    def __init__(self, name: str, function) -> None:
        self._name, self._function = name, function
        self.__doc__ = function.__doc__

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def register_fake(self, function):
        """Shapes and dtypes for a compiler, which is not here: kept unused."""
        return function

    def __repr__(self) -> str:
        return f"<CustomOp({self._name})>"


def custom_op(name: str, fn=None, /, *, mutates_args=(), device_types=None, schema=None):
    """The function itself, under the name of an op."""
    return (lambda function: CustomOp(name, function)) if fn is None else CustomOp(name, fn)


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(absent(f"torch.library.{name}"))
