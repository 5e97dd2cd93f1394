"""The maps of the lessons in the READMEs: a row each, made from the order and from what the lessons say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.lesson.sources import SOURCE_LANGUAGE, Course, Lesson, LessonError
from tools.lesson.texts import HEADINGS, translations

_BEGIN, _END = "<!-- lessons -->\n", "<!-- end of lessons -->\n"


def maps(course: Course) -> Iterator[tuple[Path, str]]:
    """Yields each README, and its text with the map as it should be; only where all its notebooks are built.

    Raises:
        LessonError: a README has no place for the map.
    """
    for language in course.languages:
        path = course.root / ("README.md" if language == SOURCE_LANGUAGE else f"README.{language}.md")
        built = all(course.notebook(language, place.topic).exists() for place in course.places)
        if built and path.exists():
            before, begin, rest = path.read_text("utf-8").partition(_BEGIN)
            _old, end, after = rest.partition(_END)
            if not end:
                raise LessonError(f"{path.name} has no map between {_BEGIN.strip()} and {_END.strip()}")
            yield path, "".join((before, begin, _map(course, language), end, after))


def minutes(lesson: Lesson) -> int:
    """Returns how many minutes a lesson says that it takes."""
    return int(re.findall(r"(\d+) minutes", lesson.cells[0].source)[0])


def _map(course: Course, language: str) -> str:
    translate = translations(course.shared_catalogue(language))
    rows = [list(map(translate, HEADINGS)), ["---"] * len(HEADINGS)]
    for lesson in course.lessons():
        title = course.title(language, lesson.topic)
        link = f"[{title}](notebooks/{language}/{lesson.place.notebook})"
        rows.append([link, course.resolved(translate(lesson.place.about), translate), str(minutes(lesson))])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
