"""The HTML of a `compiled` block: a table of what the compiler made, and what compiled.mjs needs for more.

The table is for every reader. The source stands in a `<template>`, which browsers do not show: the script
puts it beside the stage that the reader chooses, whose text it fetches then.
"""

import html
import json
from collections.abc import Callable
from pathlib import Path

from scripts.compiled_evidence import Evidence
from scripts.compiled_source import code_hash
from scripts.library import Library
from scripts.listing import PageError, row_html

GPUS = {"sm_80": "A100", "sm_90": "H100, H200", "sm_120": "RTX 5090", "gfx942": "MI300X"}
FIGURES = ("target", "launch", "registers", "shared_bytes", "spilled", "instructions")
SHOWN = ("global", "shared", "matrix", "special", "lanes", "sync")  # classes that the table counts
WORDS = {
    "zh": {
        "target": "目标", "launch": "warps × stages", "registers": "寄存器",
        "shared_bytes": "shared memory，字节", "spilled": "spill，字节", "instructions": "指令",
        "loop": "循环里的指令", "all": "共", "global": "全局", "shared": "shared", "matrix": "矩阵",
        "special": "exp、倒数", "lanes": "跨 lane", "sync": "同步",
        "stand": "数的是代码里的条数，不是执行的次数。Triton {} 编译，{}，不需要 GPU。",
    },
    "en": {
        "target": "target", "launch": "warps × stages", "registers": "registers",
        "shared_bytes": "shared memory, bytes", "spilled": "spilled, bytes", "instructions": "instructions",
        "loop": "instructions in the loop", "all": "all", "global": "global", "shared": "shared",
        "matrix": "matrix", "special": "exp, 1/x", "lanes": "across lanes", "sync": "sync",
        "stand": "Counts of the code as it stands, not as it runs. Compiled by Triton {}, {}; needs no GPU.",
    },
}  # fmt: skip


def compiled_uri(kernel: str, target: str) -> str:
    """Where a record stands among the site's files."""
    return f"compiled/{kernel}.{target}.json"


def render(names: list[str], library: Library, lang: str, url: Callable[[str], str]) -> str:
    """The block of these kernels. Raises PageError where one is unknown, or not as it was compiled."""
    if not names:
        raise PageError("```compiled names no kernel; wanted one a line, such as 'l2_packed'")
    words = WORDS[lang]
    parts, about = [], {}
    for name in names:
        seen = library.compiled(name)
        first = seen[0]
        spans = [tuple(span) for one in seen for span in one.record["functions"]]
        spans = sorted(dict.fromkeys(spans), key=lambda span: spans.index(span))
        for one in seen:
            if code_hash(library.root, one.record["functions"]) != one.record["code_hash"]:
                raise PageError(
                    f"```compiled {name!r}: its source has changed since it was compiled for "
                    f"{one.record['target']}; run: python scripts/compiled_view.py"
                )
        about[name] = {
            "function": first.record["function"],
            "targets": {
                one.record["target"]: {
                    "gpu": GPUS[one.record["target"]],
                    "url": url(compiled_uri(name, one.record["target"])),
                    "stages": list(one.record["stages"]),
                }
                for one in seen
            },
        }
        parts.append(_table(name, seen, words))
        parts.append(f'<template data-kernel="{name}">{_source(spans, library)}</template>')
    data = html.escape(json.dumps(about, separators=(",", ":")))
    return f'<div class="compiled" data-search-exclude="true" data-compiled="{data}">{"".join(parts)}</div>'


def link(name: str, library: Library) -> str:
    """`kernel.target.stage:MARK` as a link that opens the view at the named line.

    Where the mark spans several lines, it is the one that most of the stage's lines come from.
    """
    stage_name, _, mark = name.partition(":")
    kernel, target, stage = [*stage_name.split("."), "", ""][:3]
    seen = {one.record["target"]: one for one in library.compiled(kernel)}
    if target not in seen or stage not in seen[target].record["stages"]:
        there = ", ".join(f"{one}.{'/'.join(seen[one].record['stages'])}" for one in seen)
        raise PageError(f"'compiled:{name}': {kernel!r} has no {target}.{stage}; it has {there}")
    files = list(dict.fromkeys(path for path, *_ in seen[target].record["functions"]))
    found = [(i, library.source(path)) for i, path in enumerate(files)]
    found = [(i, source) for i, source in found if mark in source.marks]
    if not found:
        raise PageError(f"'compiled:{name}': no line is named {mark!r} in {', '.join(files)}")
    file, source = found[0]
    first, last = source.mark(mark)
    counts = seen[target].lines(stage)
    line = max(range(first, last + 1), key=lambda no: counts[file, no])
    place = f"{stage_name}:{Path(files[file]).stem}:L{line}"
    return f'<a class="line-ref" href="#compiled-{kernel}" data-compiled="{place}">L{line}</a>'


def _table(name: str, seen: list[Evidence], words: dict[str, str]) -> str:
    record = seen[0].record
    plain = "".join(f'<th scope="col" rowspan="2">{words[key]}</th>' for key in FIGURES)
    heads = "".join(f'<th scope="col">{words[key]}</th>' for key in ("all", *SHOWN))
    constants = (f"{key} = {value}" for key, value in record["constants"].items() if value is not None)
    stand = words["stand"].format(record["triton"], ", ".join([record["dtype"], *constants]))
    return (
        f'<div id="compiled-{name}" class="table-scroll" role="region" tabindex="0" '
        f'aria-label="{record["function"]}">'
        f"<table><caption><code>{record['function']}</code> · {record['functions'][0][0]}</caption>"
        f'<thead><tr>{plain}<th scope="colgroup" colspan="{len(SHOWN) + 1}">{words["loop"]}</th></tr>'
        f"<tr>{heads}</tr></thead><tbody>{''.join(map(_row, seen))}</tbody></table></div>"
        f'<p class="provenance"><small>{html.escape(stand)}</small></p>'
    )


def _row(one: Evidence) -> str:
    record = one.record
    figures = [
        f"{record['num_warps']} × {record['num_stages']}",
        record["num_regs"],
        record["shared_bytes"],
        record["spilled_bytes"],
        one.opcodes().total(),
        one.opcodes(loop=True).total(),
        *(one.count_class(kind, loop=True) for kind in SHOWN),
    ]
    cells = "".join(f"<td>{figure}</td>" for figure in figures)
    target = record["target"]
    return f'<tr><th scope="row">{target} <small>{GPUS[target]}</small></th>{cells}</tr>'


def _source(spans: list[tuple[str, int, int]], library: Library) -> str:
    """The functions, file by file: a row a line, with its number."""
    files: dict[str, list[str]] = {}
    for path, first, last in spans:
        source = library.source(path)
        shown = [no for no in source.lines if first <= no <= last]
        while shown and not source.lines[shown[-1]]:
            shown.pop()
        files.setdefault(path, []).extend(
            f'<div data-no="{no}"{" class=first" if i == 0 else ""}>{row_html(source.tokens[no], 0)}</div>'
            for i, no in enumerate(shown)
        )
    return "".join(f'<div data-file="{path}">{"".join(rows)}</div>' for path, rows in files.items())
