"""The second child process of scripts/mutants.py: what the compiler says of a kernel that passed all else.

    python -m scripts.mutant_compile l2_paged_decode --out report.json [--file mine/l2_paged_decode.py]

Compiles the lesson's fp32 kernel for sm_90, without a GPU: a dot of fewer than 16 tokens does not compile,
and a dot of fp32 that does not say so is TF32. The interpreter shows neither.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

KERNELS = {
    "l2_paged_decode": ("_paged_decode_kernel", "packed"),
    "l3_split_kv_decode": ("_split_kernel", "split"),
}
SIZES = ("sm_90", "fp32", 4, 16, 16)  # target, dtype, group, head dim, page size: quick to compile


def compile_check(lesson: str, file: Path | None) -> dict:
    """The report: {"ok": True}, or what is wrong."""
    name, kind = KERNELS[lesson]
    lesson_module = importlib.import_module(f"kernels.{lesson}")  # before compile_grid puts ours first
    if file is not None:
        from scripts.mutant_checks import load_file

        kernel = getattr(load_file(file), name, None)
        if kernel is None:  # a kernel of another name and signature: nothing here can compile it
            return {"ok": True, "message": f"no kernel {name} in the file: not compiled"}
        setattr(lesson_module, name, kernel)
    from scripts import compile_grid  # takes the kernel as it is now

    failure = {"ok": False, "check": "compile", "case": f"{name}, {SIZES}", "mistakes": []}
    try:
        row = compile_grid.compile_point((kind, *SIZES))
    except Exception as error:  # whatever the compiler raises is the finding
        cause = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        message = f"does not compile: {str(cause).strip().splitlines()[-1]}"
        small = "should have" in str(cause) and "K >=" in str(cause)
        mistakes = ["l2_paged_decode/tile_of_8_tokens"] if small else []
        return failure | {"message": message, "mistakes": mistakes}
    if row["tf32_instructions"]:
        message = f"{row['tf32_instructions']} TF32 instructions in the PTX of the fp32 kernel"
        return failure | {"message": message, "mistakes": ["l2_paged_decode/tf32"]}
    return {"ok": True}


def main() -> int:
    """The command line; 0 whatever it finds, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", choices=KERNELS)
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--file", type=Path, help="a reader's file with the lesson's kernel")
    args = parser.parse_args()
    args.out.write_text(json.dumps(compile_check(args.lesson, args.file)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
