"""Kernels that Triton's interpreter runs and a GPU's compiler refuses, each beside one that both take.

Every body is that of `kernel(x, o, n, N: tl.constexpr)`, after `i = tl.arange(0, N)`; x and o have 512
floats, n is 5 and N is 16. `before` stands before the kernel. The line of the refusal ends with `# here`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    code: str  # of the warning
    refused: str
    taken: str
    before: str = ""


def source(case: Case, body: str) -> tuple[str, int | None]:
    """The whole file, and the number of its line that ends with `# here`."""
    lines = [line[4:] for line in body.strip("\n").splitlines()]
    lines = [line.rstrip() for line in lines]
    text = (
        "import torch\nimport triton\nimport triton.language as tl\n\n"
        + case.before
        + "\n\n@triton.jit\ndef kernel(x, o, n, N: tl.constexpr):\n    i = tl.arange(0, N)\n"
        + "\n".join(lines).rstrip()
        + '\n\n\nif __name__ == "__main__":\n    x = torch.zeros(512)\n    o = torch.zeros(512)\n'
        "    kernel[(1,)](x, o, 5, N=16)\n"
    )
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]
    return text, marked[0] if marked else None
