"""Where a lesson stands in the course, and what comes next on each way through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.lesson.maps import minutes
from tools.lesson.sources import Course


def places(
    course: Course,
    ways: Mapping[str, Sequence[str]],
    parts: Mapping[str, Mapping[str, str]],
    strings: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """Returns for each lesson's page what it says of its place.

    Args:
        course: the lessons.
        ways: the name of each way, and the topics of its lessons.
        parts: the lessons of an edition: the title of each part, and the title of each topic in it.
        strings: the texts of that edition's frame.

    Returns:
        For each topic `text`, where it stands, and `ways`: of each way `name`, `skipped`, and as `next` the
        topic and the title of the lesson that follows on it, or None.
    """
    titles = {topic: title for lessons in parts.values() for topic, title in lessons.items()}
    order = list(titles)
    last = max(int(place.number) for place in course.places if not place.is_appendix)
    found = {}
    for title, lessons in parts.items():
        for topic in lessons:
            lesson = course.lesson(topic)
            text = strings["place_of_appendix" if lesson.is_appendix else "place"]
            said = text.format(number=lesson.place.number, last=last, part=title, minutes=minutes(lesson))
            found[topic] = {
                "text": said,
                "ways": list(_onward(topic, order, ways, titles)) if not lesson.is_appendix else [],
            }
    return found


def _onward(
    topic: str, order: Sequence[str], ways: Mapping[str, Sequence[str]], titles: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for name, lessons in ways.items():
        later = [each for each in lessons if each in titles and order.index(each) > order.index(topic)]
        following = (later[0], titles[later[0]]) if later else None
        yield {"name": name, "skipped": topic not in lessons, "next": following}
