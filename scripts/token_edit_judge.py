"""The judge of scripts/token_edits.py: does a kernel differ from the definition on any of 200 random cases?

    python -m scripts.token_edit_judge l2_paged      # the kernel as it is: no case differs

It shares nothing with the tests: its own cases (scripts/token_edit_cases.py), its own float64 softmax, its
own comparison, and no memory of the tests' making. Needs TRITON_INTERPRET=1.
"""

import argparse
import random
import sys
from collections.abc import Callable

import torch

from scripts.token_edit_cases import merge_case, paged_case, row_case
from scripts.token_edit_memory import DifferenceError

CASES = 200
CASE_OF = {"online_softmax": row_case, "l3_combine": merge_case}


def judge(kernel: str, before: Callable[[int], None] = lambda case: None) -> tuple[int, str] | None:
    """(number of the first case that differs, how), or None; `before` is told each case's number."""
    torch.set_num_threads(1)  # the tensors are small
    for case in range(CASES):
        before(case)
        rng, draw = random.Random(f"{kernel}/{case}"), torch.Generator().manual_seed(case)
        try:
            CASE_OF.get(kernel, paged_case)(rng, draw, kernel)
        except DifferenceError as difference:
            return case, str(difference)
        except Exception as error:  # whatever an edited kernel raises is a difference
            return case, f"raised {type(error).__name__}"
    return None


def main() -> int:
    """The command line; returns the exit status."""
    from scripts.token_edit_rules import KERNELS

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernel", choices=KERNELS)
    found = judge(parser.parse_args().kernel)
    print(f"no difference in {CASES} cases" if found is None else f"case {found[0]}: {found[1]}")
    return 0 if found is None else 1


if __name__ == "__main__":
    sys.exit(main())
