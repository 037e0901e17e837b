"""scripts/compiled_evidence.py and the committed records: whole, fresh, and as the lessons say."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.compiled_evidence import CLASSES, FOLDER, classes, evidence, kernels, loops, opcode
from scripts.compiled_source import code_hash, functions

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / FOLDER).glob("*.json"))
NVIDIA = ("sm_80", "sm_90", "sm_120")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_record_is_whole(file: Path) -> None:
    record = json.loads(file.read_text())
    assert f"{record['kernel']}.{record['target']}" == file.stem
    known = list(dict.fromkeys(path for path, *_ in record["functions"]))
    for stage, content in record["stages"].items():
        rows = content["text"].split("\n")
        assert sum(content["runs"][1::2]) == len(rows) == len(content["classes"])
        assert content["classes"] == classes(stage, rows)
        assert set(content["runs"][::2]) == {-1, *range(len(content["chains"]))}
        assert content["loops"] == loops(stage, rows) and content["loops"]
        for chain in content["chains"]:
            for index, line in zip(chain[::2], chain[1::2], strict=True):
                spans = [span for span in record["functions"] if span[0] == known[index]]
                assert any(first <= line <= last for _, first, last in spans)
    text = file.read_text()
    assert str(ROOT) not in text and "site-packages" not in text, "a path of the machine"
    assert len(gzip.compress(text.encode())) < 60_000


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_record_is_of_the_source_that_is_here(file: Path) -> None:
    record = json.loads(file.read_text())
    assert code_hash(ROOT, record["functions"]) == record["code_hash"], "run: python scripts/compiled_view.py"


def test_most_instructions_have_a_place() -> None:
    for name, targets in kernels().items():
        for target in targets:
            seen = evidence(name, target)
            assert seen.lines().total() > 0.8 * len(seen.rows()), (name, target)


def test_figures_agree_with_the_compile_grid() -> None:
    """The same case. The combine kernel is left out: only here is its head_dim a known multiple of 16."""
    grid = json.loads((ROOT / "snippets/generated/compile_grid.json").read_text())
    names = {"l2_naive": "naive", "l2_packed": "packed", "l3_split": "split"}
    for name, other in names.items():
        for target in kernels()[name]:
            seen = evidence(name, target)
            if seen.triton != grid["triton"]:
                pytest.skip(f"Triton {seen.triton} here, {grid['triton']} in the grid")
            point = {"kernel": other, "target": target, "dtype": "fp16", "group_size": 4, "head_dim": 128}
            row = next(r for r in grid["rows"] if point.items() <= r.items() and r["page_size"] == 16)
            for key in ("num_warps", "num_stages", "shared_bytes", "num_regs", "spilled_bytes"):
                assert seen.record[key] == row[key], (name, target, key)


@pytest.mark.parametrize("target", NVIDIA)
def test_what_the_l2_page_says_of_nvidia(target: str) -> None:
    seen = evidence("l2_packed", target)
    assert seen.count("LDGSTS.128", loop=True) == 8 + 8
    assert seen.count("HMMA.16816", loop=True) == seen.count("HMMA") == 16 + 16
    assert seen.count("HGMMA") == 0
    assert seen.count("LDSM.M88", loop=True) == 8 + 8
    assert seen.count("MUFU.EX2", loop=True) == 8 + 2
    naive = evidence("l2_naive", target)
    assert naive.count("LDGSTS", "HMMA", "LDS", "STS") == 0
    assert naive.count("LDG.128", loop=True) == 16
    assert naive.count("HADD2.F32", loop=True) == 128
    assert naive.count("SHFL", loop=True) == 42


def rows_of(name: str, target: str, line: str, wanted: str) -> int:
    """Rows in the loop whose innermost source line holds this text, with the opcode."""
    seen = evidence(name, target)
    content = seen.record["stages"][seen.machine]
    paths = list(dict.fromkeys(path for path, *_ in seen.record["functions"]))
    chain_of = [
        chain for chain, n in zip(content["runs"][::2], content["runs"][1::2], strict=True) for _ in range(n)
    ]
    found = 0
    for first, last in content["loops"]:
        for row, chain in zip(seen.rows()[first : last + 1], chain_of[first : last + 1], strict=True):
            if chain >= 0 and opcode(seen.machine, row).startswith(wanted):
                path, no = paths[content["chains"][chain][0]], content["chains"][chain][1]
                found += line in (ROOT / path).read_text().splitlines()[no - 1]
    return found


@pytest.mark.parametrize("target", NVIDIA)
@pytest.mark.parametrize("kernel", ["l2_packed", "l3_split"])
def test_where_the_page_loop_has_its_instructions(kernel: str, target: str) -> None:
    assert rows_of(kernel, target, "tl.trans(tl.load(k_ptr", "LDGSTS.E.BYPASS.128") == 8
    assert rows_of(kernel, target, "v_ptr + page_id * stride_v_page", "LDGSTS.E.BYPASS.128") == 8
    assert rows_of(kernel, target, "s = tl.dot(q, k_t", "HMMA.16816") == 16
    assert rows_of(kernel, target, "acc = tl.dot(p.to(v.dtype)", "HMMA.16816") == 16
    assert rows_of(kernel, target, "s = tl.dot(q, k_t", "LDSM.16.M88.4") == 8
    # The load of q, before the loop: it is read again for every page.
    assert rows_of(kernel, target, "q_ptr + seq_id * stride_q_b", "LDSM.16.M88.4") == 8


def test_what_the_l2_page_says_of_gfx942() -> None:
    assert rows_of("l2_packed", "gfx942", "tl.trans(tl.load(k_ptr", "global_load_dwordx4") == 4
    assert rows_of("l2_packed", "gfx942", "tl.trans(tl.load(k_ptr", "ds_write_b128") == 4
    assert evidence("l2_packed", "gfx942").count("v_mfma*", loop=True) == 16


def test_what_the_l3_page_says() -> None:
    seen = evidence("l3_combine", "sm_90")
    assert rows_of("l3_combine", "sm_90", "o_partial_ptr + offs_s", "LDG.E.128") == 16
    assert (seen.count("HMMA"), seen.count("SHFL", loop=True), seen.shared_bytes) == (0, 18, 256)
    split = evidence("l3_split", "sm_90")
    assert split.spilled_bytes == 8 and split.count("STL") == split.count("LDL") == 1
    assert split.count("STL", "LDL", loop=True) == 0


def test_all_loads_of_the_combine_tile_come_before_the_first_use() -> None:
    rows = evidence("l3_combine", "sm_90").rows(loop=True)
    last = max(no for no, row in enumerate(rows) if "LDG.E.128" in row)
    loaded: set[int] = set()
    for row in rows[: last + 1]:
        registers = [int(no) for no in re.findall(r"\bR(\d+)\b", row)]
        assert not loaded & set(registers[1:]), row
        if "LDG.E.128" in row:
            loaded |= set(range(registers[0], registers[0] + 4))
    assert len(loaded) == 64


def test_opcodes_and_their_parts() -> None:
    assert opcode("sass", "    @!UP0 LDGSTS.E.BYPASS.LTC128B.128 [R1], desc[UR4][R2.64]") == (
        "LDGSTS.E.BYPASS.LTC128B.128"
    )
    assert opcode("sass", ".L_x_1:") == ""
    assert opcode("ptx", "    @%p2 ld.global.v4.b32 { %r44 }, [ %rd33 + 0 ];") == "ld.global.v4.b32"
    assert opcode("ttgir", '    %x:2 = "tt.reduce"(%a) ({') == "tt.reduce"
    assert opcode("amdgcn", "    v_mfma_f32_16x16x16_f16 v[0:3], v4, v5, v[0:3]") == "v_mfma_f32_16x16x16_f16"
    seen = evidence("l2_packed", "sm_90")
    assert seen.count("LDGSTS.LTC128B") + seen.count("LDGSTS.16") == 0, "parts are whole"
    assert seen.count("LDG*") == seen.count("LDG", "LDGSTS", "LDGDEPBAR")
    assert seen.count_class("matrix") == seen.count("HMMA")
    assert set(seen.record["stages"]["sass"]["classes"]) <= {*CLASSES, "-"}


def test_a_branch_to_itself_is_no_loop() -> None:
    rows = [
        ".L_x_0:",
        "    NOP",
        "    @P0 BRA `(.L_x_0)",
        "    @P1 BRA `(.L_x_0)",
        ".L_x_1:",
        "    BRA `(.L_x_1)",
    ]
    assert loops("sass", rows) == [[0, 3]]


def test_what_was_not_compiled_is_named() -> None:
    with pytest.raises(
        KeyError, match=r"l2_packed\.sm_70 was not compiled; there are .*l2_packed \(sm_80 sm_90"
    ):
        evidence("l2_packed", "sm_70")
    with pytest.raises(AttributeError, match=r"'regs': a record has .*num_regs"):
        evidence("l2_packed", "sm_90").regs  # noqa: B018


def test_it_needs_neither_torch_nor_triton() -> None:
    code = (
        "import sys; from scripts import compiled_evidence as e; e.evidence('l2_packed', 'sm_90');"
        "sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_hash_follows_code_and_line_numbers_but_not_comments(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import x\n\n\n@x.jit\ndef f():\n    return 1  # one\n\n\ndef g():\n    return 2\n")
    spans = functions(tmp_path, [("a.py", 6)])
    assert spans == [("a.py", 4, 6)]
    first = code_hash(tmp_path, spans)
    file.write_text(file.read_text().replace("# one", "# 1  #: one"))
    assert code_hash(tmp_path, spans) == first
    file.write_text(file.read_text().replace("return 1", "return 3"))
    assert code_hash(tmp_path, spans) != first
