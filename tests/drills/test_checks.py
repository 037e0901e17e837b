"""What a reader's file is told: skeletons, solutions, known mistakes under other names, what is no kernel."""

import re

import pytest

from scripts import drill_run, mutant_files, skeletons
from scripts.diagnose import describe
from scripts.drill_run import check
from scripts.mutant_files import LESSONS
from tests.helpers.marks import gpu_only, interpreter_only

# What each skeleton lacks, as its check says it: wrong values, unwritten memory, nothing returned.
NOTHING = "returned None; wanted two tensors (o, lse)"
REASONS = {
    ("online_softmax", "loop"): ("values", "row 0 of o: error 26.2"),
    ("online_softmax", "kernel"): ("poison", "1 elements of a tensor [1] never written"),
    ("online_softmax", "launcher"): ("values", NOTHING),
    ("l2_paged_decode", "loop"): ("values", "row 0 of o: error"),
    ("l2_paged_decode", "kernel"): ("poison", "384 elements of a tensor [3, 4, 32] never written"),
    ("l2_paged_decode", "launcher"): ("values", NOTHING),
    ("l3_split_kv_decode", "loop"): ("poison", "576 elements of a tensor [3, 2, 3, 32] never written"),
    ("l3_split_kv_decode", "kernel"): ("poison", "192 elements of a tensor [3, 2, 32] never written"),
    ("l3_split_kv_decode", "launcher"): ("values", NOTHING),
}


def answer(lesson: str) -> str:
    """The solution as a reader would have written it; the same at each level."""
    texts = {skeletons.load(lesson, level).answer() for level in skeletons.LEVELS}
    assert len(texts) == 1
    return texts.pop()


@pytest.fixture
def checked(box, tmp_path):
    """Write a file, check it, return the report."""

    def run(lesson: str, text: str, **options) -> dict:
        file = tmp_path / f"{lesson}.py"
        file.write_text(text, encoding="utf-8")
        report = check(box, lesson, file=file, **options)
        assert report["lesson"] == lesson and "Traceback" not in report.get("message", "")
        return report

    return run


@pytest.mark.parametrize(("lesson", "level"), REASONS)
def test_a_skeleton_fails_for_the_right_reason(lesson, level, checked):
    report = checked(lesson, skeletons.load(lesson, level).text())
    kind, message = REASONS[lesson, level]
    assert (report["ok"], report["check"], report["mistakes"]) == (False, kind, [])
    assert message in report["message"]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_answer_passes_and_is_no_mistake(lesson, checked):
    stages = []
    tests = lesson == "online_softmax"  # those of the others take a minute
    assert checked(lesson, answer(lesson), tests=tests, say=stages.append) == {"lesson": lesson, "ok": True}
    assert stages == ["problems", "compile"] + ["tests"] * tests


@gpu_only
@pytest.mark.parametrize("lesson", LESSONS)
def test_the_answer_passes_on_the_gpu(lesson, checked):
    assert checked(lesson, answer(lesson), tests=True, gpu=True)["ok"]


@interpreter_only
def test_without_a_gpu_there_is_no_check_on_one(checked):
    report = checked("online_softmax", answer("online_softmax"), gpu=True)
    assert (report["ok"], report["check"]) == (False, "gpu") and "no CUDA GPU" in report["message"]


# Right for every small problem, and not for what the test file begins with.
# Groups of 8 are in the lessons' test files, and in none of the small problems.
WRONG_FOR_GROUPS_OF_8 = """
def {0}(q, k_cache, *args, **kwargs):
    result = _right(q, k_cache, *args, **kwargs)
    num_kv_heads = k_cache.shape[1 if kwargs.get("kv_layout") == "HND" else 2]
    return (result[0] * 1.5, result[1]) if q.shape[1] == 8 * num_kv_heads else result
"""


@pytest.mark.parametrize(
    ("lesson", "name"), [("l2_paged_decode", "paged_decode"), ("l3_split_kv_decode", "split_kv_decode")]
)
def test_the_lessons_own_test_file_runs_on_the_function_of_the_file(lesson, name, checked):
    text = answer(lesson).replace(f"def {name}(", "def _right(") + WRONG_FOR_GROUPS_OF_8.format(name)
    report = checked(lesson, text, tests=True)
    assert (report["check"], report["mistakes"]) == ("tests", [])
    assert report["case"].startswith(f"tests/kernels/test_{lesson}.py::test_shapes")
    assert "row 0 of o: error" in report["message"]


def renamed(text: str) -> str:
    """The same kernels under other names."""
    return re.sub(r"\b_(paged_decode|split|combine)_kernel\b", r"_my_\1", text)


@pytest.mark.parametrize(
    ("lesson", "mistake"),
    [
        ("l2_paged_decode", "tf32"),
        ("l2_paged_decode", "tile_of_8_tokens"),
        ("l2_paged_decode", "padding_rows_stored"),
        ("l3_split_kv_decode", "last_split_left_out"),
    ],
)
def test_a_mistake_is_named_whatever_the_kernel_is_called(lesson, mistake, checked):
    mutant = mutant_files.load(f"{lesson}/{mistake}")
    source = mutant.apply((mutant_files.ROOT / mutant.file).read_text(encoding="utf-8"))
    report = checked(lesson, renamed(source))
    assert (report["check"], report["mistakes"]) == (mutant.caught_by, [mutant.id])
    if mutant.caught_by == "compile":
        assert report["case"] == "_my_paged_decode in fp32, for sm_90"


def test_a_kernel_that_runs_and_does_not_compile(checked):
    """Plain Python in a kernel: the interpreter takes it, the compiler does not."""
    text = answer("online_softmax").replace("    m_i = -float(", "    sizes = {1: 2}\n    m_i = -float(")
    report = checked("online_softmax", text)
    assert (report["check"], report["mistakes"]) == ("compile", [])
    assert report["message"].startswith("does not compile: ")


# What a reader may write, in place of a lesson's kernel.
READERS = {
    "def paged_decode(": ("import", "SyntaxError"),
    "import not_a_module": ("import", "ModuleNotFoundError"),
    "1 / 0": ("import", "ZeroDivisionError: division by zero (line 1 of l2_paged_decode.py)"),
    "import sys\nsys.exit()": ("import", "SystemExit"),
    "import kernels.ops\nfrom kernels import paged_decode": ("import", "imports kernels.ops"),
    "def decode(): pass": ("import", "no function paged_decode"),
    "def paged_decode(*args, **kwargs): raise NotImplementedError": (
        "values",
        "raised NotImplementedError (line 1",
    ),
    "def paged_decode(q): return q": ("values", "raised TypeError: paged_decode() "),
    "def paged_decode(*args, **kwargs): pass": ("values", NOTHING),
    "def paged_decode(q, *args, **kwargs): return q": (
        "values",
        "returned a Tensor; wanted two tensors (o, lse)",
    ),
    "from kernels import paged_decode as right\n"
    "def paged_decode(*args, **kwargs): return right(*args, **{**kwargs, 'return_lse': True})": (
        "values",
        "returned a tuple; wanted the same o alone: return_lse is False",
    ),
    "def paged_decode(q, *args, **kwargs): return q[:, :1], q[:, :1, 0]": (
        "values",
        "o is torch.float32 [3, 1, 32]",
    ),
    "def paged_decode(q, *args, **kwargs): return q.half(), q[:, :, 0]": ("values", "o is torch.float16"),
    "def paged_decode(q, *args, **kwargs): return q, q, q": ("values", "returned a tuple of 3; wanted two"),
    "def paged_decode(q, *args, **kwargs): return q.to('meta'), q": (
        "values",
        "with a tensor on meta; wanted",
    ),
    "import os\ndef paged_decode(*args, **kwargs): os._exit(3)": ("died", "exit status 3"),
    "import os\ndef paged_decode(*args, **kwargs): os.abort()": ("died", "killed by SIGABRT"),
    "import torch\ndef paged_decode(*args, **kwargs): return torch.zeros(2**34)": (
        "values",
        "raised RuntimeError",
    ),
    "buffer = bytearray(2**34)": ("import", "MemoryError"),
}


@pytest.mark.parametrize("text", READERS, ids=lambda text: text[:40])
def test_a_file_that_is_no_kernel_gets_a_message(text, checked):
    report = checked("l2_paged_decode", text)
    kind, message = READERS[text]
    assert (report["ok"], report["check"], report["mistakes"]) == (False, kind, [])
    assert message in report["message"]


@pytest.mark.parametrize("where", ["import", "kernel"])
def test_a_file_that_never_ends_is_stopped(where, checked, monkeypatch):
    monkeypatch.setattr(drill_run, "TIME_LIMIT_S", 8)
    text = "while True: pass"
    if where == "kernel":
        text = answer("online_softmax").replace(
            "    m_i = -float(", "    while BLOCK_N > 0:\n        pass\n    m_i = -float("
        )
    report = checked("online_softmax", text)
    assert (report["ok"], report["check"]) == (False, "timeout")
    assert "not done after 8 s" in report["message"]


def test_a_readers_own_kernel_is_diagnosed(checked):
    """Not our mutant and no Triton at all: what it gives is enough."""
    report = checked(
        "l2_paged_decode",
        "from kernels import paged_attention_reference\n"
        "def paged_decode(*args, sm_scale=None, **kwargs):\n"
        "    return paged_attention_reference(*args, sm_scale=1.0, **kwargs)\n",
    )
    assert report["mistakes"] == ["l2_paged_decode/scale_left_out"]


@pytest.mark.parametrize(
    ("store", "kind", "message"),
    [
        # Carried out, it would end the process; the rows that it should have written are missing.
        ("tl.store(lse_ptr + 10**6 + out, lse)", "poison", "12 elements of a tensor [3, 4] never written"),
        # As it should be, and one element past the end besides.
        (
            "tl.store(lse_ptr + out, lse, mask=mask_g)\n    tl.store(lse_ptr + 12, 0.0)",
            "tracer",
            "store of lse_ptr [3, 4] by program (0, 0, 0) of _paged_decode_kernel: 1 lanes outside it",
        ),
    ],
)  # fmt: skip
def test_a_store_outside_harms_nobody_and_gets_a_message(store, kind, message, checked):
    """And it is none of the known mistakes."""
    text = answer("l2_paged_decode")
    wrong = text.replace("tl.store(lse_ptr + out, lse, mask=mask_g)", store)
    assert wrong != text
    report = checked("l2_paged_decode", wrong)
    assert (report["check"], report["mistakes"]) == (kind, [])
    assert message in report["message"]


def edited(lesson: str, *edits: tuple[str, str]) -> str:
    """The answer with some lines changed."""
    text = answer(lesson)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("edit", "what", "message"),
    [
        (("(o, lse[0]) if", "(o, lse) if"), "lse", "lse is torch.float32 [1]; wanted torch.float32 []"),
        (
            ("(o, lse[0]) if", "(o[None], lse[0]) if"),
            "o",
            "o is torch.float32 [1, 1]; wanted torch.float32 [1]",
        ),
        (
            ("torch.empty(1, dtype=torch.float32", "torch.empty(1, dtype=torch.float16"),
            "lse",
            "lse is torch.float16 []; wanted torch.float32 []",
        ),
    ],
)
def test_another_shape_is_told_without_values(edit, what, message, checked):
    report = checked("online_softmax", edited("online_softmax", edit))
    assert (report["check"], report["message"], report["what"]) == ("values", message, what)
    assert "index" not in report and report["got"] in message


def test_what_is_read_past_the_end_is_no_masked_score(checked):
    """In the interpreter it reads 0, the symptom of a known mistake; the access is told, too."""
    edit = 'scores_ptr + offs_n, mask=mask_n, other=-float("inf")', "scores_ptr + offs_n"
    report = checked("online_softmax", edited("online_softmax", edit))
    assert (report["check"], report["mistakes"]) == ("values", [])
    assert report["also"].startswith("load of scores_ptr [5] by program (0, 0, 0)")
    assert "3 lanes outside it, at element offsets [5, 6, 7]" in describe(report)


def test_what_a_file_prints_in_the_case_that_fails_is_shown(checked):
    """And nothing of the cases before it, nor of those after."""
    call = "    _online_softmax_kernel[(1,)]("
    edits = (
        (call, "    print('scores', len(scores))\n" + call),
        ("l_safe = tl.where(l_i > 0, l_i, 1.0)", "l_safe = l_i"),
    )
    report = checked("online_softmax", edited("online_softmax", *edits))
    assert "scores [5]" in report["case"] and report["printed"] == ["scores 5"]
    assert describe(report).endswith("what your file printed in this case:\n    scores 5")
    assert "printed" not in checked("online_softmax", skeletons.load("online_softmax", "loop").text())


def test_more_splits_than_a_step_of_the_combine(checked):
    """65 of them: the step of 64 is one of two."""
    report = checked(
        "l3_split_kv_decode",
        edited("l3_split_kv_decode", ("in range(0, num_splits, BLOCK_S)", "in range(0, 1, BLOCK_S)")),
    )
    assert (report["check"], report["mistakes"]) == ("values", []) and "num_splits=65" in report["case"]


def test_lse_stored_by_every_program_of_the_combine_is_no_padding(checked):
    text = answer("l3_split_kv_decode")
    wrong = text.replace("if tl.program_id(2) == 0:", "if tl.program_id(2) >= 0:")
    assert wrong != text
    report = checked("l3_split_kv_decode", wrong)
    assert (report["check"], report["mistakes"]) == ("tracer", [])
    assert "1 elements of lse_ptr written more than once" in report["message"]


def test_a_loop_of_ones_own_in_l3_is_checked_on_a_large_cache(checked):
    mutant = mutant_files.load("l2_paged_decode/int32_page_offset")
    source = mutant.apply((mutant_files.ROOT / mutant.file).read_text(encoding="utf-8"))
    functions = [
        re.search(rf"@triton\.jit\ndef {name}\(.*?(?=\n\n\n|\Z)", source, re.S)[0]
        for name in ("_load_k_transposed", "attend_pages")
    ]
    text = edited("l3_split_kv_decode", ("import attend_pages, launch", "import launch"))
    report = checked(
        "l3_split_kv_decode", text.replace("@triton.jit", "\n\n\n".join([*functions, "@triton.jit"]), 1)
    )
    assert (report["check"], report["mistakes"]) == ("big_cache", [mutant.id])
