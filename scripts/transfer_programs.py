"""Build and run the programs of snippets/transfer: one task in CUDA C++, OpenMP and PyTorch.

    python scripts/transfer_programs.py openmp     where a C++ compiler is
    python scripts/transfer_programs.py torch      anywhere
    python scripts/transfer_programs.py cuda       where nvcc and a GPU are
    python scripts/transfer_programs.py cuda --arch sm_90 --build-only

Each prints one JSON object. Exit status 2: the tool that it needs is not here.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "snippets/transfer"
SOURCES = {
    "cuda": FOLDER / "table_to_device.cu",
    "openmp": FOLDER / "table_to_device_openmp.cpp",
    "torch": FOLDER / "table_to_device_torch.py",
}


class MissingToolError(RuntimeError):
    """A compiler that is not installed here; says which one and for what."""


class ProgramError(RuntimeError):
    """A program that does not compile, or fails; holds what it printed."""


def compiler(name: str) -> str:
    """The compiler of a program, from the PATH or from where CUDA usually stands."""
    if name == "cuda":
        homes = [Path(os.environ[var]) for var in ("CUDA_HOME", "CUDA_PATH") if var in os.environ]
        places = [str(home / "bin") for home in [*homes, Path("/usr/local/cuda")]]
        found = shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(places))
    else:
        found = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    if found is None:
        tool = "nvcc, of the CUDA toolkit" if name == "cuda" else "g++ or clang++"
        raise MissingToolError(f"{SOURCES[name].name} needs {tool}, which is not on the PATH")
    if name == "openmp":
        probe_openmp(found)
    return found


def probe_openmp(found: str) -> None:
    """Some installations have the compiler, and not what links a target region."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("int main() {\n#pragma omp target\n{ }\nreturn 0; }\n", encoding="utf-8")
        try:
            _run([found, "-fopenmp", "-o", str(source.with_suffix("")), str(source)])
        except ProgramError as error:
            told = " ".join(str(error).split())
            raise MissingToolError(f"no OpenMP target regions with this compiler: {told}") from error


def source_hash(name: str) -> str:
    """A short hash of a program's source: which one a record measured."""
    return hashlib.sha256(SOURCES[name].read_bytes()).hexdigest()[:16]


def build(name: str, folder: Path, arch: str = "native") -> Path:
    """Compile a program into `folder`; arch is nvcc's, "native" for the GPU that is here."""
    program = folder / SOURCES[name].stem
    flags = [f"-arch={arch}"] if name == "cuda" else ["-fopenmp"]
    _run([compiler(name), "-std=c++17", "-O2", *flags, "-o", str(program), str(SOURCES[name])])
    return program


def run(name: str, *arguments: str) -> dict:
    """Build a program if it must be, run it, and return the JSON that it printed."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "torch":
            return json.loads(_run([sys.executable, str(SOURCES[name]), *arguments]))
        return json.loads(_run([str(build(name, Path(folder))), *arguments]))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProgramError(f"{Path(command[0]).name} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", choices=SOURCES)
    parser.add_argument("--arch", default="native", help="for nvcc (default: of the GPU that is here)")
    parser.add_argument("--build-only", action="store_true", help="compile it, run nothing")
    args = parser.parse_args(argv)
    try:
        if args.build_only:
            with tempfile.TemporaryDirectory() as folder:
                build(args.program, Path(folder), args.arch)
                print(f"{SOURCES[args.program].name} compiles")
        else:
            print(json.dumps(run(args.program), indent=1))
    except MissingToolError as error:
        print(f"transfer_programs.py: {error}", file=sys.stderr)
        return 2
    except ProgramError as error:
        print(f"transfer_programs.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
