"""A block table on its way to a kernel in PyTorch: the framework moves the tensor, Triton takes its pointer.

Lesson: l1_table_to_device. Run: python scripts/transfer_programs.py torch
Without a GPU the kernel runs in Triton's interpreter. Prints one JSON object.
"""

import json
import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported

import triton
import triton.language as tl


# region kernel
@triton.jit
def _last_slots_kernel(
    slots_ptr,  # [B] int32, out: page * PAGE_SIZE + slot in the page
    table_ptr,  # [B, max_pages] int32, in
    seq_lens_ptr,  # [B] int32, in
    stride_table_b,
    PAGE_SIZE: tl.constexpr,
):
    """Grid (B,): a program owns one slot."""
    b = tl.program_id(0)
    token = tl.load(seq_lens_ptr + b) - 1
    page = tl.load(table_ptr + b * stride_table_b + token // PAGE_SIZE)
    tl.store(slots_ptr + b, page * PAGE_SIZE + token % PAGE_SIZE)


# endregion kernel


# region step
def last_slots(table: torch.Tensor, seq_lens: torch.Tensor, device) -> torch.Tensor:
    """The slot of each sequence's last token; both tensors are the host's."""
    table = table.to(device, non_blocking=True)  #: torch_moves
    seq_lens = seq_lens.to(device, non_blocking=True)  #: torch_moves
    slots = torch.empty_like(seq_lens)  # where the framework likes
    _last_slots_kernel[(len(slots),)](  #: pointers
        slots, table, seq_lens, table.stride(0), PAGE_SIZE=16
    )  #: pointers
    return slots


# endregion step


def main() -> None:
    """Two steps of three sequences; the second sequence gets a new page at the first step."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table = torch.tensor([[9, 3, 7, -1], [5, -1, -1, -1], [0, 1, -1, -1]], dtype=torch.int32)
    seq_lens = torch.tensor([36, 16, 17], dtype=torch.int32)
    found = []
    for _ in range(2):
        seq_lens = seq_lens + 1  # a new tensor: the copy of the last one may still be on its way
        for b, token in enumerate((seq_lens - 1).tolist()):
            if token % 16 == 0:
                table = table.clone()
                table[b, token // 16] = 20 + b
        found.append(last_slots(table, seq_lens, device).tolist())
    print(json.dumps({"device": device.type, "slots": found}))


if __name__ == "__main__":
    main()
