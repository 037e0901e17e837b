"""The token of L0's example: Dm 3, four query heads, two KV heads, D 2; then attention, causal."""

import torch

from kernels.l0_shapes import attend, grouped_attention, kv_head_of, rotate

w_q = [[1, 0, 2, 1, 0, 1, 2, 0], [0, 1, 0, 1, 1, 0, 0, 2], [1, 0, 1, 0, 0, 1, 0, 1]]
w_k = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]
w_v = [[2, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, -1]]
weights = {name: torch.tensor(w).double() for name, w in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v))}
x = torch.tensor([[1, 2, -1]]).double()
attention = grouped_attention(3, 4, 2, 2, torch.float64)
q, stored = attention.project(x, torch.zeros(1), weights)
print("q by head:", q[0].int().tolist())
print("k and v by KV head:", stored["k"][0].int().tolist(), stored["v"][0].int().tolist())
print("query head -> KV head:", [kv_head_of(h, 2) for h in range(4)])

one, two = torch.tensor([[[1.0, 0.0, 0.5, 2.0]]]), torch.tensor([[[0.5, 1.0, -1.0, 0.0]]])
for i, j in ((5, 2), (1005, 1002), (5, 1)):
    score = (rotate(one, torch.tensor([i])) * rotate(two, torch.tensor([j]))).sum().item()
    print(f"q at {i}, k at {j}: {score:.3f}")  # the distance alone counts

k = torch.arange(24.0).reshape(3, 2, 4) / 8  # 3 tokens, 2 KV heads, D 4
v = torch.arange(12.0).reshape(3, 2, 2)
o = attend(torch.ones(3, 4, 4), k, v, sm_scale=0.5)
print("o", list(o.shape), "by token, head 0:", *(f"{x:.3f}" for x in o[:, 0, 0].tolist()))
