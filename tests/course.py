"""The lessons that tests need, found by what is in them and not by their numbers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import lessons
from benchmarks.programs import program  # noqa: F401 - for tests
from course_lib import syllabus
from tools.lesson.sources import Course

COURSE = Course(Path(__file__).resolve().parents[1])


def have_lessons(patch: Any, *folders: Path) -> None:
    """Has the lessons of these folders installed, and no others, until a pytest.MonkeyPatch is undone."""
    patch.setattr(lessons, "__path__", list(map(str, folders)))
    patch.setattr(lessons.__spec__, "submodule_search_locations", lessons.__path__)


def from_lesson(name: str, *members: str) -> Any:
    """Returns members of a lesson's module, such as "all_reduce.ring", whatever part the lesson is in.

    One member is returned as it is, several as a list; a member may be a module.
    """
    module = syllabus.module(name)
    found = [
        getattr(module, member, None) or import_module(f"{module.__name__}.{member}") for member in members
    ]
    return found if len(found) > 1 else found[0]
