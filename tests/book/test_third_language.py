"""A third language is catalogues and nothing else: the book in one that nobody speaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_lib.measured.files import load
from course_lib.measured.files import names as measured
from course_lib.measured.tables import title
from tests import pseudo_language
from tests.book.built_site import served
from tests.course import COURSE
from tests.pseudo_language import LANGUAGE, ROOT
from tools.book import facts, licences

pytestmark = pytest.mark.drill_all  # the whole book once more takes minutes
# What a page shows as it is in every language: code, formulas, the explorer's table, other languages' names.
KEPT = {"script", "style", "pre", "code", "kbd", "course-explorer"}
ALONE = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SPOKEN = ("alt", "aria-label", "placeholder", "title")
# The theme says these itself, in the languages that it knows.
THEMES = (
    "Skip to main content. Back to top. Link to this heading. next page. previous page. Version warning. Main"
)


class Texts(HTMLParser):
    """Collects what a reader of the language is told on a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kept: list[bool] = []
        self.goes_on = False  # a name that may break over lines
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        values, self.goes_on = dict(attrs), tag == "wbr"
        foreign = values.get("lang", LANGUAGE) != LANGUAGE
        if tag not in ALONE:
            self.kept.append(tag in KEPT or foreign or "math" in (values.get("class") or "").split())
        if not any(self.kept):
            self.texts += [values[name] for name in SPOKEN if values.get(name)]

    def handle_endtag(self, tag):
        if tag not in ALONE:
            self.kept.pop()

    def handle_data(self, data):
        if any(self.kept):
            return
        if self.goes_on:
            data = self.texts.pop() + data
        self.texts.append(data)


def words(texts) -> set[str]:
    return set(re.findall(r"[A-Za-z]{3,}", " ".join(texts)))


def run(root: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
    run(root, "tools.lesson.build")  # not executed: pages of lessons without outputs
    run(root, "tools.book")
    return root


def pages(course: Path, language: str) -> dict[str, str]:
    folder = course / "build" / "book" / language
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}


def test_every_page_is_there_and_linked_with_its_twins(course):
    found = pages(course, LANGUAGE)
    assert found.keys() == pages(course, "en").keys()
    for name, page in found.items():
        assert f'<html lang="{LANGUAGE}"' in page
        for language in pseudo_language.Course(course).languages:
            assert re.search(rf'hreflang="{language}" href="[./]*/{language}/{name}"', page), (name, language)
    root = (course / "build" / "book" / "index.html").read_text(encoding="utf-8")
    assert f'href="{LANGUAGE}/index.html"' in root


def test_no_text_of_a_page_is_left_in_english(course):
    names = {f"{notice.name} {notice.licence}" for notice in licences.notices(course / "jupyter_book")}
    names |= {package.tested for package in facts.tested_packages(course)}
    names |= {"TensorFlow", "Python", "tf_keras Keras JAX DTensorDataset PyDataset"}
    names |= {value for name in measured() for value in load(name).how.values()}
    names |= set(map(title, list(load("strategies-support").support)[1:]))
    names |= kinds_of_errors("keras_layouts-support") | kinds_of_errors("strategies-support")
    for name, page in pages(course, LANGUAGE).items():
        assert words(Texts(page).texts) - words([THEMES, *names]) == set(), name


def kinds_of_errors(name) -> set[str]:
    rows = load(name).support.values()
    return {cell.get("message", "").partition(":")[0] for cells in rows for cell in cells.values()}


def test_the_buttons_of_three_languages_fit_on_a_telephone(course, chromium):
    with served(course / "build" / "book") as address:
        page = chromium.new_page(viewport={"width": 390, "height": 844})
        page.goto(f"{address}{LANGUAGE}/{COURSE.topics[0]}.html", wait_until="networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.close()


def test_the_explorer_and_the_notebooks_speak_the_language(course):
    landing = pages(course, LANGUAGE)["index.html"]
    explorer = re.search(r"<course-explorer.*?</course-explorer>", landing, re.S)[0]
    assert pseudo_language.translated("Prediction") in explorer
    assert (course / "build" / "book" / "assets" / f"mesh_layout.{LANGUAGE}.json").is_file()
    assert len(list((course / "notebooks" / LANGUAGE).glob("*.ipynb"))) == len(
        list((course / "lessons").glob("lesson_*/lesson.py"))
    )
