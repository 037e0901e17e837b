"""The program of each page's "run it" section prints what the page says that it prints."""

import contextlib
import io
import re

import pytest

from tests.helpers.lesson import sections
from tests.helpers.marks import interpreter_only

PROGRAM = re.compile(r"^```python\n(.*?)^```$.*?^```console\n\$[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@interpreter_only  # tensors on the CPU, as the pages' command runs them
@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(
    ("lesson", "anchor"), [("l2_paged_decode", "run"), ("l3_split_kv_decode", "run-it")], ids=str
)
def test_the_output_on_the_page(lesson, anchor, lang):
    program, output = PROGRAM.search(sections(lang, lesson)[anchor]).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, f"{lesson}.md", "exec"), {})
    assert printed.getvalue() == output
