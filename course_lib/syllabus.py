"""The lessons: in which parts they lie, in which order they are read, and so which number each has.

Lessons are found as plug-ins are: the package `lessons` is looked up where it is installed, and its
`order.toml` names the topics. Here the library meets lessons: `module` imports what is theirs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE, ORDER = "lessons", "order.toml"
# How a text names a lesson: the words before its number, which are translated; {number:a_run} has none.
LESSON, APPENDIX = "lesson {number}", "appendix {number}"
LESSON_AT_THE_START, APPENDIX_AT_THE_START = "Lesson {number}", "Appendix {number}"
WORDS = (LESSON, LESSON_AT_THE_START, APPENDIX, APPENDIX_AT_THE_START)
REFERENCE = re.compile(r"\{(lesson|Lesson|number|notebook):(\w+)\}")


@dataclass(frozen=True)
class Place:
    """The place of a lesson among all.

    Attributes:
        topic: what the lesson is called everywhere: its folder, cards, exercises, page.
        part: the part of the course that it belongs to.
        number: how many lessons come before it, such as "4"; in an appendix "A1".
        about: what it teaches, in a sentence.
        folder: where all that belongs to it lies.
        is_appendix: whether it runs in the environment of the appendices, without course_lib.
    """

    topic: str
    part: str
    number: str
    about: str
    folder: Path
    is_appendix: bool = False

    @property
    def notebook(self) -> str:
        """The file name of its notebooks, which folders list in the order of the lessons."""
        return f"{self.number.rjust(2, '0')}_{self.topic}.ipynb"


@dataclass(frozen=True)
class Part:
    """A part of the course, with its title and its lessons in order."""

    name: str
    title: str
    places: tuple[Place, ...]


def parts(lessons: Path) -> tuple[Part, ...]:
    """Returns the parts of the course whose lessons lie in a folder, in order.

    Raises:
        FileNotFoundError: the folder has no `order.toml`.
    """
    return _parts((lessons / ORDER).read_text("utf-8"), lessons)


def order(lessons: Path) -> dict[str, Any]:
    """Returns what the order of the lessons in a folder says."""
    return tomllib.loads((lessons / ORDER).read_text("utf-8"))


@cache
def _parts(text: str, lessons: Path) -> tuple[Part, ...]:
    told = tomllib.loads(text)
    found: list[Part] = []
    number = told["first_number"]
    for name, part in told["parts"].items():
        letter = part.get("letter", "")
        first = 1 if letter else number
        places = tuple(
            Place(topic, name, f"{letter}{at}", about, lessons / name / topic, is_appendix=bool(letter))
            for at, (topic, about) in enumerate(part["lessons"].items(), start=first)
        )
        number += 0 if letter else len(places)
        found.append(Part(name, part["title"], places))
    return tuple(found)


def places(lessons: Path) -> tuple[Place, ...]:
    """Returns the places of all lessons of a folder, in order."""
    return tuple(place for part in parts(lessons) for place in part.places)


def folders() -> list[Path]:
    """Returns the folders in which lessons are installed beside this library."""
    package = find_spec(PACKAGE)
    return [Path(folder) for folder in package.submodule_search_locations or ()] if package else []


def installed() -> tuple[Place, ...]:
    """Returns the places of the lessons that are installed beside this library."""
    return tuple(place for folder in folders() for place in places(folder))


def find(topic: object) -> Place | None:
    """Returns the place of an installed lesson; None where there is none of that topic."""
    return next((place for place in installed() if place.topic == topic), None)


def module(name: str) -> Any:
    """Returns a module of an installed lesson, such as "communication.ring", whatever part that belongs to.

    Raises:
        LookupError: there is no such lesson.
    """
    topic, _dot, inner = name.partition(".")
    place = find(topic)
    if place is None:
        raise LookupError(f"there is no lesson {topic!r}")
    return import_module(".".join(filter(None, (PACKAGE, place.part, topic, inner))))


def resolved(text: str, known: Iterable[Place], translate: Callable[[str], str]) -> str:
    """Returns a text with the number of each lesson that it refers to.

    Args:
        text: as written: {lesson:a_run} becomes "lesson 4", {Lesson:a_run} begins with a capital letter,
            {number:a_run} is the number alone, {notebook:a_run} the file.
        known: the places of the lessons.
        translate: gives the reader's words for those of `WORDS`.

    Raises:
        LookupError: there is no such lesson.
    """
    if not REFERENCE.search(text):
        return text
    by_topic = {place.topic: place for place in known}

    def of(reference: re.Match[str]) -> str:
        form, topic = reference.groups()
        if topic not in by_topic:
            raise LookupError(f"{reference[0]}: there is no lesson {topic!r}")
        return _said(by_topic[topic], form, translate)

    return REFERENCE.sub(of, text)


def _said(place: Place, form: str, translate: Callable[[str], str]) -> str:
    match form:
        case "number":
            return place.number
        case "notebook":
            return place.notebook
        case "lesson":
            words = APPENDIX if place.is_appendix else LESSON
        case _:
            words = APPENDIX_AT_THE_START if place.is_appendix else LESSON_AT_THE_START
    return translate(words).format(number=place.number)
