"""What a page shows of a program that it can run, until the reader presses a button.

The panel has a title, buttons and the listing of the program's case. The program itself is a text file beside
the pages, which docs/assets/javascripts/runner fetches with all else on the first press.
"""

import html
import json
from collections.abc import Callable

from scripts import skeletons
from scripts.run_program import case_path

WORDS = {
    "zh": {
        "title": "在这一页运行", "run": "运行", "check": "检查", "edit": "编辑", "level": "级别",
        "lesson": "这一课的 kernel，加上下面的小例子，由 Triton 自己的解释器在浏览器里执行，不需要 GPU。"
                  "改几行，再运行一次。",
        "problem": "骨架，加上下面的小例子，在浏览器里执行，不需要 GPU。“检查”用的是 {drill} 的小用例，"
                   "报的错也一样。",
        "off": "没有 JavaScript，这里只能看，不能运行。在自己的机器上，到仓库根目录执行 {command}。",
        "failed": "取不到运行要用的文件，请检查网络后再按一次",
    },
    "en": {
        "title": "Run it in this page", "run": "Run", "check": "Check", "edit": "Edit", "level": "Level",
        "lesson": "The kernel of this lesson and the small case below, in Triton's own interpreter, in your "
                  "browser; no GPU is needed. Change some lines and run it again.",
        "problem": "The skeleton and the small case below, in your browser; no GPU is needed. Check takes "
                   "the small cases of {drill}, and says the same of a mistake.",
        "off": "Without JavaScript this can be read, but not run. On your own machine, in the root of the "
               "repository: {command}.",
        "failed": "Cannot read what is needed to run it; check the network and press again",
    },
}  # fmt: skip
ACTS = ("run", "check", "edit")


def program_uri(lesson: str, level: str) -> str:
    """Where the text of a program stands among the docs."""
    return f"programs/{lesson}{f'.{level}' if level else ''}.txt"


def levels_shown(lesson: str, level: str) -> list[str]:
    """What a panel lets the reader choose: every level of the problem, or the solution ("") alone."""
    return skeletons.levels(lesson) if level else [""]


def panel(lesson: str, level: str, lang: str, listing: str, url: Callable[[str], str]) -> str:
    """The panel's HTML. listing: of the case; url: from a place among the docs to one from the page."""
    words = WORDS[lang]
    first = skeletons.levels(lesson)[0]  # what a solution is checked as
    programs = [
        {"level": one, "checkedAs": one or first, "url": url(program_uri(lesson, one))}
        for one in levels_shown(lesson, level)
    ]
    about = html.escape(json.dumps({"lesson": lesson, "programs": programs}))
    module = case_path(lesson, level).removesuffix(".py").replace("/", ".")
    alone = f"TRITON_INTERPRET=1 .venv/bin/python -m {module}"
    text = words["problem" if level else "lesson"].format(drill="<code>make drill</code>")
    off = words["off"].format(command=f"<code>{f'make drill L={lesson}' if level else alone}</code>")
    buttons = [f'<button type="button" data-act="{act}" disabled>{words[act]}</button>' for act in ACTS]
    return (
        f'<section class="runner" aria-label="{words["title"]}" data-search-exclude="true" '
        f'data-runner="{about}" data-failed="{words["failed"]}">'
        f'<p class="runner-title"><strong>{words["title"]}</strong> {text}</p>'
        f'<div class="runner-buttons">{_choice(lesson, level, words["level"])}{"".join(buttons)}</div>'
        f'<p class="runner-status" role="status"></p>'
        f'<noscript><p class="runner-off">{off}</p></noscript>{listing}</section>'
    )


def _choice(lesson: str, level: str, label: str) -> str:
    """The levels, to choose from; nothing where there is one program."""
    if not level:
        return ""
    options = (
        f"<option{' selected' if one == level else ''}>{html.escape(one)}</option>"
        for one in skeletons.levels(lesson)
    )
    return f'<label>{label} <select autocomplete="off">{"".join(options)}</select></label>'
