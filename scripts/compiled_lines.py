"""The text of each stage of a compilation as rows, each with the source lines that its line table gives it.

A row's chain is the places that it came from, innermost first: the line of an inlined function, then the
line that called it, and so on. What the tables do not place (constants, labels) has an empty chain.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

Place = tuple[str, int]  # file, line


class Row(NamedTuple):
    """One line of a stage."""

    text: str
    chain: tuple[Place, ...] = ()


PLACE = re.compile(r"([\w.]+):(\d+):\d+")
ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)$")
SASS_NOTE = re.compile(r'//## File "\.nv_debug_ptx_txt", line (\d+)')
SASS_ROW = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")


def ttgir_rows(text: str) -> Iterator[Row]:
    """Triton's GPU IR without its `loc(...)`; an op that has a region is placed where the region ends."""
    aliases = dict(match.groups() for line in text.splitlines() if (match := ALIAS.match(line)))
    rows, heads = [], []
    for line in text.splitlines():
        if not line.strip() or ALIAS.match(line):
            continue
        shown, locations = _without_locations(line)
        closes, opens = shown.lstrip().startswith("}"), shown.endswith(("{", "({"))
        chain = _resolve(locations[-1], aliases) if locations else ()
        if closes and heads:
            head = heads.pop()
            chain = chain or rows[head].chain
            rows[head] = rows[head]._replace(chain=chain)
        if opens:
            heads.append(len(rows))
        pieces = re.split(r"(?<=,) (?=%)", shown) if "tt.func" in shown else [shown]
        rows += [Row(piece if i == 0 else " " * 6 + piece, chain) for i, piece in enumerate(pieces)]
    return iter(rows)


def _without_locations(line: str) -> tuple[str, list[str]]:
    """(the line without `loc(...)`, what stood in their parentheses, which nest)."""
    kept, found, end = [], [], 0
    while (start := line.find(" loc(", end)) >= 0:
        kept.append(line[end:start])
        end, depth = start + 5, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        found.append(line[start + 5 : end - 1])
    return ("".join(kept) + line[end:]).rstrip(), found


def _resolve(location: str, aliases: dict[str, str]) -> tuple[Place, ...]:
    """The chain of an MLIR location: a place, a name for one, a call site, or an alias of one of these."""
    if location.startswith("#loc"):
        return _resolve(aliases[location], aliases)
    if match := re.fullmatch(r'"([^"]*)":(\d+):\d+', location):
        return ((match[1], int(match[2])),)
    if match := re.fullmatch(r"callsite\((#loc\d*) at (#loc\d*)\)", location):
        return _resolve(match[1], aliases) + _resolve(match[2], aliases)
    if match := re.fullmatch(r'"[^"]*"\((#loc\d*)\)', location):
        return _resolve(match[1], aliases)
    if match := re.fullmatch(r"fused\[(#loc\d*).*\]", location):
        return _resolve(match[1], aliases)
    if location == "unknown":
        return ()
    raise ValueError(f"location {location!r}: wanted a place, a name, a call site or an alias")


def _assembly_chains(text: str, files: dict[str, str]) -> Iterator[tuple[str, tuple[Place, ...]]]:
    """(line, chain) of PTX or AMDGCN. LLVM writes the whole chain in a comment behind each `.loc`."""
    chain: tuple[Place, ...] = ()
    for line in text.splitlines():
        if line.lstrip().startswith(".loc"):
            places = [(files.get(name, name), int(no)) for name, no in PLACE.findall(line)]
            chain = tuple(place for place in places if place[1])
        yield line, chain


def _files(text: str) -> dict[str, str]:
    """{file name: its full path}, as the `.file` directives say; LLVM's comments give names alone."""
    found = re.findall(r'\.file\s+\d+ "([^"]+)"(?: "([^"]+)")?', text)
    paths = [f"{folder}/{name}" if name else folder for folder, name in found]
    return {path.rpartition("/")[2]: path for path in paths}


def ptx_rows(text: str) -> Iterator[Row]:
    """PTX without comments, debug labels and directives."""
    for line, chain in _assembly_chains(text, _files(text)):
        shown = line.partition("//")[0].rstrip().expandtabs(4)
        if re.match(r"\s*\.(file|section)\b", shown):
            return
        if shown.strip() and not re.match(r"\s*(\.loc\b|\$L__(tmp|func_))", shown):
            yield Row(re.sub(r"(\S) {2,}", r"\1 ", shown), () if shown.endswith(":") else chain)


def amdgcn_rows(text: str) -> Iterator[Row]:
    """The code of the one function in AMDGCN assembly, without comments, debug labels and directives."""
    begun = False
    for line, chain in _assembly_chains(text, _files(text)):
        begun = begun or line.startswith(".Lfunc_begin0")
        shown = line.partition(";")[0].rstrip().expandtabs(4)
        if re.match(r"\s*\.section\b", shown) and begun:
            return
        if begun and shown.strip() and not re.match(r"\s*\.(?!LBB)", shown):
            yield Row(shown, () if shown.endswith(":") else chain)


def sass_rows(disassembly: str, ptx: str) -> Iterator[Row]:
    """What `nvdisasm -gp` prints: the machine code, by the line of PTX that each instruction came from.

    The chain is that of the PTX line: the cubin's own table of source lines knows no call sites.
    """
    chains = [(), *(chain for _, chain in _assembly_chains(ptx, _files(ptx)))]
    chain: tuple[Place, ...] = ()
    rows = []
    for line in disassembly.splitlines():
        if match := SASS_NOTE.search(line):
            chain = chains[int(match[1])]
        elif match := SASS_ROW.match(line):
            rows.append(Row("    " + re.sub(r"\s+", " ", match[1]), chain))
        elif re.match(r"\.L_x_\d+:", line):
            rows.append(Row(line))
    while rows and rows[-1].text.strip() in ("NOP", ""):  # fills the last block of memory
        rows.pop()
    return iter(rows)
