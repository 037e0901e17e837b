"""What the compiler says of kernels that passed all else: what scripts/drill_run.py runs at last.

    python -m scripts.mutant_compile l2_paged_decode --launches launches.json --out report.json [--file FILE]

The interpreter records what a small fp32 call launches (`recorded_launches`), whatever the kernels are
called; this compiles those kernels for sm_90, without a GPU. A dot of fewer than 16 tokens does not compile,
and a dot of fp32 that does not say so is TF32. The interpreter shows neither.
"""

import argparse
import importlib
import inspect
import json
import sys
from pathlib import Path

from scripts.drill_child import load_file
from scripts.patching import patched

OPTIONS = ("num_warps", "num_stages")
SMALL_TILE, TF32 = "l2_paged_decode/tile_of_8_tokens", "l2_paged_decode/tf32"  # what only a compiler tells


def recorded_launches(lesson: str, function) -> list[dict]:
    """Every kernel that one fp32 call launches in the interpreter: where it is, and its arguments' types."""
    from triton.runtime.interpreter import GridExecutor

    from scripts.mutant_problems import compiled_problem

    launches = []
    execute = GridExecutor.__call__

    def recording(executor, *args, **kwargs):
        names = executor.arg_names
        arguments = inspect.getcallargs(executor.fn, *args, **{k: v for k, v in kwargs.items() if k in names})
        constants = {n: v for n, v in arguments.items() if n in executor.constexprs or v is None}
        types = {n: "constexpr" if n in constants else _type(v) for n, v in arguments.items()}
        whole = [n for n, v in arguments.items() if n not in constants and _is_multiple_of_16(v)]
        launches.append({
            "module": executor.fn.__module__, "kernel": executor.fn.__name__, "types": types,
            "constants": constants, "multiples_of_16": whole,
            "options": {name: kwargs[name] for name in OPTIONS if name in kwargs},
        })  # fmt: skip
        return execute(executor, *args, **kwargs)

    with patched(GridExecutor, "__call__", recording):
        compiled_problem(lesson).run(function)
    return launches


def _type(value) -> str:
    """The name of an argument's type, as a launch would specialise it."""
    if hasattr(value, "data_ptr"):
        dtype = str(value.dtype).removeprefix("torch.")
        return "*" + dtype.replace("float", "fp").replace("bfp", "bf").replace("int", "i")
    if isinstance(value, float):
        return "fp32"
    return "i32" if isinstance(value, bool) or abs(value) < 2**31 else "i64"


def _is_multiple_of_16(value) -> bool:
    return hasattr(value, "data_ptr") or (isinstance(value, int) and value % 16 == 0)


def compile_check(launches: list[dict], file: Path | None) -> dict:
    """The report: {"ok": True}, or what is wrong."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if file is not None:
        load_file(file)  # as "readers_kernel", so that launches find it
    for launch in {(launch["module"], launch["kernel"]): launch for launch in launches}.values():
        name = launch["kernel"]
        failure = {"ok": False, "check": "compile", "case": f"{name} in fp32, for sm_90", "mistakes": []}
        function = getattr(importlib.import_module(launch["module"]), name, None)
        if not isinstance(function, triton.JITFunction):
            wanted = f"wanted a @triton.jit function {name} of the file, not of another function"
            return failure | {"message": f"the kernel {name} cannot be compiled apart: {wanted}"}
        index = list(launch["types"]).index
        source = ASTSource(
            fn=function, signature=launch["types"], constexprs=launch["constants"],
            attrs={(index(n),): [["tt.divisibility", 16]] for n in launch["multiples_of_16"]},
        )  # fmt: skip
        try:
            compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=launch["options"])
        except Exception as error:  # whatever the compiler raises is the finding
            while error.__cause__ is not None:
                error = error.__cause__
            message = f"does not compile: {str(error).strip().splitlines()[-1]}"
            small = "should have" in str(error) and "K >=" in str(error)
            return failure | {"message": message, "mistakes": [SMALL_TILE] if small else []}
        if ".tf32" in compiled.asm["ptx"]:
            message = "TF32 instructions in the PTX of an fp32 kernel"
            return failure | {"message": message, "mistakes": [TF32]}
    return {"ok": True}


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 whatever it finds, since the report says it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson")
    parser.add_argument("--launches", type=Path, required=True, help="JSON of `recorded_launches`")
    parser.add_argument("--out", type=Path, required=True, help="the JSON report to write")
    parser.add_argument("--file", type=Path, help="a reader's file with the lesson's kernel")
    args = parser.parse_args(arguments)
    launches = json.loads(args.launches.read_text(encoding="utf-8"))
    args.out.write_text(json.dumps(compile_check(launches, args.file)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
