"""A third language is catalogues and nothing else: the book in one that nobody speaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from course_lib.measured.files import load
from course_lib.measured.files import names as measured
from course_lib.measured.tables import title
from tests import pseudo_language
from tests.pseudo_language import LANGUAGE, ROOT
from tools.book import facts, licences

pytestmark = pytest.mark.drill_all  # the whole book once more takes minutes
# What a page shows as it is in every language: code, formulas, the explorer's table, other languages' names.
KEPT = f"script, style, pre, code, kbd, wbr, course-explorer, .math, [lang]:not(html, [lang={LANGUAGE}])"
SPOKEN = ("alt", "aria-label", "placeholder", "title")
# The theme says these itself, in the languages that it knows.
THEMES = (
    "Skip to main content. Back to top. Link to this heading. next page. previous page. Version warning. Main"
)


def words(texts: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]{3,}", texts))


def told(page: str) -> str:
    """Returns what a reader of the language is told on a page."""
    read = BeautifulSoup(page, "html.parser")
    for kept in read.select(KEPT):
        kept.decompose()
    spoken = [element[name] for name in SPOKEN for element in read.select(f"[{name}]")]
    return "\n".join([read.get_text(), *spoken])


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """Returns a checkout with a language more, its catalogues whole, its notebooks and its book built."""
    root = tmp_path_factory.mktemp("course")
    course = pseudo_language.copied_course(root)
    for name in ("tools", ".github"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", root)
    before = {path for path in root.rglob("*") if path.is_file()}
    pseudo_language.add_language(course)
    added = {path for path in root.rglob("*") if path.is_file()} - before
    assert {path.suffix for path in added} == {".po"}
    for tool in ("tools.lesson.build", "tools.book"):  # not executed: pages of lessons without outputs
        environment = {**os.environ, "PYTHONPATH": str(root)}
        subprocess.run([sys.executable, "-m", tool], cwd=root, env=environment, check=True)
    return root


def test_no_text_of_a_page_is_left_in_english(course):
    names = {f"{notice.name} {notice.licence}" for notice in licences.notices(course / "jupyter_book")}
    names |= {package.tested for package in facts.tested_packages(course)}
    names |= {"TensorFlow", "Python", "tf_keras Keras JAX DTensorDataset PyDataset"}
    names |= {value for name in measured() for value in load(name).how.values()}
    names |= set(map(title, list(load("strategies-support").support)[1:]))
    names |= kinds_of_errors("keras_layouts-support") | kinds_of_errors("strategies-support")
    allowed = words(" ".join([THEMES, *names]))
    english, ours = (sorted((course / "build/book" / code).glob("*.html")) for code in ("en", LANGUAGE))
    assert [page.name for page in ours] == [page.name for page in english]
    assert {
        page.name: left for page in ours if (left := words(told(page.read_text("utf-8"))) - allowed)
    } == {}


def kinds_of_errors(name: str) -> set[str]:
    rows = load(name).support.values()
    return {cell.get("message", "").partition(":")[0] for cells in rows for cell in cells.values()}
