"""The lesson's example, two scores a block, and the row that has no weight at all."""

import torch

from kernels.online_softmax import online_softmax

scores = torch.tensor([1.0, 2.0, 3.0, 0.0])
values = torch.tensor([[10.0], [20.0], [30.0], [40.0]])
nothing = torch.full([4], -float("inf"))

o = torch.softmax(scores.double(), 0) @ values.double()
lse = torch.logsumexp(scores.double(), 0)
print(f"float64 reference: o = {o.item():.4f}, lse = {lse.item():.4f}")
for block_size in (1, 2, 4):
    o, lse = online_softmax(scores, values, block_size=block_size, return_lse=True)
    print(f"blocks of {block_size}: o = {o.item():.4f}, lse = {lse.item():.4f}")
o, lse = online_softmax(nothing, values, block_size=2, return_lse=True)
print(f"every score -inf: o = {o.item()}, lse = {lse.item()}")
o, lse = online_softmax(scores + 10000, values, block_size=2, return_lse=True)
print(f"scores + 10000: o = {o.item():.4f}, lse = {lse.item():.2f}")
