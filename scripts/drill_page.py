"""What pages show of drills and mutants: hints in steps, wrong kernels with what the checks say of them."""

import html
from dataclasses import replace

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer

from scripts import mutant_files, skeletons
from scripts.diagnose import describe
from scripts.listing import PageError, render
from scripts.mutant_files import Mutant

WORDS = {
    "zh": {
        "hint": "提示 {} / {}", "solution": "提示 {0} / {0}：答案", "mutant": "写错的 kernel：{}",
        "diff": "与正确 kernel 的差别", "says": "检查的输出",
    },
    "en": {
        "hint": "Hint {} of {}", "solution": "Hint {0} of {0}: the solution", "mutant": "A wrong kernel: {}",
        "diff": "Difference to the right kernel", "says": "What the check says",
    },
}  # fmt: skip


def hints(lesson: str, level: str, lang: str) -> list[tuple[str, str]]:
    """(title, Markdown) of every hint of a level but the last, which is the solution."""
    texts = skeletons.hints(lesson, level, lang)
    title = WORDS[lang]["hint"].format
    return [(title(number, len(texts) + 1), text) for number, text in enumerate(texts, 1)]


def solution(lesson: str, level: str, lang: str, source_page: str) -> tuple[str, list[str]]:
    """Title of the last hint, and a listing of each part that the reader writes."""
    skeleton = skeletons.load(lesson, level)
    count = len(skeletons.hints(lesson, level, lang)) + 1
    listings = []
    for number, (span, _) in enumerate(skeleton.cuts, 1):
        source = replace(skeleton.source, sections={"part": span})
        listings.append(render(source, "part", source_page, f"{lesson}-{level}-{number}-"))
    return WORDS[lang]["solution"].format(count), listings


def mutant(mutant_id: str, lang: str) -> str:
    """A wrong kernel, folded: its diff, and what the check really said of it."""
    one, report = _found(mutant_id)
    words, name = WORDS[lang], one.name[lang]
    diff = _block(_colours(one.diff()), f"{words['diff']}: {name}")
    said = _block(_said(report, mutant_id, lang), f"{words['says']}: {name}")
    inside = f"<p>{words['diff']}</p>{diff}<p>{words['says']}</p>{said}"
    return _folded(words["mutant"].format(name), inside)


def pitfall(mutant_id: str, lang: str) -> str:
    """The lines of a wrong kernel that are wrong, and, folded, what the check really said of it."""
    one, report = _found(mutant_id)
    words, name = WORDS[lang], one.name[lang]
    said = _block(_said(report, mutant_id, lang), f"{words['says']}: {name}")
    return _block(_colours(one.changes()), f"{words['diff']}: {name}") + _folded(words["says"], said)


def _found(mutant_id: str) -> tuple[Mutant, dict]:
    """A mutant, and the committed report of its run."""
    try:
        one = mutant_files.load(mutant_id)
    except mutant_files.MutantError as error:
        raise PageError(str(error)) from error
    report = mutant_files.recorded().get(mutant_id)
    if report is None:
        path = mutant_files.RECORD.relative_to(mutant_files.ROOT)
        raise PageError(f"{path} has no {mutant_id!r}; run: python scripts/mutants.py record")
    return one, report


def _said(report: dict, mutant_id: str, lang: str) -> str:
    command = f"python scripts/mutants.py run {mutant_id} --lang {lang}"
    return html.escape(f"$ {command}\n{describe(report, lang)}")


def _colours(diff: str) -> str:
    return highlight(diff, DiffLexer(), HtmlFormatter(nowrap=True))


def _block(text: str, label: str) -> str:
    return (
        '<div class="highlight" data-search-exclude="true"><pre><code tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}">{text}</code></pre></div>'
    )


def _folded(summary: str, inside: str) -> str:
    return (
        f'<details class="bug" data-search-exclude="true"><summary>{html.escape(summary)}</summary>'
        f"{inside}</details>"
    )
