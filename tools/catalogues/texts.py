"""Every English text that a translator has to see: in lessons, tools, library and book."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from babel.messages.extract import extract

from course_lib.exercises import questions
from course_lib.syllabus import ORDER, Part
from tools.cases.strategies.table import features
from tools.catalogues.files import WHOLE_CELL, Text
from tools.lesson import comments, exercises, markdown_blocks, texts
from tools.lesson.sources import Course, Lesson

_KEYWORDS = {"_": None, "later": None, "ngettext": (1, 2)}


def lesson_texts(lesson: Lesson) -> Iterator[Text]:
    """Yields the texts of a lesson's source, cell by cell.

    Raises:
        LessonError: an exercise without a solution.
    """
    for cell in lesson.cells:
        if cell.asked:
            for text in questions.parsed(cell.asked).texts():
                if markdown_blocks.is_prose(text):
                    yield Text(text, cell.cell_id)
        elif cell.kind == "markdown":
            if any(markdown_blocks.blocks(cell.source)):
                yield Text(markdown_blocks.joined(cell.source), cell.cell_id, WHOLE_CELL)
        elif "setup" in cell.tags:
            yield from [Text(texts.OTHER_KERNEL, cell.cell_id)] if lesson.is_appendix else []
        else:
            code = exercises.solution(cell.source) if "exercise" in cell.tags else cell.source
            for _line, _column, words in comments.comments(code):
                yield Text(words, cell.cell_id, "comment in code")


def code_texts(course: Course, files: Iterable[Path]) -> Iterator[Text]:
    """Yields the literal texts of every `_("...")` and `ngettext("...", "...", n)` in some Python files."""
    for path in sorted(files):
        place = path.relative_to(course.root).as_posix()
        with path.open("rb") as lines:
            for _line, english, _comments, _context in extract("python", lines, keywords=_KEYWORDS):
                one, many = english if isinstance(english, tuple) else (english, "")
                yield Text(one, place, is_format="{" in one + many, plural=many)


def _order_texts(course: Course) -> Iterator[Text]:
    for part in course.parts:
        yield Text(part.title, f"lessons/{ORDER}")
        yield from (Text(place.about, f"lessons/{ORDER}", place.topic) for place in part.places)


def book_texts(course: Course) -> Iterator[Text]:
    """Yields the texts of the book's own pages: prose, `_("...")` in their templates, the site's frame."""
    book = course.root / "jupyter_book"
    read = markdown_blocks.page_parser()
    for path in sorted(book.glob("pages/*.md")):
        for block in markdown_blocks.blocks(path.read_text("utf-8"), read):
            yield Text(block.text, path.name)
        with path.open("rb") as lines:
            for _line, english, _comments, _context in extract("jinja2", lines, keywords=_KEYWORDS):
                yield Text(str(english), path.name)
    for feature in features():
        for english in (feature.group, feature.label, feature.documented):
            if re.sub("`[^`]+`", "", english).strip(" ,"):  # code alone is the same in every language
                yield Text(english, "features.md")
    for name, english in yaml.safe_load((book / "strings.yml").read_text("utf-8")).items():
        yield Text(english, "strings.yml", name)


def _shared_files(course: Course, part: Part) -> list[Path]:
    """Returns the Python files of a part that are in no lesson's folder."""
    topics = {place.topic for place in part.places}
    folder = course.root / "lessons" / part.name
    return [path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in topics]


def catalogues(course: Course) -> dict[str, list[Text]]:
    """Returns the texts of every catalogue, by its path from the course's root with `{language}` in it.

    Raises:
        LessonError: as `lesson_texts`.
    """
    found = {
        course.shared_catalogue("{language}"): [
            *(Text(english, "tools/lesson/texts.py") for english in texts.ALL),
            *_order_texts(course),
        ]
    }
    for part in course.parts:
        shared = list(code_texts(course, _shared_files(course, part)))
        found |= {course.root / "lessons" / part.name / "{language}.po": shared} if shared else {}
    for lesson in course.lessons():
        texts_of_code = code_texts(course, course.folder(lesson.topic).rglob("*.py"))
        found[course.catalogue("{language}", lesson.topic)] = [*lesson_texts(lesson), *texts_of_code]
    if (course.root / "course_lib").exists():
        library = course.root / "course_lib"
        found[library / "locale" / "{language}.po"] = list(code_texts(course, library.rglob("*.py")))
    if (course.root / "jupyter_book").exists():
        found[course.root / "jupyter_book" / "locale" / "{language}.po"] = list(book_texts(course))
    return {path.relative_to(course.root).as_posix(): of_one for path, of_one in found.items()}
