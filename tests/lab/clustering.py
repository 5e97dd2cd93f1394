"""What a reader of lesson 11 does while processes run."""

from __future__ import annotations

from typing import Any

from tests.lab.jupyterlab import Lesson
from tests.lab.reading import take_screenshot

WORKERS = "equal"  # the name of a cell in the lesson
GUARDS = (
    "import gc; print([process.ended for each in gc.get_objects() if isinstance(each, Cluster)"
    " for process in each._processes.values()])"
)


def watch_and_interrupt(lesson: Lesson, name: str) -> None:
    """Runs the lesson up to its first cluster, interrupts the workers, and runs them again."""
    before = lesson.cells[: lesson.cells.index(WORKERS)]
    for cell in before:
        lesson.run_cell(cell)
    lesson.start_cell(WORKERS)
    columns = live(lesson, WORKERS, " of 2")
    assert_side_by_side(columns)
    take_screenshot(lesson, WORKERS, f"{name}-live")
    lesson.interrupt()
    lesson.locate(WORKERS).get_by_text("KeyboardInterrupt").first.wait_for()
    assert "False" not in lesson.printed(GUARDS)  # they have ended
    lesson.run_cell(WORKERS)
    take_screenshot(lesson, WORKERS, f"{name}-again")
    assert columns.count() == 0
    assert "equal_to_9_decimals=True" in lesson.locate(WORKERS).locator("pre").last.inner_text()
    assert lesson.problems == []


def live(lesson: Lesson, cell: str, words: str) -> Any:
    """Returns the columns that a cell shows while it runs, once each of two has these words."""
    columns = lesson.locate(cell).locator("div[style*=flex] > div")
    columns.filter(has_text=words).nth(1).wait_for()
    return columns


def assert_side_by_side(columns: Any) -> None:
    boxes = "all => all.map(each => each.getBoundingClientRect().toJSON())"
    left, right = columns.evaluate_all(boxes)  # at once, for both are drawn anew all the time
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
