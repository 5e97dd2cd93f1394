"""The folders of the lessons: what each asks in its source, and its own checks."""

from __future__ import annotations

import re
from functools import cache

from course_lib import syllabus
from course_lib.exercises.asked import Asked, parsed

_ID = re.compile(r"(\w+)-([a-z0-9-]+)")
# A card in a percent script: `# %% predict-size [markdown]`, and the lines of its comment.
_CARD = re.compile(r"^# %% ((?:predict|check)-\S+) \[markdown\]\n((?:#.*\n?)*)", re.M)


def asked(part: str, question_id: object) -> Asked | None:
    """Returns what a lesson asks in the cell `predict-size` or `check-size`; None where there is none.

    Args:
        part: "predict" or "check".
        question_id: the lesson's topic and the rest of the cell's name, such as "mesh_and_layout-size".
    """
    known = _ID.fullmatch(question_id) if isinstance(question_id, str) else None
    return _cards(known[1]).get(f"{part}-{known[2]}") if known else None


def predictions(topic: object) -> tuple[str, ...]:
    """Returns the ids of a lesson's predictions, in the order in which they are asked."""
    names = _cards(topic) if isinstance(topic, str) else {}
    return tuple(f"{topic}-{name.removeprefix('predict-')}" for name in names if name.startswith("predict-"))


def import_checks(exercise_id: str) -> None:
    """Imports what checks the exercises of a lesson, where it has such a module."""
    place = syllabus.find(exercise_id.partition("-")[0])
    if place is not None and (place.folder / "checks.py").exists():
        syllabus.module(f"{place.topic}.checks")


@cache
def _cards(topic: str) -> dict[str, Asked]:
    place = syllabus.find(topic)
    text = "" if place is None else (place.folder / "lesson.py").read_text("utf-8")
    return {name: parsed(re.sub(r"^# ?", "", body, flags=re.M)) for name, body in _CARD.findall(text)}
