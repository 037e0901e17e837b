"""The small problems on which a kernel of a lesson is checked and its mistakes are told apart.

A library for scripts/mutant_checks.py and scripts/diagnose.py. The inputs, and what is right, are those of
the tests (tests/helpers).
"""

from dataclasses import dataclass, field, fields, replace

import torch

from tests.helpers.cases import PLAIN, Case, Shape, make_case
from tests.helpers.mode import DEVICE
from tests.helpers.oracle import (
    assert_lse_close,
    assert_right,
    assert_twice_as_good,
    orders,
    plain_attention,
    reference,
)

Result = tuple[torch.Tensor, torch.Tensor]  # o, lse


@dataclass(frozen=True)
class PagedProblem:
    """One call of a paged decode; num_splits: None for kernels that do not split."""

    case: Case
    num_splits: int | None = None

    @property
    def dtype(self) -> torch.dtype:
        return self.case.q.dtype

    def run(self, decode, return_lse: bool = True) -> Result:
        """(o, lse) of the function under check, or o."""
        splits = {} if self.num_splits is None else {"num_splits": self.num_splits}
        return decode(*self.case.args, **self.case.kwargs, **splits, return_lse=return_lse)

    def expected(self) -> Result:
        """(o, lse) in float64."""
        return reference(self.case)

    def judge(self, o: torch.Tensor, lse: torch.Tensor) -> None:
        """AssertionError unless the result is as good as the tests ask for."""
        assert_right(lambda *args, **kwargs: (o, lse), self.case)

    def on_cpu(self) -> "PagedProblem":
        """The same, where the wrong references compute."""
        tensors = {f.name: getattr(self.case, f.name) for f in fields(self.case) if f.name != "kwargs"}
        return replace(self, case=replace(self.case, **{name: t.cpu() for name, t in tensors.items()}))

    def largest_score(self) -> float:
        """The largest |score|: what a rounding of lse is relative to."""
        return plain_attention(self.case)[1].max().item()

    def __str__(self) -> str:
        splits = "" if self.num_splits is None else f", num_splits={self.num_splits}"
        return f"{self.case}{splits}"


@dataclass(frozen=True)
class RowProblem:
    """One call of online_softmax: scores [N], values [N, D]."""

    scores: torch.Tensor
    values: torch.Tensor = field(repr=False)
    block_size: int

    @property
    def dtype(self) -> torch.dtype:
        return self.scores.dtype

    def run(self, online_softmax, return_lse: bool = True) -> Result:
        """(o, lse) of the function under check, or o."""
        return online_softmax(self.scores, self.values, block_size=self.block_size, return_lse=return_lse)

    def expected(self) -> Result:
        """(o [D], lse []) in float64; a row without a score above -inf gives 0 and -inf."""
        scores, lse = self.scores.double(), torch.logsumexp(self.scores.double(), 0)
        weights = torch.zeros_like(scores) if torch.isneginf(lse) else torch.exp(scores - lse)
        return weights @ self.values.double(), lse

    def judge(self, o: torch.Tensor, lse: torch.Tensor) -> None:
        """AssertionError unless the result is as good as the tests ask for."""
        exact, exact_lse = self.expected()
        for name, got, dtype, shape in (("o", o, self.dtype, exact.shape), ("lse", lse, torch.float32, ())):
            wanted = f"{name} is {got.dtype} {list(got.shape)}; wanted {dtype} {list(shape)}"
            assert (got.dtype, got.shape) == (dtype, shape), wanted
        plain = [
            (torch.softmax(self.scores[i].float(), 0)[:, None] * self.values[i].float()).sum(0)
            for i in orders(len(self.scores))
        ]
        plain = [torch.nan_to_num(p).to(self.dtype)[None] for p in plain]  # plain softmax of nothing is NaN
        assert_twice_as_good(o[None], plain, exact[None])
        largest = torch.tensor([self.largest_score()], dtype=torch.float64, device=lse.device)
        assert_lse_close(lse.view(1, 1), exact_lse.view(1, 1), largest)

    def on_cpu(self) -> "RowProblem":
        """The same, where the wrong references compute."""
        return replace(self, scores=self.scores.cpu(), values=self.values.cpu())

    def largest_score(self) -> float:
        """The largest finite |score|."""
        finite = self.scores[self.scores.isfinite()].double().abs()
        return finite.max().item() if len(finite) else 0.0

    def __str__(self) -> str:
        shapes = f"scores {list(self.scores.shape)}, values {list(self.values.shape)}"
        first = ", ".join(f"{score:g}" for score in self.scores[:4].tolist())
        return f"{shapes} {self.dtype}, block_size={self.block_size}, scores = [{first}, ...]"


def problems_of(lesson: str) -> list[PagedProblem] | list[RowProblem]:
    """The problems of a lesson, small ones first."""
    if lesson == "online_softmax":
        return _rows()
    if lesson == "l2_paged_decode":
        return [PagedProblem(case) for case in _paged_cases()]
    return _split_problems()


def compiled_problem(lesson: str) -> PagedProblem | RowProblem:
    """A small fp32 call that launches all kernels of a lesson: what is compiled afterwards."""
    if lesson == "online_softmax":
        return _rows()[0]
    case = make_case([37], Shape(4, 16, 16), num_kv_heads=1)
    return PagedProblem(case, 3 if lesson == "l3_split_kv_decode" else None)


def _rows() -> list[RowProblem]:
    rng = torch.Generator().manual_seed(0)
    page = torch.tensor([1.0, 2.0, 3.0, 0.0]), torch.tensor([[10.0], [20.0], [30.0], [40.0]])
    rising = torch.linspace(-2, 3, 21), torch.randn(21, 5, generator=rng)
    inf = torch.inf
    rows = [
        RowProblem(*page, 2),
        RowProblem(torch.tensor([-inf, -inf, 1.0, 2.0]), page[1], 2),
        RowProblem(torch.full((5,), -inf), torch.ones(5, 3), 4),
        RowProblem(torch.empty(0), torch.empty(0, 3), 4),
        RowProblem(*rising, 8),
        RowProblem(rising[0].half(), rising[1].half(), 16),
        *(RowProblem(page[0] + level, page[1], 2) for level in (1e4, -1e4)),
    ]
    return [replace(row, scores=row.scores.to(DEVICE), values=row.values.to(DEVICE)) for row in rows]


def _paged_cases() -> list[Case]:
    """Whole and broken last pages and an empty sequence; unused slots NaN, then finite."""
    other = Shape(3, 16, 16)
    return [
        make_case([37, 0, 16]),
        make_case([37, 0, 16], unused=8.0),
        make_case([20], other, num_kv_heads=3, kv_layout="HND", sm_scale=0.5),
        make_case([17, 5], PLAIN, torch.float16, num_kv_heads=1),
        make_case([37], num_kv_heads=1, sm_scale=1e4),
    ]


def _split_problems() -> list[PagedProblem]:
    """3 splits of 5 pages are all in use, of 4 the last is empty; scores whose exp overflows; 65 splits."""
    lens = [70, 0, 3]
    return [
        PagedProblem(make_case(lens, num_kv_heads=1), 3),
        PagedProblem(make_case(lens, unused=8.0, num_kv_heads=1), 4),
        PagedProblem(make_case([70], num_kv_heads=1), 2),
        PagedProblem(make_case([20], Shape(3, 16, 16), num_kv_heads=3, kv_layout="HND", sm_scale=0.5), 2),
        PagedProblem(make_case([17, 37], PLAIN, torch.float16, num_kv_heads=1), 3),
        PagedProblem(make_case([70], num_kv_heads=1, sm_scale=50.0), 3),
        # One split more than the combine takes in a step, and two programs of it to a row.
        PagedProblem(make_case([1040], Shape(1, 64, 16), num_kv_heads=1), 65),
    ]
