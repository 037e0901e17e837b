"""Compile kernels for sm_90 with the real compiler, in a process without the interpreter: no GPU is needed.

    python -m tests.runner.real_compiler cases.json verdicts.json

cases: {name: {"source", "kernel", "types": {parameter: type}, "constants": {parameter: value}}}.
verdicts: {name: null, or what the compiler said}.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def verdicts(cases: dict[str, dict]) -> dict[str, str | None]:
    """What the compiler says of each, from a child process."""
    with tempfile.TemporaryDirectory() as name:
        given, found = Path(name) / "cases.json", Path(name) / "verdicts.json"
        given.write_text(json.dumps(cases), encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-m", "tests.runner.real_compiler", str(given), str(found)],
            cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "0"}, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        return json.loads(found.read_text(encoding="utf-8"))


def _verdict(name: str, case: dict, folder: Path) -> str | None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    file = folder / f"{name}.py"
    file.write_text(case["source"], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, case["kernel"])
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn  # of @triton.autotune or @triton.heuristics
    signature = {p: case["types"].get(p, "constexpr") for p in kernel.arg_names}
    source = ASTSource(fn=kernel, signature=signature, constexprs=case["constants"])
    try:
        triton.compile(source, target=GPUTarget("cuda", 90, 32))
    except Exception as error:  # whatever it raises is the verdict
        said = []
        while error is not None:
            said.append(str(error) or type(error).__name__)
            error = error.__cause__
        return "\n".join(said)
    return None


def main() -> None:
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRITON_CACHE_DIR"] = name
        found = {case: _verdict(case, told, Path(name)) for case, told in cases.items()}
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
