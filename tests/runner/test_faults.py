"""Bad accesses are told by tensor, index, program and line, and what is around them is let pass."""

import json
from functools import cache

import pytest

from tests.runner.fault_programs import PROGRAMS
from tests.runner.helpers import in_page


@cache
def reports(poison: str = "error") -> dict[str, dict]:
    return in_page(
        """
        import json
        from scripts.runner import session
        poison, programs = json.loads(sys.argv[2])
        result = {name: session.run(source, poison=poison) for name, source in programs.items()}
        """,
        arguments=(json.dumps([poison, PROGRAMS]),),
        timeout=300,
    )


def error(name: str) -> dict:
    report = reports()[name]
    assert report["error"], f"{name}: nothing was found; it printed {report['stdout']!r}"
    return report["error"]


def line_of(name: str, text: str) -> int:
    (number,) = [n for n, line in enumerate(PROGRAMS[name].splitlines(), 1) if text in line]
    return number


@pytest.mark.parametrize("name", ["right", "view_used_well", "written_by_a_kernel", "paged", "l2"])
def test_what_is_right_is_let_pass(name):
    report = reports()[name]
    assert report["ok"] and report["error"] is None, report["error"]
    assert report["warnings"] == []


def test_a_load_past_the_end_says_it_all():
    found = error("load_past_end")
    line = line_of("load_past_end", "tl.load")
    assert found["message"] == (
        "tl.load out of bounds: element 40 of x_ptr (index [40] of shape [40]) is 1 past its end; 8 of 16 "
        f"active lanes are out of bounds, in program (2, 0, 0) at line {line}. On a GPU this reads or "
        "overwrites other memory without a word, or ends the process: check the mask and the offsets."
    )
    assert (found["kind"], found["code"], found["line"]) == ("OutOfBounds", "past_end", line)
    assert (found["tensor"], found["index"], found["shape"]) == ("x_ptr", [40], [40])
    assert (found["program"], found["op"]) == ([2, 0, 0], "load")
    assert found["texts"]["zh"].startswith(
        "tl.load 越界：x_ptr 的第 40 个元素（形状 [40] 中的下标 [40]）超出末尾 1 个元素"
    )


def test_a_store_and_atomics_past_the_end():
    found = error("store_past_end")
    assert (found["op"], found["tensor"], found["values"]["bad"]) == ("store", "o_ptr", 8)
    assert found["message"].startswith("tl.store out of bounds: element 40 of o_ptr")
    for name in ("atomic_past_end", "cas_past_end"):
        found = error(name)
        assert (found["op"], found["tensor"], found["index"]) == ("atomic", "o_ptr", [4])


def test_one_lane_too_many_is_enough():
    found = error("off_by_one")
    assert (found["values"]["bad"], found["values"]["active"], found["index"]) == (1, 9, [40])


def test_before_the_start():
    found = error("load_before_start")
    assert (found["code"], found["values"]["before"], found["index"]) == ("before_start", 3, [-3])
    assert "is 3 before its start" in found["message"]


def test_an_offset_that_wraps_around_int32_is_seen():
    assert error("int32_overflow")["tensor"] == "x_ptr"


def test_bounds_are_those_of_the_view():
    found = error("next_row_of_the_storage")
    assert (found["code"], found["tensor"], found["shape"]) == ("outside_view", "x_ptr", [8, 16])
    found = error("part_of_a_storage")
    assert (found["code"], found["index"], found["shape"]) == ("past_end", [4, 0], [4, 32])
    found = error("two_views_of_one_storage")
    assert (found["code"], found["tensor"], found["index"]) == ("past_end", "k_ptr", [4])
    assert error("wrong_axis")["tensor"] == "o_ptr"


def test_pointers_that_are_none():
    assert (error("misaligned")["kind"], error("misaligned")["code"]) == ("BadPointer", "misaligned")
    assert error("null")["code"] == "null"
    assert error("no_tensor")["code"] == "no_tensor"
    assert error("freed")["code"] == "freed"


def test_addresses_that_come_from_memory_are_checked_against_their_buffer():
    assert reports()["pointers_in_a_tensor"]["stdout"] == "[3.0, 30.0]\n"
    assert error("pointers_in_a_tensor")["code"] == "past_end"


def test_reads_of_what_nothing_wrote():
    found = error("unwritten")
    line = line_of("unwritten", "tl.load")
    assert found["kind"] == "UnwrittenRead"
    assert found["message"] == (
        "tl.load reads x_ptr at index [0] of shape [40], which nothing has written: 16 of 16 active lanes "
        f"are unwritten, in program (0, 0, 0) at line {line}. On a GPU such memory holds whatever was there "
        "before."
    )
    found = error("unwritten_in_part")
    assert (found["index"], found["values"]["bad"]) == ([39], 1)
    assert error("unwritten_atomic")["kind"] == "UnwrittenRead"
    assert error("slots_without_tokens")["tensor"] == "v_ptr"


def test_poison_off_lets_them_pass():
    for name in ("unwritten", "unwritten_in_part", "unwritten_atomic"):
        assert reports("off")[name]["ok"], name
    assert not reports("off")["load_past_end"]["ok"]


def test_a_huge_tensor_is_refused_by_name():
    found = error("huge")
    assert (found["kind"], found["code"]) == ("OutOfMemory", "out_of_memory")
    assert "268435456 bytes" in found["message"]


def test_the_block_table_is_not_overrun():
    found = error("one_page_too_far")
    line = line_of("one_page_too_far", "tl.load(table_row_ptr + page)")
    assert (found["kind"], found["code"], found["line"]) == ("RowOverrun", "other_row", line)
    assert (found["tensor"], found["index"], found["program"]) == ("block_table_ptr", [1, 0], [0, 0, 0])
    assert "works on sequence 0, but reads block_table_ptr[1, 0]" in found["message"]
    found = error("one_page_too_far_inside")
    assert (found["code"], found["index"], found["values"]["entries"]) == ("past_entries", [0, 7], 7)
    assert "sequence 0 has 100 tokens and so 7 pages" in found["message"]
    found = error("row_of_another")
    assert (found["code"], found["values"]["own"], found["values"]["row"]) == ("other_row", 0, 1)


def test_a_wrong_page_id_is_traced_to_the_table():
    found = error("page_id_too_large")
    assert (found["tensor"], found["index"][0]) == ("k_ptr", 9999)
    assert found["message"].endswith(
        " Page id 9999 was read from block_table_ptr[0, 1], and the cache has 4 pages."
    )
    found = error("page_id_negative")
    assert (found["code"], found["tensor"], found["index"][0]) == ("before_start", "k_ptr", -1)
    assert "Page id -1 was read from block_table_ptr[1, 1]" in found["message"]


def test_every_fault_speaks_both_languages():
    for name, report in reports().items():
        if report["error"] and report["error"]["code"]:
            texts = report["error"]["texts"]
            assert texts["en"] != texts["zh"] and "{" not in texts["en"] + texts["zh"], (name, texts)
