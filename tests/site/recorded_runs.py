"""Runs that the page's own Python recorded, and pages that show them: fixtures for tests of both views."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page as Tab

from tests.runner.helpers import in_page

Open = Callable[..., Tab]

# What the reader's editor holds: the lesson's file, then a program. The last sequence is empty.
RECORD = """
from pathlib import Path
from scripts.runner import session

PROGRAM = '''
import torch
from tests.runner.stepped import numbers
def tensor(shape, step):
    return torch.tensor(numbers(shape, step).tolist())
table = torch.tensor([[7, 2, 9, -1], [4, 1, -1, -1], [-1, -1, -1, -1]], dtype=torch.int32)
lens = torch.tensor([40, 20, 0], dtype=torch.int32)
case = tensor((3, 8, 32), 11), tensor((10, 16, 2, 32), 37), tensor((10, 16, 2, 32), 53), table, lens
'''
def run(lesson, call, kernel=None, program=None):
    steps = kernel and {"kernel": kernel, "program": program}
    return session.run(Path(f"kernels/{lesson}.py").read_text() + PROGRAM + call, steps=steps)

L2, L3 = "l2_paged_decode", "l3_split_kv_decode"
result = {
    "l2": run(L2, "naive_paged_decode(*case); paged_decode(*case)", "_paged_decode_kernel", [0, 1, 0]),
    "l3": run(L3, "split_kv_decode(*case, num_splits=2)", "_split_kernel", [0, 1, 0]),
    "plain": run(L2, "paged_decode(*case)"),
    "missing": run(L2, "paged_decode(*case)", "_paged_decode_kernel", [0, 5, 0]),
    "nothing": run(L2, "print('no launch')"),
}
"""
MOUNT = """async ([result, lang, root]) => {
  const { mountPageMap } = await import(`${root}javascripts/runner/page_map.mjs`)
  const { mountStepper } = await import(`${root}javascripts/runner/stepper.mjs`)
  const host = document.createElement("div")
  host.id = "views"
  document.querySelector(".md-content__inner").replaceChildren(host)
  Object.assign(globalThis, { lines: [], wants: [] })
  mountPageMap(host, result.page_map, { lang, onProgram: want => wants.push(want) })
  mountStepper(host, result, { lang, onLine: line => lines.push(line), onWant: want => wants.push(want) })
  await new Promise(done => { document.querySelector("link[href*=runner_views]").onload = done })
}"""


@pytest.fixture(scope="module")
def runs() -> dict[str, dict]:
    runs = in_page(RECORD)
    assert all(run["ok"] for run in runs.values()), [run["error"] for run in runs.values()]
    return runs


@pytest.fixture
def views(open_page: Open, runs: dict[str, dict], address: str) -> Callable[..., Tab]:
    """views(name of the run, lang, **context options): a page of the site, with both views of the run."""

    def views(name: str, lang: str = "en", dark: bool = False, **options: object) -> Tab:
        prefix = "" if lang == "zh" else "en/"
        tab = open_page(f"{prefix}glossary/", **options)
        if dark:
            tab.evaluate("document.body.dataset.mdColorScheme = 'slate'")
        tab.evaluate(MOUNT, [runs[name], lang, address + prefix])
        return tab

    return views
