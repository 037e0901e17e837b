"""The page's torch against PyTorch, program by program: values, dtypes, shapes, strides, errors, texts."""

from itertools import product
from pathlib import Path

import pytest

from tests.runner.torch_parity import BIT_IDENTICAL, difference, real, standin

PROGRAMS = Path(__file__).parent / "torch_programs"
FILES = sorted(path.stem for path in PROGRAMS.glob("*.txt"))
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
SEEDS = (0, 1, 2024, 2**31 + 5, 2**40 + 7)
SIZES = (1, 2, 5, 15, 16, 17, 31, 32, 40, 100, 1003)


def promotions() -> list[str]:
    """The dtype of a sum for each pair of dtypes, as tensors with dims, without, and as Python numbers."""
    made = [f"torch.ones({shape}, dtype=torch.{name})" for name in DTYPES for shape in ("2", "()")]
    numbers = ["True", "2", "2.5"]
    pairs = [*product(made, made), *product(made, numbers), *product(numbers, made)]
    sums = [f"str(({a} + {b}).dtype)" for a, b in pairs]
    quotients = [f"str(({a} / {b}).dtype)" for a, b in product(made, [*made[::2], *numbers])]
    compared = [f"{a} < {b}" for a, b in product(made[::2], [*made[1::2], *numbers])]
    return [*sums, *quotients, *compared]


def draws() -> list[str]:
    """Random numbers of every kind, size and seed; also in a row, where one draw leaves something over."""
    found = []
    for seed in SEEDS:
        start = f"torch.manual_seed({seed}); result = "
        own = f"g = torch.Generator(device='cpu').manual_seed({seed}); result = "
        for name, dtype, size in product(
            ("rand", "randn"), ("float16", "bfloat16", "float32", "float64"), SIZES
        ):
            found.append(f"{own}torch.{name}({size}, dtype=torch.{dtype}, generator=g)")
        found.append(f"{start}torch.randn(3), torch.randn(2), torch.rand(3), torch.randn(20), torch.randn(1)")
        found.append(f"{start}torch.randn(3); torch.manual_seed(1); result = torch.randn(3)")
        for high in (1, 2, 10, 1000, 2**28 - 1, 2**28, 2**31, 2**32, 2**33, 2**40):
            found.append(f"{start}torch.randint({high}, (7,)), torch.randint(-3, {high}, (2, 2))")
        found += [f"{start}torch.randperm({n}), torch.rand(2)" for n in (0, 1, 2, 7, 100, 1000)]
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, list[tuple[str, dict, dict]]]:
    """By file: (program, PyTorch's result, the stand-in's); one child runs them all."""
    sets = {name: (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in FILES}
    sets |= {"promotion": promotions(), "draws": draws()}
    programs = [program for lines in sets.values() for program in lines]
    found = iter(
        zip(programs, real(programs), standin(programs, tmp_path_factory.mktemp("torch")), strict=True)
    )
    return {name: [next(found) for _ in lines] for name, lines in sets.items()}


@pytest.mark.parametrize("name", [*FILES, "promotion", "draws"])
def test_same_as_pytorch(answers, name):
    exact = name in ("random", "draws") and BIT_IDENTICAL
    bad = [
        f"{program}\n    {what}"
        for program, wanted, got in answers[name]
        if (what := difference(wanted, got, exact))
    ]
    assert not bad, f"{len(bad)} of {len(answers[name])} programs differ:\n" + "\n".join(bad)


def test_almost_everything_is_bit_identical(answers):
    """Apart from exponentials, logarithms and the order of long sums."""
    total = [difference(wanted, got, exact=True) for rows in answers.values() for _, wanted, got in rows]
    assert sum(what is None for what in total) >= 0.97 * len(total)


def test_the_comparison_can_fail():
    wanted, other = real(["a", "a + 1e-4"])
    assert "elements differ" in difference(wanted, other)
    assert "stride" in difference(*real(["a", "a.T.contiguous().T"]))
    assert "tensor is" in difference(*real(["a", "a.double()"]))
    assert difference(*real(["a @ a", "a + 1"])) and difference(*real(["repr(a)", "repr(b)"]))
