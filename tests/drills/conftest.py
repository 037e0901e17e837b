"""One sandbox for all of them: its servers import torch once."""

from collections.abc import Iterator

import pytest

from scripts.sandbox import Sandbox


@pytest.fixture(scope="session")
def box() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox
