"""Where the suite runs: on a CUDA GPU if there is one, else in Triton's interpreter. Decided once, at the
first import of this module, which must come before anything imports triton."""

import os

import torch

ON_GPU = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
if not ON_GPU:
    os.environ["TRITON_INTERPRET"] = "1"

DEVICE = torch.device("cuda" if ON_GPU else "cpu")
# The interpreter computes bf16 wrongly, and the launchers refuse it there (tests/kernels/test_checks.py).
DTYPES = [torch.float16, torch.float32] + ([torch.bfloat16] if ON_GPU else [])


def describe_mode() -> str:
    """One line for the header of the test run."""
    if ON_GPU:
        return f"kernels run on: {torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"kernels run in: Triton's interpreter on the CPU, torch {torch.__version__}"


def dtype_name(dtype: torch.dtype) -> str:
    """'float16' for torch.float16: the name in a test's id."""
    return str(dtype).removeprefix("torch.")
