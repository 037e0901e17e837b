# ---
# jupyter:
#   description: >-
#     穷举 host、stream、event 的交错：重用 pinned buffer 的 race，一个 event 怎样修好它，接口和 decode step。
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # block table 怎样到达 kernel：穷举一场 race
#
# 在克隆下来的仓库里运行，不需要 GPU：
#
# ```
# python -m venv .venv
# .venv/bin/pip install torch triton jupyterlab
# .venv/bin/jupyter lab docs/zh/notebooks
# ```
#
# 这里的 host、stream 和 event 是一个小模型，规则和 CUDA 的相同，小到可以把所有交错试一遍。
#
# 下一格从当前目录向上找到仓库根目录，所以 notebook 要放在仓库里面。从上到下逐格运行，再改程序重跑。

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
# ## 一步是什么
#
# host 写表，把 copy 和 kernel 排进队列。`reuse_at_once` 做两步，用同一块 pinned buffer。

# %%
for operation in reuse_at_once():
    print(operation)

# %% [markdown]
# ## GPU 空闲和 GPU 忙
#
# 两种次序跑同一个程序。“stream 优先”是空闲的 GPU，给它什么就马上做。
#
# “host 优先”是忙的 GPU，host 先把能做的都做完。
#
# 最后一列是 kernel 读到的表。GPU 忙时，第一个 kernel 要的是表 1，读到的是表 2。


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
# ## 全部交错
#
# 两种次序只是 23 种里的两种。`outcomes` 数出所有交错，按每个 kernel“要的表、读到的表”分类。


# %%
def judge(name, program, details=False):
    found = outcomes(program)
    wrong = sum(count for outcome, count in found.items() if not is_right(outcome))
    print(f"{name}: {sum(found.values())} interleavings, {wrong} wrong")
    for outcome, count in sorted(found.items()) if details else ():
        print(f"  {count} times (wanted, found): {outcome}")


judge("reuse_at_once, 2 steps", reuse_at_once(), details=True)

# %% [markdown]
# 错的恰好是“第二次写发生在第一次 copy 之前”的那些：4 + 3 + 2 = 9。步数越多，对的比例越小。

# %%
for steps in (1, 2, 3, 4):
    judge(f"reuse_at_once, {steps} steps", reuse_at_once(steps))

# %% [markdown]
# ## 一个 event
#
# copy 后面 record，下一次写之前等它。host 等的是 copy，不是 kernel。

# %%
show(wait_for_copy(), ("host", "stream"))
for steps in (1, 2, 3, 4):
    judge(f"wait_for_copy, {steps} steps", wait_for_copy(steps))

# %% [markdown]
# ## 两块 buffer
#
# 轮流用两块，race 只是推后了一步。每块配一个 event 才对。

# %%
judge("two_buffers, 2 steps", two_buffers(2))
judge("two_buffers, 3 steps", two_buffers(3))
judge("two_buffers with events, 3 steps", two_buffers(3, wait=True))

# %% [markdown]
# ## 单独的 copy stream
#
# 顺序没有了，两处等待都要：kernel 等表到（`ready`），copy 等 kernel 读完（`free`）。
#
# 表 0 的意思是：kernel 读的时候还没有任何表到达。

# %%
judge("both waits", copy_stream())
judge("no ready", copy_stream(ready=False), details=True)
judge("no free", copy_stream(free=False), details=True)

# %% [markdown]
# ## pageable memory
#
# driver 在调用返回之前就把表抄走了，所以没有 race。
#
# 代价不在这个模型里：真的调用还可能等 stream 上的全部工作，见课文的测量。

# %%
judge("pageable, 3 steps", pageable(3))

# %% [markdown]
# ## 自己写一个程序
#
# 一块 buffer，host 只在隔一步的时候等。三步里哪一步会错？先猜再运行，然后把 `% 2` 改掉。

# %%
program = []
for table in (1, 2, 3):
    if table % 2 == 1:
        program.append(HostWait("copied"))
    program += [Fill("host", table), Copy("host", "device"), Record("copied"), Kernel("device", table)]
judge("every other step", program, details=True)

# %% [markdown]
# ## 接口
#
# `SharedMetadata` 把 event 和 dirty bit 收在里面。CPU 上没有 stream，但顺序和报错是一样的。
#
# 没有新表就不 copy，没 release 就不能 acquire。

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
# ## 一个 decode step
#
# 固定的 buffer，host 只改三样：长度、slot、新增的页。第三行没有序列，结果是 0 和 -inf，K、V 也不写。
#
# kernel 由 Triton 的解释器执行。

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
# ## 接下来
#
# 课文里有 GPU 上的同一场 race、CUDA graph 下的三种结果，以及 replay 省下的时间。
