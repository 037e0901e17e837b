"""scripts/compiled_lines.py: the rows of each stage, and the places that the line tables give them."""

import pytest

from scripts.compiled_lines import amdgcn_rows, ptx_rows, sass_rows, ttgir_rows

A, B, LIBRARY = "/r/kernels/a.py", "/r/kernels/b.py", "/lib/triton/standard.py"

TTGIR = f"""\
#blocked = #ttg.blocked<{{}}>
#loc = loc("{A}":3:0)
#loc1 = loc(unknown)
#loc2 = loc("{B}":7:8)
#loc3 = loc("{A}":5:4)
#loc4 = loc(callsite(#loc2 at #loc3))
#loc5 = loc("x"(#loc4))
module attributes {{}} {{
  tt.func public @k(%a: i32 loc("a"(#loc)), %b: i32 {{d = 1}} loc("b"(#loc))) attributes {{}} {{
    %c = arith.constant 0 : i32 loc(#loc1)
    %x = "tt.reduce"(%a) <{{axis = 1 : i32}}> ({{
    ^bb0(%l: f32 loc(callsite(#loc1 at #loc3)), %r: f32 loc(#loc1)):
      tt.reduce.return %l : f32 loc(#loc5)
    }}) : (i32) -> i32 loc(#loc5)
    tt.return loc(#loc3)
  }} loc(#loc)
}} loc(#loc)
"""


def test_ttgir_places_follow_names_aliases_and_call_sites() -> None:
    rows = {row.text.strip(): row.chain for row in ttgir_rows(TTGIR)}
    called = ((B, 7), (A, 5))
    assert rows["%c = arith.constant 0 : i32"] == ()
    assert rows["tt.reduce.return %l : f32"] == called
    assert rows["^bb0(%l: f32, %r: f32):"] == ()
    assert rows["tt.return"] == ((A, 5),)
    assert not any("loc(" in text for text in rows)


def test_an_op_with_a_region_is_placed_where_its_region_ends() -> None:
    rows = {row.text.strip(): row.chain for row in ttgir_rows(TTGIR)}
    assert rows['%x = "tt.reduce"(%a) <{axis = 1 : i32}> ({'] == ((B, 7), (A, 5))
    assert rows["tt.func public @k(%a: i32,"] == ((A, 3),)
    assert rows["%b: i32 {d = 1}) attributes {} {"] == ((A, 3),)


def test_an_unknown_kind_of_location_is_an_error() -> None:
    with pytest.raises(ValueError, match="location 'odd'"):
        list(ttgir_rows("x loc(odd)"))


PTX = f"""\
// made by LLVM
.visible .entry k(
\t.param .u64 k_param_0
)
{{
\t.loc\t1 3 0                          // a.py:3:0
$L__func_begin0:
\tmov.u32 \t%r1, %tid.x;               // comment
$L__BB0_1:
\t.loc\t2 7 8                          // b.py:7:8 @[ a.py:5:4 ]
\tadd.s32 \t%r2, %r1, 1;
$L__tmp1:
\t.loc\t3 9 8                          // standard.py:9:8 @[ b.py:8:8 @[ a.py:5:4 ] ]
\t@%p1 bra \t$L__BB0_1;
\t.loc\t1 0 4                          // a.py:0:4
\tret;
}}
\t.file\t1 "{A}"
\t.file\t2 "{B}"
\t.file\t3 "{LIBRARY}"
\t.section\t.debug_info
"""


def test_ptx_takes_the_chain_that_llvm_writes_behind_each_loc() -> None:
    rows = list(ptx_rows(PTX))
    assert [row.text.strip() for row in rows][-6:] == [
        "mov.u32 %r1, %tid.x;", "$L__BB0_1:", "add.s32 %r2, %r1, 1;", "@%p1 bra $L__BB0_1;", "ret;", "}",
    ]  # fmt: skip
    chains = {row.text.strip(): row.chain for row in rows}
    assert chains["mov.u32 %r1, %tid.x;"] == ((A, 3),)
    assert chains["$L__BB0_1:"] == ()
    assert chains["add.s32 %r2, %r1, 1;"] == ((B, 7), (A, 5))
    assert chains["@%p1 bra $L__BB0_1;"] == ((LIBRARY, 9), (B, 8), (A, 5))
    assert chains["ret;"] == (), "line 0 is the compiler's own"


def test_sass_gets_its_places_through_the_lines_of_the_ptx() -> None:
    add = PTX.splitlines().index("\tadd.s32 \t%r2, %r1, 1;") + 1
    disassembly = (
        '\t.section .text.k\n.text.k:\n\t//## File ".nv_debug_ptx_txt", line 8\n'
        "        /*0000*/                   S2R R1, SR_TID.X ;\n.L_x_0:\n"
        f'\t//## File ".nv_debug_ptx_txt", line {add}\n'
        "        /*0010*/              @!P0 IADD3 R2,  R1, 0x1, RZ ;\n"
        "        /*0020*/                   BRA `(.L_x_0) ;\n        /*0030*/                   NOP;\n"
    )
    assert list(sass_rows(disassembly, PTX)) == [
        ("    S2R R1, SR_TID.X", ((A, 3),)),
        (".L_x_0:", ()),
        ("    @!P0 IADD3 R2, R1, 0x1, RZ", ((B, 7), (A, 5))),
        ("    BRA `(.L_x_0)", ((B, 7), (A, 5))),
    ]


def test_amdgcn_is_the_code_of_its_function_alone() -> None:
    text = (
        "\t.text\nk:                     ; @k\n.Lfunc_begin0:\n\t.cfi_startproc\n"
        '\t.file\t1 "/r/kernels" "a.py"\n\t.loc\t1 3 0 prologue_end     ; a.py:3:0\n'
        "\ts_load_dword s4, s[0:1], 0x0\n.Ltmp0:\n.LBB0_1:                 ; =>This Inner Loop Header\n"
        "\ts_endpgm                        ; the end\n\t.section\t.rodata\n\t.byte 0\n"
    )
    assert list(amdgcn_rows(text)) == [
        ("    s_load_dword s4, s[0:1], 0x0", ((A, 3),)),
        (".LBB0_1:", ()),
        ("    s_endpgm", ((A, 3),)),
    ]
