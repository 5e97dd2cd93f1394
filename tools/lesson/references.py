"""References to lessons in texts, written by topic and read by number: {lesson:a_run} becomes "lesson 4"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from course_lib.syllabus import Place

# The words before a number, which are translated; {number:a_run} has none.
LESSON, APPENDIX = "lesson {number}", "appendix {number}"
LESSON_AT_THE_START, APPENDIX_AT_THE_START = "Lesson {number}", "Appendix {number}"
WORDS = (LESSON, LESSON_AT_THE_START, APPENDIX, APPENDIX_AT_THE_START)

_REFERENCE = re.compile(r"\{(lesson|Lesson|number|notebook):([a-z]\w*)\}")
_MISSPELT = re.compile(r"\{ ?(?:[Ll]essons?|[Nn]otebook|Number) ?[:}][^}]*\}?")


def topics(text: str) -> set[str]:
    """Returns the topics of the lessons that a text refers to, in whatever form."""
    return {topic for _form, topic in _REFERENCE.findall(text)}


def resolved(text: str, places: Iterable[Place], translate: Callable[[str], str]) -> str:
    """Returns a text with the number of each lesson that it refers to.

    Args:
        text: as written: {lesson:a_run} becomes "lesson 4", {Lesson:a_run} begins with a capital letter,
            {number:a_run} is the number alone, {notebook:a_run} the file.
        places: those of the lessons.
        translate: gives the reader's words for those of `WORDS`.

    Raises:
        LookupError: there is no such lesson, or a reference is not written so.
    """
    if "{" not in text:
        return text
    by_topic = {place.topic: place for place in places}

    def of(reference: re.Match[str]) -> str:
        form, topic = reference.groups()
        if topic not in by_topic:
            raise LookupError(f"{reference[0]}: there is no lesson {topic!r}")
        return _said(by_topic[topic], form, translate)

    read = _REFERENCE.sub(of, text)
    if left := _MISSPELT.search(read):
        raise LookupError(f"{left[0]} is no reference to a lesson: write one as {{lesson:a_run}}")
    return read


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
