"""The suite tests what it says it tests, where it says it does."""

from pathlib import Path

import pytest

import kernels
from kernels.checks import INTERPRETED
from tests.helpers.mode import ON_GPU


def test_kernels_are_ours():
    """A package of the same name is on PyPI."""
    assert Path(kernels.__file__) == Path(__file__).parents[2] / "kernels" / "__init__.py"


def test_kernels_were_imported_in_the_mode_of_the_run():
    assert INTERPRETED is not ON_GPU


@pytest.mark.parametrize("name", kernels.__all__)
def test_public_names_exist(name):
    assert callable(getattr(kernels, name))
