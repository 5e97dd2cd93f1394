"""The lessons that tests need, found by what is in them and not by their numbers."""

from __future__ import annotations

from pathlib import Path

from tools.lesson.sources import Course

COURSE = Course(Path(__file__).resolve().parents[1])


def lesson_with(cell_id: str) -> str:
    """Returns the name of the one lesson that has a cell of that name."""
    (name,) = [
        lesson.name for lesson in COURSE.lessons() if cell_id in {cell.cell_id for cell in lesson.cells}
    ]
    return name
