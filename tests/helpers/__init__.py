"""Helpers of the tests. Importing any of them decides first where kernels run (tests/helpers/mode.py)."""

from tests.helpers import mode

__all__ = ["mode"]
