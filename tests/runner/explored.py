"""Explorers asked for many figures at once, in the page's Python and with PyTorch."""

import json
import os
import random
import subprocess
import sys
from functools import cache

from scripts.explorers import fields
from scripts.generated import ROOT
from tests.runner.helpers import in_page

LANGS = ("zh", "en")
GPUS = {"NVIDIA H200": 132, "NVIDIA GeForce RTX 5090": 170}
PROGRAM = """
import importlib, json
from scripts.explorers import fields
from scripts.runner.explore import explore
from scripts.ties import ties_allowed
result = []
for name, values, lang in json.loads({asked!r}):
    drawn = explore(name, values, lang)
    module = importlib.import_module("scripts.explorers." + name)
    with ties_allowed():
        data = None if drawn["error"] else module.trace(fields.parse(name, values))
    result.append([drawn, data])
"""


def drawn(asked: list[tuple[str, dict, str]]) -> list[tuple[dict, dict]]:
    """(what explore gives, what it was drawn from) for each (name, values, lang), as the page has it."""
    return in_page(PROGRAM.format(asked=json.dumps(asked)))


def with_torch(program: str) -> list:
    """The `result` of a program, by PyTorch and the real interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport json\nprint(json.dumps(result))"],
        cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def random_cases() -> list[tuple[str, dict, str]]:
    """Entries all over their limits, from a fixed seed."""
    rng = random.Random(6)
    cases = []
    for _ in range(14):
        page_size = rng.choice([16, 32, 64, 128])
        longest = min(16384, 192 * page_size)
        lens = [
            rng.choice([0, 1, page_size, longest, rng.randint(0, longest)]) for _ in range(rng.randint(1, 4))
        ]
        cases.append(("ranges", {"seq_lens": lens, "page_size": page_size, "num_splits": rng.randint(1, 8)}))
        n = rng.randint(1, 6)
        numbers = [[round(rng.uniform(-99, 99), rng.randint(0, 2)) for _ in range(n)] for _ in range(2)]
        cases.append(("merge", {"scores": numbers[0], "values": numbers[1], "cut": rng.randint(0, n)}))
        prompts = [rng.randint(0, 200) for _ in range(rng.randint(1, 6))]
        pool = {"num_pages": rng.randint(1, 48), "page_size": rng.choice([1, 7, 16, 33, 256])}
        cases.append(("pool", {"prompts": prompts, "steps": rng.randint(0, 120), **pool}))
        shape = {
            "batch_size": rng.randint(1, 12),
            "num_kv_heads": rng.randint(1, 16),
            "ctx": rng.randint(1, 131072),
        }
        splits = rng.choice(["", rng.randint(1, 60)])
        cases.append(("sms", {"gpu": rng.choice([*GPUS]), "num_splits": splits, **shape}))
        requests = [f"{rng.randint(1, 300)}+{rng.randint(1, 60)}" for _ in range(rng.randint(8, 40))]
        cases.append(("waste", {"trace": "own", "requests": requests, "seats": rng.randint(1, 8),
                                "factor": rng.choice([1.05, 1.5, 4]), "page_size": rng.choice([1, 16, 100]),
                                "max_len": rng.choice([360, 1000])}))  # fmt: skip
    return [(name, {k: fields.text_of(v) for k, v in values.items()}, LANGS[i % 2])
            for i, (name, values) in enumerate(cases)]  # fmt: skip


@cache
def random_results() -> list[tuple[dict, dict, dict]]:
    """(entries as read, what explore gives, what it was drawn from)."""
    cases = random_cases()
    return [(case[0], answer, data) for case, (answer, data) in zip(cases, drawn(cases), strict=True)]
