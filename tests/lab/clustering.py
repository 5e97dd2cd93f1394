"""What a reader of `workers` does while processes run."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.jupyterlab import Lesson
from tests.lab.reading import take_screenshot

# The names of cells in the lesson.
BUILDER, WORKERS = "builder", "equal"
GUARDS = (
    "import gc; print([guarded.poll() is not None for each in gc.get_objects() if isinstance(each, Cluster)"
    " for guarded in each._guarded.values()])"
)
PLACE = (
    "print([each for each in Out.values() if type(each).__name__ == 'ClusterExplorer'][-1].place.tf_config)"
)


def build_watch_and_interrupt(lesson: Lesson, name: str) -> None:
    """Runs the lesson up to its first cluster, builds TF_CONFIG, interrupts the workers, runs them again."""
    before = lesson.cells[: lesson.cells.index(WORKERS)]
    for cell in before:
        lesson.run_cell(cell)
    build(lesson, name)
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


def build(lesson: Lesson, name: str) -> None:
    """Chooses in the builder: Python, the picture and the text follow; a mistake is explained."""
    builder = lesson.locate(BUILDER).locator(".explorer")
    for question, value in (("servers", 0), ("task", "worker 2")):
        choose(builder, question, value)
    told = json.loads(builder.locator(".listing pre").inner_text())
    assert told["task"] == {"type": "worker", "index": 2}
    assert "ps" not in told["cluster"]
    assert json.loads(lesson.printed(PLACE)) == told
    choose(builder, "mistake", "port taken")
    builder.locator(".told", has_text="gRPC").wait_for()
    take_screenshot(lesson, BUILDER, f"{name}-builder")


def choose(builder: Any, question: str, value: object) -> None:
    """Clicks an option, by what it stands for, and waits until Python has answered."""
    option = f"input[data-path='[\"{question}\"]'][data-value='{json.dumps(value)}']"
    builder.locator(option).dispatch_event("click")
    builder.locator(f"{option}[checked]").wait_for(state="attached")


def live(lesson: Lesson, cell: str, words: str) -> Any:
    """Returns the columns that a cell shows while it runs, once each of two has these words."""
    columns = lesson.locate(cell).locator("div[style*=flex] > pre")
    columns.filter(has_text=words).nth(1).wait_for()
    return columns


def assert_side_by_side(columns: Any) -> None:
    boxes = "all => all.map(each => each.getBoundingClientRect().toJSON())"
    left, right = columns.evaluate_all(boxes)  # at once, for both are drawn anew all the time
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
