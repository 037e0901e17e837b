"""Random one-token edits of the kernels: the record is of the code of now, and some rows of it hold again."""

import random

import pytest
import torch

from scripts import token_edit_judge, token_edit_memory, token_edit_rules, token_edit_runs, token_edits
from scripts.token_edit_rules import EDITS, KERNELS, all_edits, code_hash, code_tokens, draw, replacements
from tests.helpers.marks import interpreter_only

RECORD = token_edits.load_record()


def _strings(text: str) -> list[str]:
    return [token.string for token in code_tokens(text)]


def _text(file: str) -> str:
    return (token_edits.ROOT / file).read_text(encoding="utf-8")


def test_the_record_is_whole_and_nothing_survives():
    assert token_edits.problems(RECORD) == []


@pytest.mark.parametrize("kernel", KERNELS)
def test_edits_are_valid_and_of_one_token(kernel):
    edits = draw(kernel)
    assert len(edits) == len({edit.key for edit in edits}) == EDITS
    before = _strings(_text(edits[0].file))
    for edit in edits:
        text = edit.apply(_text(edit.file))
        compile(text, edit.file, "exec")
        changed = [pair for pair in zip(before, _strings(text), strict=True) if pair[0] != pair[1]]
        assert changed == [(edit.before, edit.after)]
        assert edit.function in KERNELS[kernel][1]


def test_the_seed_gives_the_same_edits_again():
    first = all_edits()
    draw.cache_clear()
    assert all_edits() == first


def test_a_name_is_replaced_by_one_of_its_kind_that_is_bound_before():
    """In split_range: where the number of pages is computed, only the arguments are there."""
    file, name = "kernels/l3_split_kv_decode.py", "split_range"
    tokens = _strings(_text(file)[_text(file).index("num_pages = tl.cdiv") :])
    found = replacements(file, name)
    assert found[tokens.index("seq_len")] == ("num_splits", "split_id")
    assert found[tokens.index("minimum")] == ("maximum",)
    after = tokens.index("return") + 1
    assert "num_pages" in found[after] and "seq_len" in found[after] and "page_begin" not in found[after]


@pytest.fixture
def rules_in(tmp_path, monkeypatch):
    """Call with the text of kernels/l2_paged_decode.py: the rules then read that."""

    def use(text):
        (tmp_path / "kernels").mkdir(exist_ok=True)
        (tmp_path / "kernels/l2_paged_decode.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(token_edit_rules, "ROOT", tmp_path)
        token_edit_rules._functions.cache_clear()
        token_edit_rules._bodies.cache_clear()

    yield use
    monkeypatch.undo()
    token_edit_rules._functions.cache_clear()
    token_edit_rules._bodies.cache_clear()


def test_a_hash_is_of_the_functions_alone(rules_in):
    """Neither comments nor launchers nor the other kernel of the file count; a token does."""
    text = _text("kernels/l2_paged_decode.py")
    naive, paged = code_hash("l2_naive"), code_hash("l2_paged")
    rules_in("# a comment\n" + text.replace("o, lse = new_outputs(q)", "o, lse = new_outputs(q)  # here"))
    assert (code_hash("l2_naive"), code_hash("l2_paged")) == (naive, paged)
    rules_in(text.replace("mask_g = offs_g < GROUP_SIZE", "mask_g = offs_g <= GROUP_SIZE"))
    assert code_hash("l2_naive") == naive and code_hash("l2_paged") != paged


def _sample() -> list[str]:
    """An edit of each kernel that a test catches, drawn once and for all."""
    caught = {kernel: [] for kernel in KERNELS}
    for key, row in RECORD["edits"].items():
        if row["caught_by"]:
            caught[row["kernel"]].append(key)
    return [random.Random(kernel).choice(keys) for kernel, keys in caught.items() if keys]


@pytest.fixture(scope="module")
def project():
    with token_edit_runs.copy_of_the_project() as copy:
        yield copy


@interpreter_only
@pytest.mark.parametrize("key", _sample())
def test_a_row_of_the_record_again(key, project):
    """The judge sees the difference in the same case, and the same test fails."""
    (edit,) = (edit for edit in all_edits() if edit.key == key)
    row = RECORD["edits"][key]
    with project.edited(edit.file, edit.apply(_text(edit.file))):
        assert project.judge(edit.kernel)[0] == row["case"]
        assert project.failing(row["caught_by"])


@interpreter_only
def test_that_test_passes_on_the_kernel_as_it_is(project):
    """It was the edit that failed it, and the copy is again as it was."""
    assert not project.failing(RECORD["edits"][_sample()[0]]["caught_by"])


@interpreter_only
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_judge_finds_nothing_in_the_kernel_as_it_is(kernel, monkeypatch):
    """In the first of its cases: all of them take a minute a kernel."""
    monkeypatch.setattr(token_edit_judge, "CASES", 8)
    assert token_edit_judge.judge(kernel) is None


def test_the_judge_sees_writes_outside_and_wrong_values():
    def spill():
        o = torch.empty(2, 3, dtype=torch.float32)
        o.as_strided((1,), (1,), o.storage_offset() + 6).fill_(0)
        return o, o

    with pytest.raises(token_edit_memory.DifferenceError, match="a write outside its tensor"):
        token_edit_memory.run(spill)
    right = torch.zeros(2, dtype=torch.float64)
    for value in (torch.nan, 1e-3):
        with pytest.raises(token_edit_memory.DifferenceError, match=r"o\[0\] is .*, right is 0"):
            token_edit_memory.compare("o", torch.full((2,), value), right, 1e-4)
    token_edit_memory.compare("o", torch.full((2,), 1e-5), right, 1e-4)


@interpreter_only
def test_a_kernel_that_never_ends_is_stopped(project, monkeypatch):
    monkeypatch.setattr(token_edit_runs, "JUDGE_LIMIT_S", 2)
    file = "kernels/online_softmax.py"
    text = _text(file).replace("    head_dim = values.shape[1]\n", "    while True: pass\n")
    assert text != _text(file)
    with project.edited(file, text):
        assert project.judge("online_softmax") == (0, "not done after 2 s")
