"""Name what a lesson lacks. A lesson is any page docs/<lang>/lessons/<lesson>.md; all else has its name.

A lesson with a skeleton, snippets/drills/<lesson>.py, also has a problem page and an interview page.

python scripts/check_lessons.py
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LANGS = ("zh", "en")
CONFIGS = {"zh": "mkdocs.yml", "en": "mkdocs.en.yml"}
# What belongs to every lesson; {lang} stands for each language.
PARTS = (
    "docs/{lang}/lessons/{lesson}.md",
    "docs/{lang}/notebooks/{lesson}.py",
    "docs/{lang}/notebooks/{lesson}.ipynb",
    "kernels/{lesson}.py",
    "tests/kernels/test_{lesson}.py",
)
# What belongs to every lesson that is drilled: folders of pages, in the nav and linked from the lesson.
DRILL_PAGES = ("problems", "interviews")


def lessons(root: Path = ROOT) -> list[str]:
    """Every lesson that has a page in any language."""
    return sorted({page.stem for lang in LANGS for page in root.glob(f"docs/{lang}/lessons/*.md")})


def missing(lesson: str, root: Path = ROOT) -> list[str]:
    """What this lesson lacks, one line each."""
    paths = [part.format(lesson=lesson, lang=lang) for part in PARTS for lang in LANGS]
    lacks = [f"no {path}" for path in dict.fromkeys(paths) if not (root / path).is_file()]
    for lang, config in CONFIGS.items():
        if f"lessons/{lesson}.md" not in (root / config).read_text(encoding="utf-8"):
            lacks.append(f"not in the nav of {config}")
        page = root / f"docs/{lang}/lessons/{lesson}.md"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        wanted = {
            f"kernel: kernels/{lesson}.py": "front matter that names its kernel",
            f"notebooks/{lesson}.ipynb": "link to its notebook",
        }
        lacks += [
            f"no {what} in {page.relative_to(root)}" for sign, what in wanted.items() if sign not in text
        ]
    if (root / f"snippets/drills/{lesson}.py").is_file():
        lacks += missing_of_drill(lesson, root)
    kernel = root / f"kernels/{lesson}.py"
    if kernel.is_file() and not re.search(r"^\s*# region \w", kernel.read_text(encoding="utf-8"), re.M):
        lacks.append(f"no region in kernels/{lesson}.py, so that no page can show a part of it")
    return lacks


def missing_of_drill(lesson: str, root: Path = ROOT) -> list[str]:
    """What a lesson with a skeleton lacks of its problem page and its interview page, one line each."""
    lacks = []
    for lang, config in CONFIGS.items():
        nav = (root / config).read_text(encoding="utf-8")
        lesson_page = root / f"docs/{lang}/lessons/{lesson}.md"
        text = lesson_page.read_text(encoding="utf-8") if lesson_page.is_file() else ""
        for folder in DRILL_PAGES:
            page = f"{folder}/{lesson}.md"
            if not (root / f"docs/{lang}/{page}").is_file():
                lacks.append(f"no docs/{lang}/{page}, though snippets/drills/{lesson}.py is there")
                continue
            if page not in nav:
                lacks.append(f"{page} is not in the nav of {config}")
            if f"../{page}" not in text:
                lacks.append(f"no link to ../{page} in docs/{lang}/lessons/{lesson}.md")
    return lacks


def main() -> int:
    """The command line; exit status 1 if anything is missing."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    found = [f"{lesson}: {what}" for lesson in lessons() for what in missing(lesson)]
    print("\n".join(found) or f"{len(lessons())} lessons, none lacks anything")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
