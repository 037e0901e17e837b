"""The command line: files in mine/ are never lost, hints come one by one, both languages; the kill score."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import pytest

from scripts import drill, mutant_files, skeletons
from scripts.drill_score import score
from scripts.drill_words import WORDS

LESSON = "l2_paged_decode"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A repository of nothing but mine/."""
    monkeypatch.setattr(drill, "ROOT", tmp_path)
    monkeypatch.setattr(drill, "MINE", tmp_path / "mine")
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "mine"


def run(*arguments: str) -> int:
    return drill.main(list(arguments))


@pytest.mark.parametrize("level", skeletons.LEVELS)
def test_start_copies_the_skeleton(level, mine, capsys):
    assert run("start", LESSON, "--level", level) == 0
    committed = skeletons.ROOT / skeletons.load(LESSON, level).path
    assert (mine / f"{LESSON}.py").read_bytes() == committed.read_bytes()
    assert f"mine/{LESSON}.py: level {level}" in capsys.readouterr().out


def test_a_file_is_never_overwritten_but_by_force(mine, capsys):
    run("start", LESSON)
    (mine / f"{LESSON}.py").write_text("my own")
    assert run("start", LESSON) == 2
    assert "--force` overwrites it" in capsys.readouterr().err
    assert (mine / f"{LESSON}.py").read_text() == "my own"
    assert run("start", LESSON, "--force") == 0
    assert "my own" not in (mine / f"{LESSON}.py").read_text()


def test_reset_keeps_every_file_that_was_there(mine, capsys):
    run("start", LESSON, "--level", "kernel")
    for number in (1, 2):
        (mine / f"{LESSON}.py").write_text(f"attempt {number}")
        assert run("reset", LESSON) == 0
        assert f"your file is now mine/{LESSON}.old{number}.py" in capsys.readouterr().out
        assert (mine / f"{LESSON}.old{number}.py").read_text() == f"attempt {number}"
    assert (mine / f"{LESSON}.py").read_text() == skeletons.load(LESSON, "kernel").text()


@pytest.mark.parametrize("command", ["check", "diff", "reset"])
def test_without_a_file_the_command_that_makes_one_is_named(command, mine, capsys):
    assert run(command, LESSON) == 2
    assert f"scripts/drill.py start {LESSON}" in capsys.readouterr().err
    assert not mine.exists()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_hints_come_one_by_one_and_the_last_is_the_solution(lang, mine, capsys):
    run("start", LESSON, "--lang", lang)
    capsys.readouterr()
    hints = skeletons.hints(LESSON, "loop", lang)
    for number, hint in enumerate(hints, 1):
        assert run("hint", LESSON) == 0
        head, text = capsys.readouterr().out.split("\n", 1)
        assert f"{number}" in head and f"{len(hints) + 1}" in head and text.strip() == hint
    for _ in range(2):  # it stays at the last
        run("hint", LESSON)
        out = capsys.readouterr().out
        assert "tl.dot(q, k_t" in out and "kernels/l2_paged_decode.py:" in out
    run("start", LESSON, "--force")
    run("hint", LESSON)
    assert hints[0] in capsys.readouterr().out


def test_hints_without_a_file_are_those_of_the_first_level(mine, capsys):
    assert run("hint", "online_softmax") == 0
    assert skeletons.hints("online_softmax", "loop", "en")[0] in capsys.readouterr().out


def test_the_difference_to_the_solution(mine, capsys):
    run("start", LESSON)
    capsys.readouterr()
    assert run("diff", LESSON) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[:2] == [f"--- mine/{LESSON}.py", f"+++ kernels/{LESSON}.py"]
    assert all("TODO" in row or row.startswith("-    #   ") for row in rows[2:] if row.startswith("-"))
    assert "+        page_id = tl.load(table_row_ptr + page).to(tl.int64)" in rows
    (mine / f"{LESSON}.py").write_text(skeletons.load(LESSON, "loop").answer(), encoding="utf-8")
    run("diff", LESSON)
    assert capsys.readouterr().out.strip() == "no difference"


def test_go_starts_and_then_checks(mine, capsys, monkeypatch):
    """`make drill` twice: the second time the skeleton is checked, and fails."""
    assert run("go", "online_softmax", "--lang", "zh") == 0
    capsys.readouterr()
    assert run("go", "online_softmax") == 1
    out = capsys.readouterr().out
    assert (
        WORDS["zh"]["problems"] in out and "应为：26.2089\n  得到：0" in out and WORDS["zh"]["unnamed"] in out
    )


def test_a_known_mistake_is_named_with_the_section_to_read_again(mine, capsys):
    run("start", "online_softmax")
    source = mutant_files.load("online_softmax/masked_score_zero")
    text = source.apply((mutant_files.ROOT / source.file).read_text(encoding="utf-8"))
    (mine / "online_softmax.py").write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert run("check", "online_softmax") == 1
    out = capsys.readouterr().out
    assert f"known mistake online_softmax/masked_score_zero: {source.name['en']}" in out
    assert f"read again: docs/en/lessons/online_softmax.md#{source.section}" in out
    assert WORDS["en"]["unnamed"] not in out


@pytest.mark.parametrize(("locale", "lang"), [("zh_CN.UTF-8", "zh"), ("C.UTF-8", "en"), ("", "en")])
def test_the_language_is_the_locales_until_one_is_asked_for(locale, lang, mine, monkeypatch):
    monkeypatch.setenv("LANG", locale)
    assert drill.Drill(LESSON).lang == lang
    run("start", LESSON, "--lang", "zh")
    assert drill.Drill(LESSON).lang == "zh" and drill.Drill(LESSON, "en").lang == "en"
    assert json.loads((mine / ".drills.json").read_text())[LESSON]["lang"] == "zh"
    run("diff", LESSON, "--lang", "en")
    assert drill.Drill(LESSON).lang == "en"


def test_all_words_are_in_both_languages():
    assert set(WORDS["zh"]) == set(WORDS["en"])


@pytest.mark.parametrize("command", ["", "start", "check", "hint", "diff", "reset", "test", "go"])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*filter(None, [command]), "--help")
    assert ended.value.code == 0 and "usage: " in capsys.readouterr().out


def test_a_lesson_that_is_not_there_is_named(capsys):
    with pytest.raises(SystemExit) as ended:
        run("start", "l9")
    assert ended.value.code == 2 and "'l2_paged_decode'" in capsys.readouterr().err


def test_a_server_that_cannot_start_gets_a_message(mine, capsys, monkeypatch):
    run("start", "online_softmax")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert run("check", "online_softmax") == 2
    assert "-m scripts.sandbox ended with exit status 1" in capsys.readouterr().err


CHECK = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
from scripts import drill
drill.ROOT = Path(sys.argv[1])
drill.MINE = drill.ROOT / "mine"
sys.exit(drill.main(["check", "online_softmax"]))
"""


def test_a_python_without_torch_gets_a_message(capfd):
    code = "import sys; sys.modules['torch'] = None; from scripts import sandbox; sandbox.main()"
    ended = subprocess.run([sys.executable, "-c", code], cwd=skeletons.ROOT, check=False)
    assert ended.returncode == 1
    err = capfd.readouterr().err
    assert "torch" in err and "`make drill` installs" in err and "Traceback" not in err


HINT = CHECK.replace('"check", "online_softmax"', '"hint", "online_softmax"')


def test_a_reader_of_the_output_may_stop_early(mine):
    """`hint | head`, where head has gone before there is anything to print."""
    code = HINT.replace("sys.exit(drill.main(", "sys.exit(drill.piped(")
    command = [sys.executable, "-c", code, str(mine.parent)]
    with subprocess.Popen(
        command, cwd=skeletons.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as hint:
        hint.stdout.close()
        assert hint.stderr.read() == "" and hint.wait() == 0


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"l2_paged_decode": 3}', '{"l2_paged_decode": {"level": "no"}}']
)
def test_a_damaged_memory_is_none(text, mine, capsys):
    mine.mkdir()
    (mine / ".drills.json").write_text(text)
    assert run("hint", LESSON) == 0
    assert skeletons.hints(LESSON, "loop", "en")[0] in capsys.readouterr().out


def test_a_place_that_cannot_be_written_is_named(mine, capsys):
    mine.write_text("a file, not a folder")
    assert run("start", LESSON) == 2
    assert str(mine) in capsys.readouterr().err


def test_another_level_than_the_files_is_said(mine, capsys):
    run("start", "online_softmax", "--level", "kernel")
    capsys.readouterr()
    assert run("go", "online_softmax", "--level", "loop") == 1
    assert "online_softmax.py is of level kernel" in (out := capsys.readouterr().out)
    assert "reset online_softmax --level loop" in out
    run("go", "online_softmax", "--level", "kernel")
    assert "reset" not in capsys.readouterr().out


def test_an_interrupt_ends_all_without_a_word(mine):
    """Ctrl-C: the file that never ends, its server and the command itself."""
    run("start", "online_softmax")
    (mine / "online_softmax.py").write_text("while True: pass")
    command = [sys.executable, "-c", CHECK, str(mine.parent)]
    with subprocess.Popen(
        command, cwd=skeletons.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as check:
        check.stdout.readline()  # the first stage is announced
        for _ in range(5):  # on a busy machine one may come before there is anything to end
            time.sleep(6)
            check.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                check.wait(3)
                break
        assert check.returncode == 130 and check.stderr.read() == ""


def test_starting_a_drill_imports_no_torch():
    code = "import sys; from scripts import drill; drill.skeletons.load('online_softmax', 'loop').text(); "
    code += "sys.exit('torch' in sys.modules or 'triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=skeletons.ROOT, check=False).returncode == 0


WEAK = """
import torch
from kernels import online_softmax

def test_one_block():
    o = online_softmax(torch.zeros(16), torch.ones(16, 3))
    assert torch.allclose(o, torch.ones(3))
"""
STRONG = """
import pytest
import torch
from kernels import online_softmax

INF = float("inf")

ROWS = [[1.0, 2.0, 3.0, 0.0, 5.0], [-INF, -INF, 1.0], [200.0, 100.0], [-300.0] * 3]

@pytest.mark.parametrize("scores", ROWS)
def test_rows(scores):
    scores = torch.tensor(scores)
    values = torch.arange(2.0 * len(scores)).view(-1, 2)
    o, lse = online_softmax(scores, values, block_size=2, return_lse=True)
    torch.testing.assert_close(o, torch.softmax(scores, 0) @ values)
    torch.testing.assert_close(lse, torch.logsumexp(scores, 0))
"""


@pytest.mark.parametrize(("text", "status", "killed"), [(WEAK, 1, 0), (STRONG, 0, 5)], ids=["weak", "strong"])
def test_the_kill_score_of_a_test_file(text, status, killed, box, tmp_path, capsys):
    file = tmp_path / "test_mine.py"
    file.write_text(text)
    assert score(box, "online_softmax", file, "en") == status
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].endswith("tests pass on the solution") and rows[-1] == f"{killed} of 5 mutants killed"
    survivors = {row.split()[1] for row in rows[1:-1] if "SURVIVES" in row}
    assert len(survivors) == 5 - killed and len(rows) == 7
    if killed:
        assert "test_rows[scores" in rows[1]


PAGED = """
import torch
from kernels import paged_attention_reference, paged_decode

def test_two_sequences():
    q, cache = torch.randn(2, 4, 16), torch.randn(2, 4, 16, 2, 16)
    table, lens = (torch.tensor(t, dtype=torch.int32) for t in ([[3, 0], [1, -1]], [20, 7]))
    args = q, *cache, table, lens
    torch.testing.assert_close(paged_decode(*args), paged_attention_reference(*args))
"""


def test_what_survives_is_named_and_what_only_a_compiler_sees_is_said(box, tmp_path, capsys):
    file = tmp_path / "test_mine.py"
    file.write_text(PAGED)
    assert score(box, LESSON, file, "en") == 1
    rows = {row.split()[1]: row for row in capsys.readouterr().out.splitlines() if row.startswith("  ")}
    assert set(rows) == {name.partition("/")[2] for name in mutant_files.all_ids(LESSON)}
    for name in ("interleaved_heads", "scale_left_out", "scores_not_masked", "nothing_masked"):
        assert rows[name].split()[0] == "killed"
    for name in ("empty_sequence_unwritten", "int32_page_offset", "table_past_end", "v_not_masked"):
        survivor = mutant_files.load(f"{LESSON}/{name}")
        assert rows[name].split()[0] == "SURVIVES" and survivor.name["en"] in rows[name]
    for name in ("tf32", "tile_of_8_tokens"):
        assert WORDS["en"]["by_compiler"] in rows[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def test(): assert 1 == 2", "assert 1 == 2"),
        ("import not_a_module", "ModuleNotFoundError"),
        ("def test(:", "SyntaxError"),
        ("x = 1", "no test passed"),
        ("import os\ndef test(): os._exit(0)", "the process died"),
        ("from kernels import no_such_name", "cannot import name 'no_such_name'"),
    ],
)
def test_tests_that_fail_on_the_solution_have_no_score(text, message, box, tmp_path, capsys):
    file = tmp_path / "test_mine.py"
    file.write_text(text)
    assert score(box, "online_softmax", file, "en") == 2
    out = capsys.readouterr().out
    assert "must pass on the solution first" in out and message in out
    assert "Traceback (most recent call last)" not in out


def test_a_test_file_that_is_not_there(mine, tmp_path, capsys):
    assert run("test", LESSON, str(tmp_path / "none.py")) == 2
    assert "wanted a pytest file" in capsys.readouterr().out
