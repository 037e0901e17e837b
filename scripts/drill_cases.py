"""The small cases of a lesson whose drill is one file at a time."""

from scripts import drill_cases_l0, drill_cases_l1
from scripts.part_checks import Part

_PARTS = {"l0_shapes": drill_cases_l0.PARTS, "l1_paged_cache": drill_cases_l1.PARTS}


def parts_of(lesson: str) -> dict[str, Part]:
    """{file of kernels/: what is checked of it}."""
    return _PARTS[lesson]
