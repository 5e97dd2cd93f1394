"""Predictions of the small course, and what a reader with a keyboard does in it."""

from __future__ import annotations

from pathlib import Path

from tests.lab.jupyterlab import Lesson, write_notebook
from tests.small_course import SOURCES

NOTEBOOK = "predictions.ipynb"
MOST_TABS = 30
CELLS = {
    "setup": f"""
import lessons
from course_lib import predict, reveal, score
lessons.__path__.append({str(SOURCES / "lessons")!r})""",
    "predict-eight": 'predict("fixture-eight")',
    "reveal-eight": 'reveal("fixture-eight", 8 // 2)',
    "predict-seven": 'predict("fixture-seven")',
    "reveal-seven": 'reveal("fixture-seven", 7 // 2)',
    "score": 'score("fixture")',
}


def write_lesson(folder: Path) -> None:
    """Writes a notebook with two predictions."""
    write_notebook(folder / NOTEBOOK, CELLS, "en")


def predict_and_reveal(lesson: Lesson) -> None:
    """Predicts with the keyboard alone, runs the cells that reveal, and asks for the score."""
    keys = lesson.page.keyboard
    run(lesson, "setup", "predict-eight")
    tab_into(lesson, "predict-eight")
    keys.press("ArrowDown")
    kept(lesson, "predict-eight")
    run(lesson, "reveal-eight", "predict-seven")
    assert output(lesson, "reveal-eight") == ("What came out\n4\n✓ You predicted 4.\n\nHalf.")

    tab_into(lesson, "predict-seven")
    keys.type("4")  # no key of these may reach the notebook
    keys.press("Enter")
    kept(lesson, "predict-seven")
    run(lesson, "reveal-seven", "score")
    assert output(lesson, "reveal-seven") == (
        "What came out\n3\n✗ You predicted 4. That is more than half.\n\nOne row is left."
    )
    assert output(lesson, "score") == "Predictions made: 2 of 4. Right: 1."

    run(lesson, "predict-seven")  # the choice is still there
    kept(lesson, "predict-seven")
    assert lesson.locate("predict-seven").locator("input").input_value() == "4"
    assert lesson.errors() == []


def run(lesson: Lesson, *cells: str) -> None:
    for cell in cells:
        lesson.run_cell(cell)


def tab_into(lesson: Lesson, cell: str) -> None:
    """Presses Tab until a control of the cell's card has the focus."""
    card = lesson.locate(cell).locator(".prediction")
    card.wait_for()
    for _press in range(MOST_TABS):
        if card.evaluate("card => card.contains(card.getRootNode().activeElement)"):
            return
        lesson.page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads into the card of {cell}")


def kept(lesson: Lesson, cell: str) -> None:
    """Waits until the card says that Python has kept the choice."""
    verdict = lesson.locate(cell).locator(".prediction:not(.busy) .verdict")
    verdict.filter(has_text="Kept.").wait_for()


def output(lesson: Lesson, cell: str) -> str:
    """Returns what a cell shows below its code."""
    text: str = lesson.locate(cell).locator(".jp-OutputArea-output").inner_text()
    return text.strip()
