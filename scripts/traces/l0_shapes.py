"""The l0_shapes lesson: the token of the worked example, what the kinds of attention store, both readings."""

import torch

from kernels.l0_mla import latent_spec, selection
from kernels.l0_shapes import grouped_attention, grouped_spec, kv_head_of, project

# Dm 3, 4 query heads, 2 KV heads, D 2: small enough to do by hand.
X = [1, 2, -1]
W_Q = [[1, 0, 2, 1, 0, 1, 2, 0], [0, 1, 0, 1, 1, 0, 0, 2], [1, 0, 1, 0, 0, 1, 0, 1]]
W_K = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]
W_V = [[2, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, -1]]
SIZES = (4, 2, 2)  # Hq, Hkv, D


def token() -> dict:
    """The projections of one token at position 0, flat and as heads."""
    attention = grouped_attention(3, *SIZES, torch.float64)
    weights = {
        name: torch.tensor(w, dtype=torch.float64) for name, w in (("w_q", W_Q), ("w_k", W_K), ("w_v", W_V))
    }
    x = torch.tensor([X], dtype=torch.float64)
    q, stored = attention.project(x, torch.zeros(1), weights)
    heads = {"q": q[0], "k": stored["k"][0], "v": stored["v"][0]}
    return {
        "x": X,
        "flat": {
            name: project(x, w)[0].int().tolist() for name, w in zip("qkv", weights.values(), strict=True)
        },
        "heads": {name: rows.int().tolist() for name, rows in heads.items()},
        "kv_head": [kv_head_of(h, SIZES[0] // SIZES[1]) for h in range(SIZES[0])],
        "scores": [
            int(heads["q"][h] @ heads["k"][kv_head_of(h, SIZES[0] // SIZES[1])]) for h in range(SIZES[0])
        ],
    }


def stored() -> list[dict]:
    """What a token leaves behind: 32 query heads of 128, and MLA as DeepSeek-V3 has it."""
    specs = [grouped_spec(32, n, 128) for n in (32, 8, 1)] + [latent_spec(32, 512, 64, 128, 128)]
    return [
        {
            "name": spec.name, "elements": spec.elements_per_token, "bytes": spec.bytes_per_token,
            "entries": {name: list(entry[:2]) for name, entry in spec.entries.items()},
        }
        for spec in specs
    ]  # fmt: skip


def readings() -> dict:
    """Shapes of both readings of one cached token of DeepSeek-V3, from tensors without data."""
    num_heads, d_c, d_rope, d_nope, d_v = 128, 512, 64, 128, 128
    spec = latent_spec(num_heads, d_c, d_rope, d_nope, d_v)
    weights = {
        "w_uk": torch.empty(d_c, num_heads * d_nope, device="meta"),
        "w_uv": torch.empty(d_c, num_heads * d_v, device="meta"),
    }
    cached = {"latent": torch.empty(1, d_c + d_rope, device="meta")}
    q = torch.empty(num_heads, d_nope + d_rope, device="meta")
    k, v = spec.expand(cached, weights)
    folded = spec.fold(q, weights)
    k_view, v_view = spec.view(cached, weights)
    mixed = torch.empty(num_heads, v_view.shape[-1], device="meta")
    shapes = {
        "latent": cached["latent"], "q": q, "k": k, "v": v, "folded": folded, "k_view": k_view,
        "v_view": v_view, "mixed": mixed, "o": spec.unfold(mixed, weights),
    }  # fmt: skip
    return {"d_c": d_c, "d_rope": d_rope, **{name: list(t.shape) for name, t in shapes.items()}}


def record() -> dict:
    """All of it."""
    matrices = {
        name: selection(*SIZES, first).int().tolist()
        for name, first in (("w_uk", 0), ("w_uv", SIZES[1] * SIZES[2]))
    }
    return {"token": token(), "stored": stored(), "readings": readings(), "selection": matrices}
