"""Marks of tests that run in one place alone. The other helpers need no pytest: drills use them, too."""

import pytest

from tests.helpers.mode import ON_GPU

gpu_only = pytest.mark.skipif(not ON_GPU, reason="needs a CUDA GPU")
interpreter_only = pytest.mark.skipif(ON_GPU, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
