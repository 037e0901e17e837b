"""What the compiler made of a kernel, as figures and counts, read from snippets/generated/compiled/.

    python scripts/compiled_evidence.py                        # the kernels and targets that there are
    python scripts/compiled_evidence.py l2_packed.sm_90 [...]  # figures, and every opcode with its counts

    seen = evidence("l2_packed", "sm_90")
    seen.num_regs, seen.shared_bytes, seen.spilled_bytes
    seen.count("LDGSTS.128")             # opcodes LDGSTS that have a part 128, in the whole kernel
    seen.count("HMMA", loop=True)        # those in a loop
    seen.count("v_mfma*", "v_exp_f32")   # of either

Needs neither torch nor triton.
"""

import argparse
import fnmatch
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "snippets/generated/compiled"
MACHINE = ("sass", "amdgcn")  # the last stage of a target is one of these

_OPCODE = {
    "ttgir": re.compile(r'\s*(?:%[\w:, %#]+ = )?"?([a-z]\w*\.[\w.]+)'),
    "ptx": re.compile(r"\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)"),
    "sass": re.compile(r"\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)"),
    "amdgcn": re.compile(r"\s+([a-z]\w*)"),
}
_JUMP = {
    "ptx": re.compile(r"\bbra(?:\.uni)?\s+(\$L\w+)"),
    "sass": re.compile(r"\bBRA\b.*`\((\.L\w+)\)"),
    "amdgcn": re.compile(r"\bs_c?branch\w*\s+(\.LBB\w+)"),
}
# What an instruction is about, by its opcode; a letter each, "-" where it is none of these.
CLASSES = {
    "g": "global", "s": "shared", "m": "matrix", "x": "special", "l": "lanes", "c": "convert", "w": "sync",
}  # fmt: skip
_CLASS = {
    "ttgir": {
        "g": r"tt\.(load|store|atomic|descriptor)|ttg\.async_copy|ttng\.async_tma",
        "s": r"ttg\.local_",
        "m": r"tt\.dot|ttng\.warp_group_dot",
        "x": r"math\.",
        "l": r"tt\.(reduce|scan)|ttg\.convert_layout",
        "c": r"arith\.(extf|truncf|sitofp|uitofp|fptosi|fptoui)|tt\.fp_to_fp",
        "w": r"ttg\.(async_wait|async_commit|barrier)|gpu\.barrier|ttng\.(wait|fence)",
    },
    "ptx": {
        "w": r"bar|cp\.async\.(wait|commit)|fence|mbarrier|membar|griddepcontrol|wgmma\.(fence|commit|wait)",
        "g": r"(ld|st)\.global|cp\.async|red\.|atom\.(?!shared)",
        "s": r"(ld|st|atom)\.shared|ldmatrix|stmatrix",
        "m": r"mma|wgmma",
        "x": r"ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh|div\.full",
        "l": r"shfl|redux|vote|match",
        "c": r"cvt\.[\w.]*(f16|f32|e4m3|e5m2)",
    },
    "sass": {
        "g": r"LDG|STG|LD\.|ST\.|RED\b|REDG|ATOM\b|ATOMG|UTMA|UBLKCP",
        "s": r"LDS|STS|ATOMS",
        "m": r"[HQIDO]MMA|[HQI]GMMA",
        "x": r"MUFU",
        "l": r"SHFL|REDUX|CREDUX|VOTE|MATCH",
        "c": r"F2F|F2I|I2F|HADD2\.F32",
        "w": r"BAR\b|DEPBAR|LDGDEPBAR|WARPSYNC|SYNCS|MEMBAR|FENCE|WARPGROUP|ACQBULK|PREEXIT|UTMACMDFLUSH",
    },
    "amdgcn": {
        "g": r"(global|buffer|flat)_|s_load",
        "l": r"ds_(b?permute|swizzle)|v_(readlane|readfirstlane|permlane)|\w+_dpp",
        "s": r"ds_",
        "m": r"v_s?mfma",
        "x": r"v_(exp|log|rcp|rsq|sqrt)_",
        "c": r"v_cvt_",
        "w": r"s_barrier|s_waitcnt",
    },
}  # fmt: skip
_CLASS_OF = {
    stage: [(code, re.compile(pattern)) for code, pattern in codes.items()] for stage, codes in _CLASS.items()
}


def opcode(stage: str, text: str) -> str:
    """The opcode of a row, with its dotted parts; "" where it has none (a label, a directive)."""
    match = None if text.endswith(":") else _OPCODE[stage].match(text)
    return match[1] if match else ""


def classes(stage: str, rows: list[str]) -> str:
    """A letter of CLASSES a row."""

    def of(text: str) -> str:
        name = opcode(stage, text)
        return next((code for code, pattern in _CLASS_OF[stage] if name and pattern.match(name)), "-")

    return "".join(map(of, rows))


def loops(stage: str, rows: list[str]) -> list[list[int]]:
    """[first row, last row] of each loop: from a label to the last branch back to it, or an `scf.for`."""
    if stage == "ttgir":
        return _structured_loops(rows)
    labels = {text[:-1].strip(): no for no, text in enumerate(rows) if text.endswith(":")}
    found: dict[int, int] = {}
    for no, text in enumerate(rows):
        jump = _JUMP[stage].search(text)
        first = labels.get(jump[1], no) if jump else no
        if first < no - 1:  # a branch to itself, which ends SASS, is no loop
            found[first] = no
    return [[first, last] for first, last in sorted(found.items())]


def _structured_loops(rows: list[str]) -> list[list[int]]:
    found = []
    for first, text in enumerate(rows):
        if re.search(r"\bscf\.(for|while)\b", text):
            end = " " * (len(text) - len(text.lstrip())) + "}"
            last = next(no for no in range(first + 1, len(rows)) if rows[no].startswith(end))
            found.append([first, last])
    return found


@dataclass(frozen=True)
class Evidence:
    """A compiled kernel: `record` is the content of its file."""

    record: dict

    def __getattr__(self, name: str) -> object:
        """The record's own figures: num_regs, shared_bytes, spilled_bytes, num_warps, triton, ..."""
        if name in self.record:
            return self.record[name]
        raise AttributeError(f"{name!r}: a record has {', '.join(sorted(self.record))}")

    @cached_property
    def machine(self) -> str:
        """The name of the stage that the GPU runs: "sass" or "amdgcn"."""
        return next(stage for stage in self.record["stages"] if stage in MACHINE)

    def rows(self, stage: str = "", loop: bool = False) -> list[str]:
        """The text of a stage (the machine's unless named), or only what is in a loop."""
        content = self.record["stages"][stage or self.machine]
        rows = content["text"].split("\n")
        if not loop:
            return rows
        inside = sorted({no for first, last in content["loops"] for no in range(first, last + 1)})
        return [rows[no] for no in inside]

    def lines(self, stage: str = "") -> Counter[tuple[int, int]]:
        """{(file, line): rows of the stage that come from it}; file: its place among those of `functions`."""
        content = self.record["stages"][stage or self.machine]
        chains, runs = content["chains"], content["runs"]
        found: Counter[tuple[int, int]] = Counter()
        for chain, rows in zip(runs[::2], runs[1::2], strict=True):
            if chain >= 0:
                found[chains[chain][0], chains[chain][1]] += rows
        return found

    def opcodes(self, stage: str = "", loop: bool = False) -> Counter[str]:
        """{opcode: how often it stands in the stage}."""
        stage = stage or self.machine
        return Counter(name for row in self.rows(stage, loop) if (name := opcode(stage, row)))

    def count(self, *wanted: str, stage: str = "", loop: bool = False) -> int:
        """Instructions whose opcode matches any of `wanted`.

        "LDGSTS.128": the first part is LDGSTS (* matches anything), and 128 is among the others.
        """
        found = self.opcodes(stage, loop).items()
        return sum(number for name, number in found if any(_matches(name, one) for one in wanted))

    def count_class(self, name: str, stage: str = "", loop: bool = False) -> int:
        """Instructions of a class: one of CLASSES' values."""
        stage = stage or self.machine
        code = next(code for code, other in CLASSES.items() if other == name)
        return classes(stage, self.rows(stage, loop)).count(code)


def _matches(name: str, wanted: str) -> bool:
    head, *parts = name.split(".")
    wanted_head, *wanted_parts = wanted.split(".")
    return fnmatch.fnmatchcase(head, wanted_head) and set(wanted_parts) <= set(parts)


def kernels(root: Path = ROOT) -> dict[str, list[str]]:
    """{kernel: its targets} of all that was compiled."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / FOLDER).glob("*.json")):
        kernel, target = path.stem.split(".")
        found.setdefault(kernel, []).append(target)
    return {kernel: sorted(targets, key=_target_order) for kernel, targets in found.items()}


def _target_order(target: str) -> tuple[bool, int]:
    return not target.startswith("sm_"), int(re.search(r"\d+", target)[0])


def evidence(kernel: str, target: str, root: Path = ROOT) -> Evidence:
    """The compiled kernel. Raises KeyError, which names what there is, where it was not compiled."""
    path = root / FOLDER / f"{kernel}.{target}.json"
    if not path.is_file():
        there = ", ".join(f"{name} ({' '.join(targets)})" for name, targets in kernels(root).items())
        raise KeyError(f"{kernel}.{target} was not compiled; there are {there or 'none'}")
    return Evidence(json.loads(path.read_text(encoding="utf-8")))


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="kernel.target")
    names = parser.parse_args().names
    if not names:
        print("\n".join(f"{kernel}: {' '.join(targets)}" for kernel, targets in kernels().items()))
    for name in names:
        seen = evidence(*name.split("."))
        print(name, {key: value for key, value in seen.record.items() if isinstance(value, int | str)})
        inside = seen.opcodes(loop=True)
        for code, number in seen.opcodes().most_common():
            print(f"{number:6} {inside[code]:6} in loops  {code}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
