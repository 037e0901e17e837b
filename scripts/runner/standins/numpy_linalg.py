"""Takes the place of numpy.linalg in the page: nothing needs it, and it is a third of numpy's download."""

_MESSAGE = "numpy.linalg.{} is not in this page's numpy"


class LinAlgError(ValueError):
    """As numpy's."""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(_MESSAGE.format(name))

    def refuse(*args, **kwargs):
        raise NotImplementedError(_MESSAGE.format(name))

    refuse.__name__ = name
    return refuse
