"""What a kernel did that no GPU would forgive, as exceptions with their facts.

Each has a `code` and `values` (plain JSON), from which scripts/runner/words.py makes the texts in both
languages; str() is the English one.
"""


class Fault(Exception):  # noqa: N818, readers see these names
    """A bad access, or something this runner does not have."""

    def __init__(self, code: str, **values):
        super().__init__(code)
        self.code = code
        self.values = values

    def __str__(self) -> str:
        from scripts.runner.words import text  # read when first needed, not while the page starts

        return text("fault", self.code, self.values, "en")


class OutOfBounds(Fault):
    """A load, store or atomic outside the view that the launch was given."""


class RowOverrun(OutOfBounds):
    """A read of the block table outside the entries of the program's own sequence."""


class BadPointer(Fault):
    """An address that belongs to no tensor, or that is no multiple of the element's size."""


class UnwrittenRead(Fault):
    """A read of memory that nothing has written."""


class OutOfMemory(Fault, MemoryError):  # noqa: N818
    """An allocation larger than this runner makes."""


class Unsupported(Fault, NotImplementedError):  # noqa: N818
    """What Triton's interpreter gets wrong, or what is not in the page: `values["name"]` says it."""


class Refused(Fault):
    """A kernel that is not run, since it would never end."""
