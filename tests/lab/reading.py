"""What a reader does in the lessons, and what must come of it."""

from __future__ import annotations

import ast
from typing import Any

from playwright.sync_api import Locator

from tests.lab.jupyterlab import Lesson

# The names of cells, and the steps of the run that is stopped.
STOPPABLE, EXPLORER, MEASURING, NUM_STEPS = "stoppable", "explorer", "widget", 180
PROGRESS = "print((history.stopped, len(history.steps), history.steps[-1]['step']))"
REMEMBER = "before = history.steps[0]; print(before['step'])"
WENT_ON = "print(history.steps[0] is before)"


def stop_and_resume(lesson: Lesson) -> None:
    """Runs the lesson with the cell `STOPPABLE`, presses Stop after some pictures, and runs it again."""
    lesson.start_all()
    lesson.press_stop_in(STOPPABLE, pictures=4)  # the first is the stored one
    lesson.wait_for_all()
    assert lesson.errors() == []
    stopped, num_records, stopped_at = progress(lesson)
    assert stopped
    assert 0 < num_records == stopped_at < NUM_STEPS
    assert lesson.printed(REMEMBER) == "1\n"

    lesson.run_cell(STOPPABLE)
    assert lesson.errors() == []
    assert progress(lesson) == (False, NUM_STEPS, NUM_STEPS)
    assert lesson.printed(WENT_ON) == "True\n"  # a run from the beginning drops the records from before


def measure_twice(lesson: Lesson) -> None:
    """Runs the lesson with the cell `MEASURING`, and measures a step of 64 reviews twice there."""
    lesson.run_all()
    for _time in range(2):
        widget = lesson.locate(MEASURING).locator(".explorer")
        if not widget.locator("input[checked]").count():
            assert widget.locator("button.press").is_disabled()
            widget.get_by_text("64", exact=True).dispatch_event("click")
        widget.locator("button.press:enabled").dispatch_event("click")
        widget.locator(".verdict", has_text="✓").wait_for()
    assert lesson.locate(MEASURING).locator(".panel rect").count() == 2
    assert lesson.errors() == []


def explore(lesson: Lesson) -> None:
    """Runs the lesson with the cell `EXPLORER`, chooses an illegal and a legal layout, makes a DTensor."""
    lesson.run_all()
    assert lesson.errors() == []
    explorer = lesson.locate(EXPLORER).locator(".explorer")
    facts = explorer.locator(".facts").inner_text()
    assert specs(lesson) == ("x", "unsharded")  # of a tensor (8, 6) on the mesh x 2 x y 4
    choose(explorer, axis=1, name="y")  # 6 does not divide by 4
    assert "6" in explorer.locator(".refusal").inner_text()
    choose(explorer, axis=1, name="unsharded")
    assert explorer.locator(".facts").inner_text() == facts
    choose(explorer, axis=0, name="y")
    assert explorer.locator(".facts").inner_text() != facts
    assert specs(lesson) == ("y", "unsharded")

    explorer.locator("button.press").dispatch_event("click")
    real = explorer.locator(".panel").nth(2).locator(".device")
    real.last.wait_for()
    assert real.count() == 8
    assert explorer.locator(".device.wrong").count() == 0
    assert lesson.errors() == []


def choose(explorer: Locator, axis: int, name: str) -> None:
    """Clicks the mesh dimension `name` for an axis; before the axes come 4 groups for mesh and tensor."""
    option = explorer.locator("fieldset").nth(4 + axis).get_by_text(name, exact=True)
    option.dispatch_event("click")
    checked = f"input[data-value='\"{name}\"'][checked]"  # the attribute: Python has answered
    explorer.locator("fieldset").nth(4 + axis).locator(checked).wait_for(state="attached")


def specs(lesson: Lesson) -> Any:
    return ast.literal_eval(lesson.printed("print(tuple(explorer.state['layout']))"))


def progress(lesson: Lesson) -> Any:
    return ast.literal_eval(lesson.printed(PROGRESS))
