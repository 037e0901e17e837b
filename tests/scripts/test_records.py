"""Records: what is refused, what the code hash sees, and that the committed ones are whole."""

import copy
import json
import subprocess
import sys

import pytest

from scripts import records

MEASURED = {
    "schema": 1,
    "kind": "measured",
    "lesson": "l2_paged_decode",
    "gpu": {"name": "Test GPU", "slug": "test-gpu", "num_sms": 2, "l2_bytes": 1, "memory_bytes": 2},
    "software": {"driver": "1", "cuda": "2", "torch": "3", "triton": "4", "python": "5"},
    "date": "2026-01-01",
    "command": "python scripts/bench.py",
    "code_hash": {},
    "rows": [
        {"variant": "packed", "batch_size": 1, "ctx": 16, "latency_us": {"p20": 1, "p50": 2.0, "p80": 3}},
        {"variant": "naive", "batch_size": 1, "ctx": 16, "error": "AssertionError: wrong"},
    ],
}
CITED = {
    "schema": 1,
    "kind": "cited",
    "lesson": "l2_paged_decode",
    "gpu": {"name": "Test GPU", "slug": "test-gpu-cited"},
    "source": {"zh": "论文", "en": "a paper", "url": None},
    "rows": [{"variant": "packed", "batch_size": 1, "ctx": 16, "printed_us": 176}],
}


def changed(record: dict, path: str, value: object) -> dict:
    """A copy with one field, named by its dotted path, set to `value` or left out (None)."""
    result = copy.deepcopy(record)
    *parents, last = path.split(".")
    item = result
    for part in parents:
        item = item[int(part) if part.isdigit() else part]
    if value is None:
        del item[last]
    else:
        item[last] = value
    return result


@pytest.mark.parametrize("record", [MEASURED, CITED], ids=["measured", "cited"])
def test_round_trip(record, tmp_path):
    path = tmp_path / record["gpu"]["slug"] / "l2_paged_decode.json"
    records.save(path, record)
    assert records.load(path) == record
    assert records.all_records(tmp_path) == [record]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("record", "path", "value", "message"),
    [
        (MEASURED, "kind", "guessed", "kind is 'guessed'"),
        (MEASURED, "schema", 2, "schema is 2"),
        (MEASURED, "gpu.slug", "other", "gpu.slug is 'other'; wanted 'test-gpu'"),
        (MEASURED, "software.driver", None, "software.driver is missing"),
        (MEASURED, "gpu.num_sms", "2", "gpu.num_sms is '2'; wanted int"),
        (MEASURED, "rows.0.latency_us.p80", None, r"rows\[0\]: latency_us.p80 is missing"),
        (MEASURED, "rows.1.error", "", r"rows\[1\]: latency_us.p20 is missing"),
        (CITED, "gpu.slug", "test-gpu", "wanted 'test-gpu-cited'"),
        (CITED, "source.url", 3, "source.url is 3; wanted str or NoneType"),
        (CITED, "rows.0.printed_us", None, r"rows\[0\]: printed_us is missing"),
    ],
)
def test_refused(record, path, value, message, tmp_path):
    file = tmp_path / "record.json"
    with pytest.raises(records.RecordError, match=message) as error:
        records.save(file, changed(record, path, value))
    assert str(file) in str(error.value)
    assert not list(tmp_path.iterdir())


def test_misplaced_and_broken_files_are_refused(tmp_path):
    records.save(tmp_path / "elsewhere/l2_paged_decode.json", MEASURED)
    with pytest.raises(records.RecordError, match=r"wanted test-gpu/l2_paged_decode\.json"):
        records.all_records(tmp_path)
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(records.RecordError, match="not JSON"):
        records.load(broken)


def test_order_and_unfinished_runs(tmp_path):
    for name in ("AAA", "NVIDIA H200"):
        gpu = MEASURED["gpu"] | {"name": name, "slug": records.slug_of(name)}
        records.save(tmp_path / gpu["slug"] / "l2_paged_decode.json", MEASURED | {"gpu": gpu})
    records.save(tmp_path / "test-gpu-cited/l2_paged_decode.json", CITED)
    unfinished = tmp_path / "aaa/l3_split_kv_decode.partial.json"
    records.save_rows(unfinished, [{"a": 1}])
    assert [r["gpu"]["name"] for r in records.all_records(tmp_path)] == ["NVIDIA H200", "AAA", "Test GPU"]
    assert records.load_rows(unfinished) == [{"a": 1}]
    assert records.load_rows(tmp_path / "none.json") == []


KERNEL = '''"""Doc."""
from kernels.step import step  # why

def f(x):
    """What it does."""
    return step(x) + 1  #: name
'''


@pytest.fixture
def kernels(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/a.py").write_text(KERNEL)
    (tmp_path / "kernels/step.py").write_text("def step(x):\n    return x\n")
    return tmp_path


def test_hash_covers_imports(kernels):
    assert list(records.code_hash(["kernels/a.py"], kernels)) == ["kernels/a.py", "kernels/step.py"]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# why", "# another reason", True),
        ("  #: name", "", True),
        ("What it does.", "Something else.", True),
        ('    """What it does."""\n', "", True),
        ("step(x) + 1", "step(x)\\\n        + 1", True),
        ("+ 1", "+ 2", False),
        ("def f(x)", "def g(x)", False),
        ("return step", "x = 'text'\n    return step", False),
    ],
)
def test_hash_sees_code_alone(kernels, old, new, same):
    record = {"code_hash": records.code_hash(["kernels/a.py"], kernels)}
    assert old in KERNEL
    (kernels / "kernels/a.py").write_text(KERNEL.replace(old, new))
    assert records.outdated(record, kernels) == ([] if same else ["kernels/a.py"])


def test_hash_is_the_same_in_every_python():
    tree = records._canonical(
        records.ast.parse("def f(x: int = 1, *, y=None):\n    return f'{x!r:>4}' if y else -x")
    )
    assert tree == (
        "Module(body=[FunctionDef(name='f',args=arguments(args=[arg(arg='x',annotation=Name(id='int'))],"
        "kwonlyargs=[arg(arg='y')],kw_defaults=[Constant()],defaults=[Constant(value=1)]),"
        "body=[Return(value=IfExp(test=Name(id='y'),body=JoinedStr(values=[FormattedValue(value=Name(id='x'),"
        "conversion=114,format_spec=JoinedStr(values=[Constant(value='>4')]))]),"
        "orelse=UnaryOp(op=USub(),operand=Name(id='x'))))])])"
    )


def test_changed_and_lost_imports_are_outdated(kernels):
    record = {"code_hash": records.code_hash(["kernels/a.py"], kernels)}
    (kernels / "kernels/step.py").write_text("def step(x):\n    return -x\n")
    assert records.outdated(record, kernels) == ["kernels/step.py"]
    (kernels / "kernels/a.py").write_text("")
    (kernels / "kernels/step.py").unlink()
    assert records.outdated(record, kernels) == ["kernels/a.py", "kernels/step.py"]


def test_command_line_names_no_place():
    argv = [
        "/home/x/scripts/bench.py",
        "--quick",
        "--out",
        "/tmp/x",
        "--fresh",
        "--out=/y",
        "--shapes",
        "1x16",
    ]
    assert records.command_line(argv) == "python scripts/bench.py --quick --shapes 1x16"


def test_committed_records_are_whole():
    found = {(r["gpu"]["slug"], r["lesson"]): r for r in records.all_records()}
    cited = found["nvidia-geforce-rtx-5090-cited", "l2_paged_decode"]
    printed = {(r["batch_size"], r["ctx"]): (r["printed_us"], r.get("printed_gbps")) for r in cited["rows"]}
    assert printed == {(1, 32768): (1838, 73), (8, 4096): (261, None), (64, 1024): (176, 1520)}
    assert not any(
        "error" in row for r in found.values() if r["lesson"] != "launch_sweep" for row in r["rows"]
    )


def test_docs_tools_need_no_torch():
    code = "import sys, scripts.bake; sys.exit(any(m in sys.modules for m in ('torch', 'triton', 'kernels')))"
    subprocess.run([sys.executable, "-c", code], cwd=records.ROOT, check=True)


def test_written_as_readable_text(tmp_path):
    records.save(tmp_path / "r.json", CITED)
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert "论文" in text
    assert text.endswith("}\n")
    assert json.loads(text) == CITED
