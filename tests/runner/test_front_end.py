"""What the page warns of is what the compiler for sm_90 refuses: each kernel is compiled for it as well."""

import json
import re
from functools import cache

import pytest

from scripts import run_program
from tests.runner.helpers import ROOT, in_page
from tests.runner.real_compiler import verdicts
from tests.runner.refusals import control, different, language
from tests.runner.refusals.case import source

TYPES = {"x": "*fp32", "o": "*fp32", "n": "i32"}
L1 = (ROOT / "snippets/runs/l1_write_kv.py").read_text(encoding="utf-8")
CASES, DIFFERENT = control.CASES | language.CASES, different.CASES
ALL = CASES | DIFFERENT


@cache
def in_the_page() -> dict[str, dict]:
    """The reports of every kernel, by "<case> refused" and "<case> taken"."""
    sources = {
        f"{name} {which}": source(case, getattr(case, which))[0]
        for name, case in ALL.items()
        for which in ("refused", "taken")
    }
    return in_page(
        """
        import json
        from scripts.runner import session
        result = {}
        for name, source in json.loads(sys.argv[2]).items():
            report = session.run(source, trace=False)
            result[name] = {key: report[key] for key in ("ok", "error", "warnings")}
        """,
        arguments=(json.dumps(sources),),
    )


@cache
def by_the_compiler() -> dict[str, str | None]:
    """What the real compiler says of each."""
    return verdicts({
        f"{name}_{which}": {
            "source": source(case, getattr(case, which))[0],
            "kernel": "kernel", "types": TYPES, "constants": {"N": 16},
        }
        for name, case in ALL.items()
        for which in ("refused", "taken")
    })  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_that_the_compiler_refuses_is_warned_of(name):
    case = CASES[name]
    said = by_the_compiler()[f"{name}_refused"]
    assert said, "the compiler takes it"
    report = in_the_page()[f"{name} refused"]
    (warning,) = report["warnings"]
    assert warning["code"] == case.code
    assert warning["line"] == source(case, case.refused)[1]
    if name not in ("while_tile", "choice_by_tile"):  # found when the compiler verifies what it has built
        said = re.sub(r" at 0x[0-9a-f]+", "", said.replace("\\'", "'"))
        assert warning["values"]["said"] in " ".join(said.split())


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_lets_it_pass(name):
    report = in_the_page()[f"{name} refused"]
    if name == "while_tile":  # it would never end
        assert report["error"]["kind"] == "Refused"
    else:
        assert report["ok"], report["error"]


@pytest.mark.parametrize("name", ALL)
def test_the_twin_is_taken_by_both(name):
    assert by_the_compiler()[f"{name}_taken"] is None
    report = in_the_page()[f"{name} taken"]
    assert report["ok"], report["error"]
    assert report["warnings"] == []


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_kernel_that_the_compiler_takes_otherwise_is_warned_of(name):
    case = DIFFERENT[name]
    assert by_the_compiler()[f"{name}_refused"] is None
    (warning,) = in_the_page()[f"{name} refused"]["warnings"]
    assert (warning["code"], warning["line"]) == (case.code, source(case, case.refused)[1])


def test_it_agrees_with_the_compiler_on_the_whole_feature_suite():
    """Every kernel of the suite, with the types that it was launched with, before both."""
    kernels = in_page("""
        import json
        from pathlib import Path
        from scripts.runner import compiling, features, session
        result = {}
        for file in sorted(Path("tests/runner/features").glob("[a-z]*.py")):
            text = file.read_text()
            record = session.begin(file.name, text)
            features.run(text, file.name)
            for function, types, constants in record.kernels:
                plain = all(isinstance(v, int | float | str | None) for v in constants.values())
                if plain and all(isinstance(v, str) for v in types.values()):
                    refused = compiling.refusal(function, types, constants)
                    result[f"{file.stem}_{len(result)}"] = {
                        "source": text, "kernel": function.fn.__name__, "types": types,
                        "constants": constants, "refused": refused and str(refused),
                    }
            session.end(file.name)
    """)
    said = verdicts(kernels)
    wrong = {
        f"{kernel['kernel']}{kernel['types']}": (kernel["refused"], said[name])
        for name, kernel in kernels.items()
        if (kernel["refused"] is None) != (said[name] is None)
    }
    assert wrong == {}
    assert len(kernels) > 100
    assert {kernels[name]["kernel"] for name in said if said[name]} == {"static_assert_kernel"}


def test_every_warning_speaks_both_languages():
    for report in in_the_page().values():
        for warning in report["warnings"]:
            assert warning["texts"]["en"] == warning["message"] != warning["texts"]["zh"]


def test_the_lessons_give_no_warning():
    lessons = ("online_softmax", "l2_paged_decode", "l3_split_kv_decode")
    programs = {lesson: run_program.program(lesson) for lesson in lessons}
    programs["l1_write_kv"] = (ROOT / "kernels/l1_write_kv.py").read_text(encoding="utf-8") + L1
    reports = in_page(
        """
        import json
        from scripts.runner import session
        result = {n: session.run(s, trace=False) for n, s in json.loads(sys.argv[2]).items()}
        """,
        arguments=(json.dumps(programs),),
    )
    for lesson, report in reports.items():
        assert report["ok"], (lesson, report["error"])
        assert report["warnings"] == [], lesson
        assert report["launches"], lesson


def test_options_and_smallest_dots_are_those_of_sm_90():
    from triton import language as tl
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend, min_dot_size

    theirs = CUDABackend(GPUTarget("cuda", 90, 32)).parse_options({})
    ours = in_page("""
        from dataclasses import asdict
        from scripts.runner import sm90
        import triton.language as tl
        block = lambda kind: tl.block_type(kind, [16, 16])
        kinds = tl.int8, tl.float16, tl.float32, tl.float64
        sizes = [sm90.min_dot_size(block(k), block(k)) for k in kinds]
        result = [asdict(sm90.Options()), sizes]
    """)
    for name, value in ours[0].items():
        assert value == (list(v) if isinstance(v := getattr(theirs, name), tuple) else v), name
    real = min_dot_size(GPUTarget("cuda", 90, 32))
    kinds = (tl.int8, tl.float16, tl.float32, tl.float64)
    assert ours[1] == [list(real(tl.block_type(k, [16, 16]), tl.block_type(k, [16, 16]))) for k in kinds]


def test_a_kernel_is_looked_at_again_only_when_it_changed():
    text = source(CASES["break"], CASES["break"].refused)[0]
    assert in_page(f"""
        from scripts.runner import front_end, session
        seen, look = [], front_end.refusal
        def refusal(*arguments):
            seen.append(1)
            return look(*arguments)
        front_end.refusal = refusal
        counts = []
        for text in ({text!r}, {text!r}, {text!r} + "\\n"):
            assert session.run(text)["warnings"]
            counts.append(len(seen))
        result = counts
    """) == [1, 1, 2]  # fmt: skip
