"""The project's own code on the page's torch: the same inputs and results as with PyTorch, to the last bit
where nothing but kernels and copies is computed."""

import pytest

from tests.runner import torch_kernels
from tests.runner.helpers import in_page
from tests.runner.torch_parity import BIT_IDENTICAL, value_difference


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    """The observations with PyTorch and Triton's own interpreter, and those of the page's modules."""
    page = in_page(
        """
        from tests.runner import torch_kernels
        result = torch_kernels.observations()
        """,
        timeout=600,
    )
    return torch_kernels.observations(), page


def test_the_same_is_observed(both):
    wanted, page = both
    assert wanted.keys() == page.keys() and len(wanted) > 60


@pytest.mark.parametrize(
    "kind", ["inputs", "layout", "result", "case kernels/l1", "refusals", "imported", "trace"]
)
def test_bit_identical(both, kind):
    """Inputs are drawn, moved and laid out; kernels are run by the same interpreter on the same numbers."""
    wanted, page = both
    names = [name for name in wanted if name.startswith(kind)]
    assert names
    bad = {
        name: what for name in names if (what := value_difference(wanted[name], page[name], BIT_IDENTICAL))
    }
    assert not bad


@pytest.mark.parametrize("kind", ["references", "case kernels/l0"])
def test_equal_up_to_roundings(both, kind):
    """Sums in float64 are added up in another order."""
    wanted, page = both
    names = [name for name in wanted if name.startswith(kind)]
    assert names
    bad = {name: what for name in names if (what := value_difference(wanted[name], page[name], 1e-6))}
    assert not bad
