"""How wrong a result may be: at most twice as wrong as plain PyTorch in its dtype, float64 being right."""

import torch

from kernels import paged_attention_reference
from tests.helpers.cases import Case
from tests.helpers.poison import poisoned

# lse is fp32 whatever the dtype: a few roundings of a number as large as the largest score.
_LSE_ULPS = 8


def ulp(magnitude: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance between neighbours of this dtype at a magnitude >= 0, in float64."""
    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(magnitude.double().clamp(min=info.tiny)))
    return info.eps * torch.exp2(exponent)


def assert_twice_as_good(actual, baselines, reference, what: str = "o") -> None:
    """Row by row of the first dim: max error of `actual` <= 2 x the worst of `baselines` + 1 ulp, all against
    float64. The ulp, of the row's largest element, is for rows that a baseline gets right by luck."""
    assert actual.dtype == baselines[0].dtype and actual.shape == reference.shape, (
        f"{what} is {actual.dtype} {list(actual.shape)}; wanted {baselines[0].dtype} {list(reference.shape)}"
    )
    if actual.numel() == 0:
        return
    exact = reference.reshape(len(reference), -1)
    error, *baseline_errors = (
        (t.double().reshape(exact.shape) - exact).abs().amax(1) for t in (actual, *baselines)
    )
    baseline_error = torch.stack(baseline_errors).amax(0)
    allowed = 2 * baseline_error + ulp(exact.abs().amax(1), actual.dtype)
    # Written so that a NaN fails.
    bad = (~(error <= allowed)).nonzero().flatten().tolist()
    assert not bad, "; ".join(
        f"row {b} of {what}: error {error[b]:.3g}, plain PyTorch's is {baseline_error[b]:.3g}" for b in bad
    )


def orders(n: int, count: int = 4) -> list[torch.Tensor]:
    """A few orders in which plain PyTorch might add n terms: one order alone may be right by luck."""
    rng = torch.Generator().manual_seed(0)
    return [torch.randperm(n, generator=rng) for _ in range(count)]


def assert_lse_close(actual, reference, largest_score) -> None:
    """lse [B, Hq] fp32 within a few roundings; largest_score [B]: the largest |score| of each sequence."""
    assert actual.dtype == torch.float32 and actual.shape == reference.shape, (
        f"lse is {actual.dtype} {list(actual.shape)}; wanted float32 {list(reference.shape)}"
    )
    empty = torch.isneginf(reference)
    assert torch.equal(torch.isneginf(actual), empty), "lse is -inf elsewhere than for empty sequences"
    allowed = _LSE_ULPS * ulp(largest_score.clamp(min=1.0), torch.float32)
    error = torch.where(empty, 0.0, (actual.double() - reference).abs())
    bad = (~(error <= allowed[:, None])).nonzero().tolist()
    assert not bad, "; ".join(
        f"lse{[b, h]} is {actual[b, h]:.8f}; wanted {reference[b, h]:.8f}" for b, h in bad
    )


def tokens_of(case: Case, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequence b's keys and values [seq_len, Hq, D], one copy a query head."""
    n = case.lens[b]
    pages = case.block_table[b, : -(-n // case.page_size)].long()
    group_size = case.q.shape[1] // case.nhd_caches[0].shape[2]
    return tuple(c[pages].flatten(0, 1)[:n].repeat_interleave(group_size, 1) for c in case.nhd_caches)


def _product(a: torch.Tensor, b: torch.Tensor, rng: torch.Generator | None) -> torch.Tensor:
    """a [H, 1, N] @ b [H, N, M] -> [H, 1, M] by torch's matmul; with rng, by adding one product after the
    other, in the order that rng draws."""
    if rng is None:
        return a @ b
    total = torch.zeros(len(a), 1, b.shape[2], dtype=a.dtype, device=a.device)
    for i in torch.randperm(b.shape[1], generator=rng).tolist():
        total = torch.addcmul(total, a[:, :, i : i + 1], b[:, i : i + 1])
    return total


def plain_attention(case: Case, rng: torch.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(o [B, Hq, D] in the case's dtype, the largest |score| of each sequence [B]).

    Products in the dtype, softmax in fp32, weights cast to the dtype: what one writes without a kernel.
    """
    sm_scale = case.q.shape[-1] ** -0.5 if case.kwargs["sm_scale"] is None else case.kwargs["sm_scale"]
    o = torch.zeros(case.q.shape, dtype=case.q.dtype, device=case.q.device)
    largest = torch.zeros(len(case.q), dtype=torch.float64, device=case.q.device)
    for b, n in enumerate(case.lens):
        if n:
            k, v = (t.transpose(0, 1) for t in tokens_of(case, b))  # [Hq, n, D]
            scores = _product(case.q[b, :, None], k.transpose(1, 2), rng).float() * sm_scale  # [Hq, 1, n]
            o[b] = _product(torch.softmax(scores, -1).to(v.dtype), v, rng)[:, 0]
            largest[b] = scores.abs().max()
    return o, largest


def reference(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) in float64, unrounded."""
    q, k_cache, v_cache = (t.double() for t in case.args[:3])
    return paged_attention_reference(
        q, k_cache, v_cache, case.block_table, case.seq_lens, **case.kwargs, return_lse=True
    )


def run_poisoned(decode, case: Case, **kwargs) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) of a decoder whose outputs and scratch started as NaN between guards."""
    with poisoned():
        return decode(*case.args, **case.kwargs, return_lse=True, **kwargs)


def assert_right(decode, case: Case, **kwargs) -> tuple[torch.Tensor, torch.Tensor]:
    """Run a decoder poisoned and hold its o and lse to the reference; returns them."""
    o, lse = run_poisoned(decode, case, **kwargs)
    expected_o, expected_lse = reference(case)
    baseline, largest_score = plain_attention(case)
    baselines = [baseline]
    if case.q.dtype == torch.float32:
        # fp32 errors are those of the additions alone, so one order of them says little: take a few.
        rng = torch.Generator().manual_seed(0)
        baselines += [plain_attention(case, rng)[0] for _ in range(4)]
    assert o.device == lse.device == case.q.device
    assert_twice_as_good(o, baselines, expected_o)
    assert_lse_close(lse, expected_lse, largest_score)
    empty = case.seq_lens == 0
    assert torch.equal(o[empty], torch.zeros_like(o[empty])), "o of an empty sequence is not 0"
    return o, lse
