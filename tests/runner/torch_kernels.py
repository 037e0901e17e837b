"""What the project's own host code and kernels give: run with PyTorch and with the page's stand-in alike."""

import importlib
import pkgutil
from functools import partial

import torch

import kernels
from scripts import diagnose, mistakes, mistakes_softmax, mutant_problems, part_checks
from scripts.drill_cases import parts_of
from scripts.traces import l0_shapes, online_softmax
from tests.helpers.cases import STORAGES, make_case
from tests.helpers.decoders import DECODERS
from tests.helpers.oracle import plain_attention, run_poisoned
from tests.runner.torch_run import encode

FUNCTIONS = {
    "online_softmax": kernels.online_softmax,
    "l2_paged_decode": kernels.paged_decode,
    "l3_split_kv_decode": kernels.split_kv_decode,
}
MISTAKES = {
    "online_softmax": mistakes_softmax.SOFTMAX_MISTAKES,
    "l2_paged_decode": mistakes.L2_MISTAKES,
    "l3_split_kv_decode": mistakes.L3_MISTAKES,
}


def inputs() -> dict:
    """The inputs of every problem, and of caches laid out in every way: nothing of them is computed."""
    cases = [make_case([20, 0, 5], storage=s, strided=True, kv_layout="HND") for s in STORAGES]
    found = {f"layout {case}": [*case.args, case.used] for case in cases}
    for lesson in FUNCTIONS:
        for problem in mutant_problems.problems_of(lesson):
            case = getattr(problem, "case", None)
            tensors = [problem.scores, problem.values] if case is None else [*case.args, case.used]
            found[f"inputs of {lesson}: {problem}"] = tensors
    return found


def references() -> dict:
    """Every reference, right and wrong, and what the judge and the diagnosis compute beside them."""
    found = {}
    for lesson in FUNCTIONS:
        for problem in mutant_problems.problems_of(lesson):
            o, lse = problem.expected()
            result = o.to(problem.dtype), lse.float()
            problem.judge(*result)
            wrong = {name: [*outputs(problem)] for name, (outputs, _) in MISTAKES[lesson].items()}
            plain = plain_attention(problem.case) if hasattr(problem, "case") else None
            found[f"references of {lesson}: {problem}"] = [
                o, lse, problem.largest_score(), wrong, plain,
                {name: diagnose.matches(problem, result, w) for name, ws in wrong.items() for w in ws},
            ]  # fmt: skip
    return found


def results() -> dict:
    """Kernels: each lesson on its first problem, each decoder, poisoned, in fp32 or in fp16."""
    found = {}
    for lesson, function in FUNCTIONS.items():
        problem = mutant_problems.problems_of(lesson)[0]
        found[f"result of {lesson}"] = problem.run(function)
    for name, decode in DECODERS.items():
        dtype = torch.float16 if name in ("packed", "split") else torch.float32
        case = make_case([20], dtype=dtype, storage="padded_v", strided=True, num_kv_heads=1)
        found[f"result of {name}, {dtype}"] = run_poisoned(decode, case)
    return found


def drill_cases() -> dict:
    """All that the drills' cases of L0 and L1 observe of the solutions."""
    found = {}
    for lesson in ("l0_shapes", "l1_paged_cache"):
        for path, part in parts_of(lesson).items():
            for case in part.cases:
                seen = [
                    (what, vars(value) if isinstance(value, part_checks.Raised) else value)
                    for what, value in part_checks.observe(case)
                ]
                found[f"case {path}: {case.__name__}"] = seen
    return found


def refusals() -> list:
    """What the launchers say to wrong arguments: type and text of the exception."""
    case = make_case([20], num_kv_heads=1)
    q, k, v, table, lens = case.args
    meta = partial(torch.empty, device="meta")
    bad = [
        (q[0], k, v, table, lens), (q.double(), k, v, table, lens), (q, k.half(), v, table, lens),
        (q, k, v[:, :8], table, lens), (q, k, v, table.long(), lens), (q, k, v, table, lens.float()),
        (q, k, v, table[:0], lens), (q, k, v, table, lens + 100), (q, k, v, table - 5, lens),
        (q.bfloat16(), k.bfloat16(), v.bfloat16(), table, lens), (q, k[..., ::2], v, table, lens),
        (q[..., :7], k, v, table, lens), ([1.0], k, v, table, lens), (meta(*q.shape), k, v, table, lens),
    ]  # fmt: skip
    found = []
    for arguments in bad:
        for decode in (kernels.paged_decode, kernels.fast_decode):
            try:
                decode(*arguments)
                found.append("nothing")
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
    return found


def imported() -> list[str]:
    """Every module of `kernels`; ops as well, whose schemas nobody reads here."""
    names = sorted(f"kernels.{module.name}" for module in pkgutil.iter_modules(kernels.__path__))
    return [importlib.import_module(name).__name__ for name in names]


def observations() -> dict:
    """All of it, as JSON."""
    found = inputs() | references() | results() | drill_cases()
    found |= {"trace of l0_shapes": l0_shapes.record(), "trace of online_softmax": online_softmax.record()}
    found |= {"refusals": refusals(), "imported": imported()}
    return {name: encode(value) for name, value in found.items()}
