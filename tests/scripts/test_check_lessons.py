"""The check that names what a lesson lacks."""

import shutil

from scripts.check_lessons import ROOT, lessons, missing, missing_of_drill


def test_our_lessons_lack_nothing():
    assert {"online_softmax", "l2_paged_decode", "l3_split_kv_decode", "l7_fast_decode"} <= set(lessons())
    assert [f"{lesson}: {what}" for lesson in lessons() for what in missing(lesson)] == []


def test_a_new_page_is_told_all_that_it_lacks(tmp_path):
    for config in ("mkdocs.yml", "mkdocs.en.yml"):
        shutil.copy(ROOT / config, tmp_path / config)
    page = tmp_path / "docs/zh/lessons/l9_new.md"
    page.parent.mkdir(parents=True)
    page.write_text("# L9\n")
    assert lessons(tmp_path) == ["l9_new"]
    assert missing("l9_new", tmp_path) == [
        "no docs/en/lessons/l9_new.md",
        "no docs/zh/notebooks/l9_new.py",
        "no docs/en/notebooks/l9_new.py",
        "no docs/zh/notebooks/l9_new.ipynb",
        "no docs/en/notebooks/l9_new.ipynb",
        "no kernels/l9_new.py",
        "no tests/kernels/test_l9_new.py",
        "not in the nav of mkdocs.yml",
        "no front matter that names its kernel in docs/zh/lessons/l9_new.md",
        "no link to its notebook in docs/zh/lessons/l9_new.md",
        "not in the nav of mkdocs.en.yml",
        "no front matter that names its kernel in docs/en/lessons/l9_new.md",
        "no link to its notebook in docs/en/lessons/l9_new.md",
    ]


def test_a_drilled_lesson_without_its_pages_is_named(tmp_path):
    for config in ("mkdocs.yml", "mkdocs.en.yml"):
        (tmp_path / config).write_text("lessons/l9_new.md")
    for file in ("snippets/drills/l9_new.py", "docs/zh/lessons/l9_new.md", "docs/zh/problems/l9_new.md"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("x = 1\n")
    wanted = [
        "problems/l9_new.md is not in the nav of mkdocs.yml",
        "no link to ../problems/l9_new.md in docs/zh/lessons/l9_new.md",
        "no docs/zh/interviews/l9_new.md, though snippets/drills/l9_new.py is there",
        "no docs/en/problems/l9_new.md, though snippets/drills/l9_new.py is there",
        "no docs/en/interviews/l9_new.md, though snippets/drills/l9_new.py is there",
    ]
    assert missing_of_drill("l9_new", tmp_path) == wanted
    assert set(wanted) <= set(missing("l9_new", tmp_path))


def test_a_lesson_without_a_skeleton_needs_no_such_pages(tmp_path):
    for config in ("mkdocs.yml", "mkdocs.en.yml"):
        (tmp_path / config).write_text("lessons/l9_new.md")
    assert not [what for what in missing("l9_new", tmp_path) if "problems" in what or "interviews" in what]


def test_a_kernel_without_regions_is_named(tmp_path):
    for config in ("mkdocs.yml", "mkdocs.en.yml"):
        (tmp_path / config).write_text("lessons/l9_new.md")
    kernel = tmp_path / "kernels/l9_new.py"
    kernel.parent.mkdir()
    kernel.write_text("x = 1\n")
    lacks = missing("l9_new", tmp_path)
    assert "no region in kernels/l9_new.py, so that no page can show a part of it" in lacks
