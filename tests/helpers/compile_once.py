"""One small compilation of lesson kernels for a GPU that is not here. Run as a module, it is the child of the
tests, which may run in the interpreter: it minds neither TF32, nor a tile that no target compiles, nor a loop
that changes the type of what it carries."""

import json
import subprocess
import sys
from pathlib import Path

SIZES = ("sm_90", "fp32", 4, 16, 16)  # target, dtype, group, head dim, page size: quick to compile


def compiled_rows(*kernels: str) -> list[dict]:
    """What scripts/compile_grid.py says of these kernels at SIZES; AssertionError if one does not compile."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.helpers.compile_once", *kernels],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, f"exit status {run.returncode}\n{run.stderr[-3000:]}"
    return json.loads(run.stdout)


if __name__ == "__main__":
    from scripts import compile_grid

    print(json.dumps([compile_grid.compile_point((kernel, *SIZES)) for kernel in sys.argv[1:]]))
