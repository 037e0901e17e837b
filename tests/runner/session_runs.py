"""Reports of sources that run one after the other in one page, and a kernel to put into them."""

import json
import textwrap

from tests.runner.helpers import in_page

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def helper(v):
    return tl.sqrt(v) + missing

@triton.jit
def kernel(x_ptr, o_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x_ptr + i)
    tl.store(o_ptr + i, {value})

x, o = torch.arange(32.0), torch.empty(32)
kernel[(2,)](x, o, N=16)
print("done", o[3].item())
"""


def runs(*sources: str, **options) -> list[dict]:
    """The reports of sources that run one after the other in one page."""
    return in_page(
        """
        import json
        from scripts.runner import session
        sources, options = json.loads(sys.argv[2])
        result = [session.run(source, **options) for source in sources]
        """,
        arguments=(json.dumps([[textwrap.dedent(source) for source in sources], options]),),
    )
