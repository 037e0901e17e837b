# ---
# jupyter:
#   description: >-
#     The race for a pinned buffer in every interleaving, the event that mends it, and a decode step.
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How the block table reaches the kernel: a race, every way it can go
#
# Run it inside a clone of the repository; no GPU is needed:
#
# ```
# python -m venv .venv
# .venv/bin/pip install torch triton jupyterlab
# .venv/bin/jupyter lab docs/en/notebooks
# ```
#
# Host, stream and event are a small model here. Its rules are CUDA's, and it is small enough to try every
# interleaving.
#
# The next cell looks for the root of the repository from the current directory upwards, so keep the
# notebook inside it. Run the cells from top to bottom, then change a program and run again.

# %%
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
sys.path.insert(
    0, str(next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "kernels/reference.py").is_file()))
)

import torch

from kernels.l1_decode_step import as_tables, declare_tables, decode_step, new_buffers, refill_tables
from kernels.l1_stream_model import (
    Copy,
    Fill,
    HostWait,
    Kernel,
    Record,
    copy_stream,
    is_right,
    outcomes,
    pageable,
    reuse_at_once,
    run,
    two_buffers,
    wait_for_copy,
)
from kernels.l1_table_to_device import Declaration, SharedMetadata

# %% [markdown]
# ## What a step is
#
# The host writes the table and queues a copy and a kernel. `reuse_at_once` does two steps with one pinned
# buffer.

# %%
for operation in reuse_at_once():
    print(operation)

# %% [markdown]
# ## An idle GPU and a busy one
#
# One program in two orders. "Stream first" is an idle GPU: it does at once what it is given. "Host first"
# is a busy one: the host does all it can before the stream begins.
#
# Look at the table that the kernels find. On the busy GPU the first kernel wants table 1 and finds table
# 2.


# %%
def show(program, order):
    for step in run(program, order):
        wanted = f", launched for table {step.operation.wanted}" if step.is_read else ""
        line = f"{step.who:7}{type(step.operation).__name__:9}{step.table or ''}{wanted}"
        print(line.rstrip())


print("idle")
show(reuse_at_once(), ("stream", "host"))
print("busy")
show(reuse_at_once(), ("host", "stream"))

# %% [markdown]
# ## Every interleaving
#
# Two orders are two of 23. `outcomes` counts all of them, by what each kernel wanted and found.


# %%
def judge(name, program, details=False):
    found = outcomes(program)
    wrong = sum(count for outcome, count in found.items() if not is_right(outcome))
    print(f"{name}: {sum(found.values())} interleavings, {wrong} wrong")
    for outcome, count in sorted(found.items()) if details else ():
        print(f"  {count} times (wanted, found): {outcome}")


judge("reuse_at_once, 2 steps", reuse_at_once(), details=True)

# %% [markdown]
# The wrong ones are exactly those in which the second write comes before the first copy: 4 + 3 + 2 = 9.
# With more steps fewer and fewer are right.

# %%
for steps in (1, 2, 3, 4):
    judge(f"reuse_at_once, {steps} steps", reuse_at_once(steps))

# %% [markdown]
# ## One event
#
# Recorded behind the copy, waited for before the next write. The host waits for the copy, not for the
# kernel.

# %%
show(wait_for_copy(), ("host", "stream"))
for steps in (1, 2, 3, 4):
    judge(f"wait_for_copy, {steps} steps", wait_for_copy(steps))

# %% [markdown]
# ## Two buffers
#
# Taken in turns, they put the race off by a step. With an event for each it is gone.

# %%
judge("two_buffers, 2 steps", two_buffers(2))
judge("two_buffers, 3 steps", two_buffers(3))
judge("two_buffers with events, 3 steps", two_buffers(3, wait=True))

# %% [markdown]
# ## A stream for the copies
#
# There is no order any more, and both waits are needed: kernels wait for the table (`ready`), copies for
# the kernel that still reads (`free`).
#
# Table 0 means that no table had arrived when the kernel read.

# %%
judge("both waits", copy_stream())
judge("no ready", copy_stream(ready=False), details=True)
judge("no free", copy_stream(free=False), details=True)

# %% [markdown]
# ## Pageable memory
#
# The driver takes the table aside before the call returns, so there is no race. What it costs is not in
# this model: the real call may wait for all that is queued on the stream, as the page's measurements show.

# %%
judge("pageable, 3 steps", pageable(3))

# %% [markdown]
# ## A program of your own
#
# One buffer, and a host that waits at every other step only. Which of three steps goes wrong? Guess, run,
# then change the `% 2`.

# %%
program = []
for table in (1, 2, 3):
    if table % 2 == 1:
        program.append(HostWait("copied"))
    program += [Fill("host", table), Copy("host", "device"), Record("copied"), Kernel("device", table)]
judge("every other step", program, details=True)

# %% [markdown]
# ## The interface
#
# `SharedMetadata` keeps the event and the dirty bit to itself. A CPU has no streams, but order and errors
# are the same: no new table, no copy; no release, no acquire.

# %%
shared = SharedMetadata(Declaration("block_table", (2, 4)), "cpu")
shared.host_acquire()[:] = 7
shared.host_release()
print("dirty", shared.dirty)
print(shared.device_acquire().tolist())
print("dirty", shared.dirty)
try:
    shared.host_acquire()
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## A decode step
#
# Buffers that stay, and a host that changes three things: lengths, slots, new pages. The third row has no
# sequence: it gives 0 and -inf, and its K and V go nowhere. The kernels run in Triton's interpreter.

# %%
rng = torch.Generator().manual_seed(0)
q, k, v = (torch.randn(3, heads, 16, generator=rng) for heads in (4, 2, 2))
k_cache, v_cache = torch.randn(2, 12, 16, 2, 16, generator=rng)
tables = SharedMetadata(declare_tables(batch_size=3, max_pages=4), "cpu")
x = new_buffers(q, k, v, as_tables(tables.device, 3), k_cache, v_cache, num_splits=2)
pages = {(0, 0): 9, (0, 1): 3, (0, 2): 7, (1, 0): 5, (1, 1): 1}
refill_tables(tables, 3, lens=[37, 17], slots=[7 * 16 + 4, 1 * 16 + 0], pages=pages)
tables.device_acquire()
decode_step(x)
tables.device_release()
print("k stored", torch.equal(k_cache[7, 4], k[0]), torch.equal(k_cache[1, 0], k[1]))
print("o", [round(row, 3) for row in x.o[:, 0, 0].tolist()])
print("lse", [round(row, 3) for row in x.lse[:, 0].tolist()])

# %% [markdown]
# ## What comes next
#
# The page has the same race on a GPU, the three outcomes under a CUDA graph, and the time that replay
# saves.
