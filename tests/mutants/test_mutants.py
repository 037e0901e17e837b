"""Every mutant applies, runs or is refused by the compiler, is caught by what its file says, and is named."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts import generated, mutant_files, mutants
from scripts.drill_run import check
from scripts.sandbox import Sandbox

ALL = mutant_files.every_id()


@pytest.fixture(scope="module")
def reports(request):
    """{id: the report of its run, under way}: those of the tests to run, by two sandboxes side by side."""
    wanted = [
        item.callspec.params["checked"]
        for item in request.session.items
        if item.module is request.module and "reports" in item.fixturenames
    ]

    def run(box: Sandbox, checked: str) -> dict:
        mutant = None if checked in mutant_files.LESSONS + mutant_files.PARTS else mutant_files.load(checked)
        return check(box, checked.partition("/")[0], mutant)

    with Sandbox() as even, Sandbox() as odd, ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        workers = ((first, even), (second, odd))
        runs = {}
        for number, checked in enumerate(wanted):
            pool, box = workers[number % 2]
            runs[checked] = pool.submit(run, box, checked)
        yield runs


@pytest.mark.parametrize("checked", ALL)
def test_a_mutant_is_caught_and_named_and_the_page_shows_it(checked, reports):
    report = reports[checked].result()
    assert not report["ok"], "no check fails"
    assert report["check"] == mutant_files.load(checked).caught_by, report
    assert report["mistakes"] == ([] if mutant_files.load(checked).test else [checked]), report
    if test := mutant_files.load(checked).test:
        assert report["case"].startswith(test)
    shown = mutant_files.recorded()[checked]
    assert mutant_files.is_same(report, shown), (report, shown, "mends it: python scripts/mutants.py record")


@pytest.mark.parametrize("checked", mutant_files.LESSONS + mutant_files.PARTS)
def test_the_solution_passes(checked, reports):
    assert reports[checked].result() == {"lesson": checked, "ok": True}


def test_the_record_has_every_mutant_and_nothing_else():
    assert list(mutant_files.recorded()) == ALL


def test_reports_are_the_same_if_only_digits_of_measured_numbers_differ():
    report = {
        "message": "row 0 of o: error 1.3, plain PyTorch's is 2.24e-07",
        "index": [2, 16],
        "got": "0.51234",
    }
    assert mutant_files.is_same(
        report, report | {"message": report["message"].replace("2.24e-07", "1.9e-07")}
    )
    assert mutant_files.is_same(report, report | {"got": "0.51236"})
    for other in ({"got": "0.55"}, {"index": [2, 17]}, {"message": "row 1 of o"}, {"got": "nan"}):
        assert not mutant_files.is_same(report, report | other)


def test_an_edit_that_no_longer_fits_is_an_error():
    mutant = mutant_files.load(ALL[-1])
    text = (mutant_files.ROOT / mutant.file).read_text(encoding="utf-8")
    with pytest.raises(
        mutant_files.MutantError, match=rf"{ALL[-1]}.toml: {mutant.file} has this text 0 times"
    ):
        mutant.apply(mutant.apply(text))
    with pytest.raises(mutant_files.MutantError, match="has this text 2 times; wanted once"):
        mutant.apply(text + text)


@pytest.mark.parametrize("change", [("symptom", "bad"), ("caught_by", "luck"), ("file", None)])
def test_a_badly_written_mutant_is_an_error(change, tmp_path, monkeypatch):
    key, value = change
    rows = (mutant_files.FOLDER / f"{ALL[0]}.toml").read_text(encoding="utf-8").splitlines()
    rows = [row if not row.startswith(f"{key} =") else f'{key} = "{value}"' * bool(value) for row in rows]
    monkeypatch.setattr(mutant_files, "FOLDER", tmp_path)
    (tmp_path / "wrong.toml").write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(mutant_files.MutantError, match=rf"wrong.toml: .*{value or key}"):
        mutant_files.load("wrong")


def test_a_diff_is_one_of_the_kernel_without_names_of_lines():
    diff = mutant_files.load("l2_paged_decode/interleaved_heads").diff()
    assert diff.startswith("--- a/kernels/l2_paged_decode.py\n+++ b/kernels/l2_paged_decode.py\n@@ ")
    assert "\n-    q_head = kv_head * GROUP_SIZE + offs_g\n" in diff and "#:" not in diff


def _run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["mutants.py", *arguments])
    return mutants.main()


def test_an_unknown_mutant_is_named(capsys, monkeypatch):
    assert _run(monkeypatch, "show", "l2_paged_decode/none") == 2
    assert "no mutant 'l2_paged_decode/none'; wanted one of: online_softmax/" in capsys.readouterr().err


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_list_is_in_both_languages(lang, capsys, monkeypatch):
    assert _run(monkeypatch, "list", "--lang", lang) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(ALL)
    for row, mutant_id in zip(rows, ALL, strict=True):
        assert row.startswith(mutant_id) and row.endswith(mutant_files.load(mutant_id).name[lang])


def test_a_stale_record_is_named_and_digits_alone_make_none(tmp_path, monkeypatch, capsys):
    got = {"ok": False, "check": "values", "message": "row 0 of o: error 9.37"}
    monkeypatch.setattr(mutants, "check", lambda box, lesson, mutant: got | {"mistakes": [mutant.id]})
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(mutant_files, "RECORD", tmp_path / "mutants.json")
    assert _run(monkeypatch, "record", "--check") == 1
    assert "run: python scripts/mutants.py record" in capsys.readouterr().err
    assert _run(monkeypatch, "record") == 0
    assert list(mutant_files.recorded()) == ALL and mutant_files.recorded()[ALL[0]]["mistakes"] == [ALL[0]]
    for message, status in (("row 0 of o: error 9.371", 0), ("row 1 of o: error 9.37", 1)):
        text = mutant_files.RECORD.read_text(encoding="utf-8").replace(got["message"], message)
        mutant_files.RECORD.write_text(text, encoding="utf-8")
        assert _run(monkeypatch, "record", "--check") == status


@pytest.mark.parametrize("mutant_id", ALL)
def test_a_mutant_edits_a_lesson_file_and_registers_no_op(mutant_id):
    mutant = mutant_files.load(mutant_id)
    start = mutant.lesson if mutant.lesson in mutant_files.LESSONS else mutant.lesson.partition("_")[0]
    assert mutant.file.startswith(f"kernels/{start}") and bool(mutant.test) == (
        mutant.lesson in mutant_files.TESTED
    )
    wrong = mutant.apply((mutant_files.ROOT / mutant.file).read_text(encoding="utf-8"))
    assert "torch.library" not in wrong and "kernels.ops" not in wrong
    compile(wrong, mutant.file, "exec")


def test_every_file_of_the_folder_is_a_mutant():
    files = [
        path
        for lesson in mutant_files.LESSONS + mutant_files.PARTS + mutant_files.TESTED
        for path in (mutant_files.FOLDER / lesson).rglob("*")
    ]
    assert sorted(str(path.relative_to(mutant_files.FOLDER).with_suffix("")) for path in files) == sorted(ALL)
