"""Chooses where kernels run (tests/helpers/mode.py) before any test module imports triton."""

from hypothesis import HealthCheck, Phase, settings

from tests.helpers.mode import ON_GPU, describe_mode

# The same examples in every run: a failure is reproduced by running the test again.
settings.register_profile(
    "suite",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=40 if ON_GPU else 15,
    # No shrinking: the drawn cases are small as they are, and a call takes a second in the interpreter.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("suite")


def pytest_report_header() -> str:
    return describe_mode()
