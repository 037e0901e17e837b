"""Programs whose kernels access what they must not, beside some that do not: what test_faults.py runs."""

from scripts import run_program

START = """
import torch
import triton
import triton.language as tl

"""
COPY = (
    START
    + """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(o_ptr + i, x, mask=mask)

x, o = torch.arange(40.0), torch.empty(40)
kernel[(3,)](x, o, 40, N=16)
"""
)
ROWS = (
    START
    + """
@triton.jit
def kernel(x_ptr, o_ptr, rows, stride, N: tl.constexpr):
    r, i = tl.arange(0, 8), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * stride + i[None, :], mask=r[:, None] < rows)
    tl.store(o_ptr + r[:, None] * N + i[None, :], x)

x, o = torch.zeros(8, 32), torch.empty(8, 16)
"""
)
ONE = (
    START
    + """
@triton.jit
def kernel(x_ptr, o_ptr, n):
    {body}

x, o = torch.zeros(4), torch.zeros(4)
kernel[(2,)](x, o, 1)
"""
)
PAGED = (
    START
    + """
@triton.jit
def kernel(o_ptr, k_ptr, block_table_ptr, seq_lens_ptr, stride_b, PAGE_SIZE: tl.constexpr, D: tl.constexpr):
    seq_id = tl.program_id(0)
    length = tl.load(seq_lens_ptr + seq_id)
    slots, d = tl.arange(0, PAGE_SIZE), tl.arange(0, D)
    acc = tl.zeros([D], tl.float32)
    for page in range(tl.cdiv(length, PAGE_SIZE)):
        page_id = tl.load(block_table_ptr + seq_id * stride_b + page)
        k_page = k_ptr + page_id * PAGE_SIZE * D
        mask = page * PAGE_SIZE + slots < length
        acc += tl.sum(tl.load(k_page + slots[:, None] * D + d[None, :], mask=mask[:, None], other=0.0), 0)
    tl.store(o_ptr + seq_id * D + d, acc)

table = torch.tensor([[3, 1, 0], [2, -1, -1]], dtype=torch.int32)
k, lens = torch.ones(4, 16, 1, 16), torch.tensor([40, 16], dtype=torch.int32)
# here
o = torch.empty(2, 16)
kernel[(2,)](o, k, table, lens, table.stride(0), PAGE_SIZE=16, D=16)
"""
)
L2 = run_program.program("l2_paged_decode")


def changed(source: str, *edits: tuple[str, str]) -> str:
    """The source with each first text replaced by the second."""
    for old, new in edits:
        assert old in source, old
        source = source.replace(old, new)
    return source


PROGRAMS = {
    "right": COPY,
    "load_past_end": changed(COPY, ("x_ptr + i, mask=mask", "x_ptr + i")),
    "store_past_end": changed(COPY, (", x, mask=mask", ", x")),
    "load_before_start": changed(COPY, ("x_ptr + i,", "x_ptr + i - 3,")),
    "off_by_one": changed(COPY, ("i < n", "i <= n")),
    "int32_overflow": changed(COPY, ("x_ptr + i,", "x_ptr + (i + 1) * 1073741824,")),
    "atomic_past_end": ONE.format(body="tl.atomic_add(o_ptr + 3 + tl.program_id(0), 1.0)"),
    "cas_past_end": ONE.format(body="tl.atomic_cas(o_ptr.to(tl.pointer_type(tl.int32)) + 4, 0, 1)"),
    "next_row_of_the_storage": ROWS + "kernel[(1,)](x[:, :16], o, 8, 33, N=16)\n",
    "part_of_a_storage": ROWS + "kernel[(1,)](x[2:6], o, 8, 32, N=16)\n",
    "view_used_well": ROWS + "kernel[(1,)](x[:, 16:], o, 8, 32, N=16)\n",
    "two_views_of_one_storage": START + """
@triton.jit
def kernel(k_ptr, v_ptr, o_ptr):
    tl.store(o_ptr, tl.load(k_ptr + 4) + tl.load(v_ptr))

kv = torch.zeros(8)
kernel[(1,)](kv[:4], kv[4:], torch.empty(1))
""",
    "wrong_axis": ROWS + "kernel[(1,)](x.t(), o, 8, 32, N=32)\n",
    "misaligned": ONE.format(
        body="p = (x_ptr.to(tl.int64) + 2).to(tl.pointer_type(tl.float32)); tl.store(o_ptr, tl.load(p))"
    ),
    "null": ONE.format(body="p = (n * 0).to(tl.int64).to(tl.pointer_type(tl.float32)); tl.store(p, 1.0)"),
    "no_tensor": ONE.format(
        body="p = (n.to(tl.int64) << 60).to(tl.pointer_type(tl.float32)); tl.store(p, 1.0)"
    ),
    "pointers_in_a_tensor": START + """
@triton.jit
def kernel(p_ptr, o_ptr, n):
    for k in range(2):
        p = tl.load(p_ptr + k).to(tl.pointer_type(tl.float32))
        tl.store(o_ptr + k, tl.load(p + n))

a, b, o = torch.arange(4.0), torch.arange(4.0) * 10, torch.empty(2)
kernel[(1,)](torch.tensor([a.data_ptr(), b.data_ptr()]), o, 3)
print(o.tolist())
kernel[(1,)](torch.tensor([a.data_ptr(), b.data_ptr()]), o, 4)
""",
    "freed": START + """
@triton.jit
def kernel(p_ptr, o_ptr):
    tl.store(o_ptr, tl.load(tl.load(p_ptr).to(tl.pointer_type(tl.float32))))

p = torch.tensor([torch.zeros(4).data_ptr()])
kernel[(1,)](p, torch.empty(1))
""",
    "unwritten": changed(COPY, ("torch.arange(40.0)", "torch.empty(40)")),
    "unwritten_in_part": changed(
        COPY, ("torch.arange(40.0)", "torch.empty(40)"), ("kernel[", "x[:39] = 1\nkernel[")
    ),
    "unwritten_atomic": ONE.format(body="tl.atomic_add(o_ptr, 1.0)").replace(
        "torch.zeros(4), torch.zeros(4)", "torch.zeros(4), torch.empty(4)"
    ),
    "written_by_a_kernel": COPY + "kernel[(3,)](o, x, 40, N=16)\nprint(x.sum().item())\n",
    "written_by_half": changed(COPY, ("i < n", "i < n - 9")) + "print(o.sum())\n",
    "huge": START + "torch.empty(2**26)\n",
    "one_page_too_far": changed(L2, ("range(page_end - page_begin)", "range(page_end - page_begin + 1)")),
    "one_page_too_far_inside": changed(
        L2,
        ("range(page_end - page_begin)", "range(page_end - page_begin + 1)"),
        ("4, 2], [5", "4, 2, 6], [5"),
        ("-1, -1, -1]", "-1, -1, -1, -1]"),
    ),
    "row_of_another": changed(
        L2, ("block_table_ptr + seq_id * stride", "block_table_ptr + kv_head * stride")
    ),
    "paged": PAGED,
    "page_id_too_large": changed(PAGED, ("# here", "table[0, 1] = 9999")),
    "page_id_negative": changed(PAGED, ("# here", "lens[1] = 17")),
    "slots_without_tokens": changed(
        L2, ("mask=mask_n[:, None],\n            other=0.0,  # p is 0 there, but 0 * NaN is NaN", "")
    ),
    "l2": L2,
}  # fmt: skip
