"""Child processes for kernels that nobody vouches for: with a limit of time and memory, and cheap to start.

    with Sandbox() as box:
        ended = box.run("interpreter", "scripts.drill_kernel", ["l2_paged_decode"], folder, Limits(120))

Importing torch and triton takes seconds, so one server a mode does it once, and forks for every run. A run
is `main(arguments)` of a module, in `folder`, which also comes first where modules are looked up: a copy of
kernels/ in it hides ours. A library for scripts/drill_run.py; run as a module, it is the server.
"""

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# One thread: the tensors are small, and only then is a fork safe.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # its driver takes addresses
MODES = {
    "interpreter": {"TRITON_INTERPRET": "1"} | NO_GPU | ONE_THREAD,
    "compiler": {"TRITON_INTERPRET": "0"} | NO_GPU | ONE_THREAD,
    "gpu": {"TRITON_INTERPRET": "0"} | ONE_THREAD,
}
MEMORY_BYTES = 10 * 2**30  # of addresses: torch takes several GiB of them, a cache past int32 four
OURS = ("kernels", "scripts", "tests")
FILE_BYTES = 2**28  # of any one file that is written


class SandboxError(RuntimeError):
    """The server itself ended: torch is missing, say, or memory ran out."""


@dataclass(frozen=True)
class Limits:
    """What a run may take.

    seconds: on the clock, or of_a_core, which a busy machine does not change. memory_bytes: of addresses.
    project: the run's folder is a copy of the whole project, and nothing is imported from this one.
    """

    seconds: int
    of_a_core: bool = False
    memory_bytes: int = MEMORY_BYTES
    project: bool = False


@dataclass(frozen=True)
class Ended:
    """How a run ended: the exit status, negative for a signal, and what it wrote to stderr."""

    status: int
    stderr: str = ""

    @property
    def timed_out(self) -> bool:
        return self.status == -signal.SIGALRM

    def __str__(self) -> str:
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return f"exit status {self.status}"


class Sandbox:
    """The servers, each started when it is first wanted; runs of one sandbox come one after the other."""

    def __init__(self) -> None:
        self._servers: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind: type | None, *exception) -> None:
        for server in self._servers.values():
            if kind:  # Ctrl-C, say: do not wait for the run under way
                server.terminate()
            with suppress(BrokenPipeError):
                server.stdin.close()  # it ends there
            server.wait()
            server.stdout.close()

    def run(self, mode: str, module: str, arguments: list[str], folder: Path, limits: Limits) -> Ended:
        """main(arguments) of a module; mode: one of MODES. Its output is in `folder` (stdout, stderr)."""
        if mode not in self._servers:
            self._servers[mode] = subprocess.Popen(
                [sys.executable, "-m", "scripts.sandbox"], cwd=ROOT, env=os.environ | MODES[mode],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        server = self._servers[mode]
        job = {"module": module, "arguments": arguments, "folder": str(folder), "limits": asdict(limits)}
        try:
            print(json.dumps(job | {"gpu": mode == "gpu"}), file=server.stdin, flush=True)
            answer = server.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SandboxError(f"{' '.join(server.args)} ended with exit status {server.wait()}")
        stderr = folder / "stderr"
        return Ended(int(answer), stderr.read_text(errors="replace") if stderr.is_file() else "")


def main() -> None:
    """The server: a job a line on stdin, how it ended a line on stdout."""
    running = 0

    def stop(*_) -> None:
        if running:
            _kill_group(running)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then terminates this
    signal.signal(signal.SIGTERM, stop)
    try:
        import pytest  # noqa: F401
        import torch
        import triton.experimental.gluon  # noqa: F401, the first launch imports it
    except ImportError as error:
        sys.exit(f"{error}; `make drill` installs what is wanted, and .venv/bin/python has it")

    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))  # imports as much again as torch
    for line in sys.stdin:
        running = os.fork()
        if running == 0:
            _run(json.loads(line))
        status = os.waitpid(running, 0)[1]
        _kill_group(running)  # whatever it left behind
        running = 0
        print(os.waitstatus_to_exitcode(status), flush=True)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _run(job: dict) -> None:
    """One job, in its own process; never returns."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    folder, limits = Path(job["folder"]), Limits(**job["limits"])
    if limits.of_a_core:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 5))
    else:
        signal.alarm(limits.seconds)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    if not job["gpu"]:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
        os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
    os.chdir(folder)
    here = [] if limits.project else [str(ROOT)]
    sys.path[:] = [str(folder), *here, *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if limits.project and name.partition(".")[0] in OURS]:
        del sys.modules[name]
    try:
        status = importlib.import_module(job["module"]).main(job["arguments"])
    except BaseException:  # this is the end of the process, whatever it was
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
