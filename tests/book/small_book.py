"""The book of the small course, whose lesson stands before those that the book's pages refer to."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from unittest.mock import patch

from course_lib.exercises.cards import Card
from course_lib.exercises.questions import parsed
from tests import small_course
from tests.small_course import LESSON, ROOT
from tools.book import __main__ as book
from tools.book.explorers import write_tables
from tools.book.pages import Sources
from tools.lesson.sources import Course

NOTEBOOK = "00_fixture.ipynb"
REPOSITORY = "https://github.com/someone/some-course"
PART = '\n[parts.small]\ntitle = "Small"\nlessons = {fixture = "Halves."}\n\n[parts.'


def executed_course(folder: Path) -> Course:
    """Returns the small course in a folder, executed, with the order and the words of the whole one."""
    course = small_course.copied(folder)
    shutil.copytree(ROOT / "lessons" / "locale", folder / "lessons" / "locale", dirs_exist_ok=True)
    order = (ROOT / "lessons" / "order.toml").read_text("utf-8")
    (folder / "lessons" / "order.toml").write_text(order.replace("\n[parts.", PART, 1), "utf-8")
    small_course.execute(course)
    return course


def sources(course: Course) -> Sources:
    """Returns what the book of the course is made from."""
    return Sources(ROOT, Course(course.root, REPOSITORY))


def build(folder: Path, course: Course) -> None:
    """Builds the book into `folder / "site"`."""
    asked = {cell.cell_id: cell.asked for cell in course.lesson(LESSON).cells if "predict" in cell.tags}
    names = {name: name.replace("predict", LESSON) for name in asked}
    cards = {names[name]: partial(Card, parsed(text, names[name])) for name, text in asked.items()}
    with patch.object(book, "write_tables", partial(write_tables, makers=cards)):
        book.build_book(sources(course), folder / "work", folder / "site")
