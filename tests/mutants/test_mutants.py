"""Every mutant applies, runs or is refused by the compiler, is caught by what its file says, and is named."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scripts import mutants

ALL = mutants.all_ids()


@pytest.fixture(scope="module")
def reports(request):
    """{id: the report of its run, under way}: those of the tests to run, two child processes at a time."""
    wanted = [
        item.callspec.params["checked"]
        for item in request.session.items
        if item.module is request.module and "reports" in item.fixturenames
    ]

    def check(checked: str) -> dict:
        mutant = None if checked in mutants.LESSONS else mutants.load(checked)
        return mutants.check(checked.partition("/")[0], mutant)

    with ThreadPoolExecutor(2) as pool:
        yield {checked: pool.submit(check, checked) for checked in wanted}


@pytest.mark.parametrize("checked", ALL)
def test_a_mutant_is_caught_and_named(checked, reports):
    report = reports[checked].result()
    assert not report["ok"], "no check fails"
    assert report["check"] == mutants.load(checked).caught_by, report
    assert report["mistakes"] == [checked], report


@pytest.mark.parametrize("checked", mutants.LESSONS)
def test_the_solution_passes(checked, reports):
    assert reports[checked].result() == {"lesson": checked, "ok": True}


# What a reader may write, in place of a lesson's kernel.
READERS = {
    "def paged_decode(": ("import", "SyntaxError"),
    "import not_a_module": ("import", "ModuleNotFoundError"),
    "def decode(): pass": ("import", "no function paged_decode"),
    "def paged_decode(*args, **kwargs): raise NotImplementedError": ("values", "raised NotImplementedError"),
    "def paged_decode(q, *args, **kwargs): return q": ("values", "a pair of tensors (o, lse)"),
    "def paged_decode(q, *args, **kwargs): return q[:, :1], q[:, :1, 0]": ("values", "o is torch.float32"),
    "import os\ndef paged_decode(*args, **kwargs): os._exit(3)": ("died", "exit status 3"),
}


@pytest.mark.parametrize("text", READERS, ids=lambda text: text[:30])
def test_a_file_that_is_no_kernel_gets_a_message(text, tmp_path):
    (tmp_path / "kernel.py").write_text(text)
    report = mutants.check("l2_paged_decode", file=tmp_path / "kernel.py")
    check, message = READERS[text]
    assert (report["ok"], report["check"], report["mistakes"]) == (False, check, [])
    assert message in report["message"] and "Traceback" not in report["message"]


def test_a_file_that_never_ends_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "TIME_LIMIT_S", 8)
    (tmp_path / "kernel.py").write_text("while True: pass")
    report = mutants.check("online_softmax", file=tmp_path / "kernel.py")
    assert (report["ok"], report["check"]) == (False, "timeout")
    assert "not done after 8 s" in report["message"]


def test_a_readers_own_kernel_is_diagnosed(tmp_path):
    """Not our mutant and no Triton at all: what it gives is enough."""
    (tmp_path / "kernel.py").write_text(
        "from kernels import paged_attention_reference\n"
        "def paged_decode(*args, sm_scale=None, **kwargs):\n"
        "    return paged_attention_reference(*args, sm_scale=1.0, **kwargs)\n"
    )
    report = mutants.check("l2_paged_decode", file=tmp_path / "kernel.py")
    assert report["mistakes"] == ["l2_paged_decode/scale_left_out"]


def test_a_store_far_outside_harms_nobody_and_gets_a_message(tmp_path):
    """Carried out, it would end the process; and it is none of the known mistakes."""
    text = (mutants.ROOT / "kernels/l2_paged_decode.py").read_text(encoding="utf-8")
    wrong = text.replace("tl.store(lse_ptr + out, lse, mask=mask_g)", "tl.store(lse_ptr + 10**6 + out, lse)")
    assert wrong != text
    (tmp_path / "kernel.py").write_text(wrong, encoding="utf-8")
    report = mutants.check("l2_paged_decode", file=tmp_path / "kernel.py")
    assert (report["check"], report["mistakes"]) == ("poison", [])
    assert "12 elements of a tensor [3, 4] never written" in report["message"]


def test_an_edit_that_no_longer_fits_is_an_error():
    mutant = mutants.load(ALL[-1])
    text = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
    with pytest.raises(mutants.MutantError, match=rf"{ALL[-1]}.toml: {mutant.file} has this text 0 times"):
        mutant.apply(mutant.apply(text))
    with pytest.raises(mutants.MutantError, match="has this text 2 times; wanted once"):
        mutant.apply(text + text)


@pytest.mark.parametrize("change", [("symptom", "bad"), ("caught_by", "luck"), ("file", None)])
def test_a_badly_written_mutant_is_an_error(change, tmp_path, monkeypatch):
    key, value = change
    rows = (mutants.FOLDER / f"{ALL[0]}.toml").read_text(encoding="utf-8").splitlines()
    rows = [row if not row.startswith(f"{key} =") else f'{key} = "{value}"' * bool(value) for row in rows]
    monkeypatch.setattr(mutants, "FOLDER", tmp_path)
    (tmp_path / "wrong.toml").write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(mutants.MutantError, match=rf"wrong.toml: .*{value or key}"):
        mutants.load("wrong")


def test_a_diff_is_one_of_the_kernel_without_names_of_lines():
    diff = mutants.load("l2_paged_decode/interleaved_heads").diff()
    assert diff.startswith("--- a/kernels/l2_paged_decode.py\n+++ b/kernels/l2_paged_decode.py\n@@ ")
    assert "\n-    q_head = kv_head * GROUP_SIZE + offs_g\n" in diff and "#:" not in diff


def test_an_unknown_mutant_is_named(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["mutants.py", "show", "l2_paged_decode/none"])
    assert mutants.main() == 2
    assert "no mutant 'l2_paged_decode/none'; wanted one of: online_softmax/" in capsys.readouterr().err


@pytest.mark.parametrize("mutant_id", ALL)
def test_a_mutant_edits_a_lesson_file_and_registers_no_op(mutant_id):
    mutant = mutants.load(mutant_id)
    assert mutant.file == f"kernels/{mutant.lesson}.py"
    wrong = mutant.apply((mutants.ROOT / mutant.file).read_text(encoding="utf-8"))
    assert "torch.library" not in wrong and "kernels.ops" not in wrong
    compile(wrong, mutant.file, "exec")


def test_every_file_of_the_folder_is_a_mutant():
    files = [p for p in Path(mutants.FOLDER).rglob("*") if p.is_file()]
    assert sorted(str(p.relative_to(mutants.FOLDER).with_suffix("")) for p in files) == sorted(ALL)
