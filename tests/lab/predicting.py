"""A small lesson with predictions, and what a reader with a keyboard does in it."""

from __future__ import annotations

from pathlib import Path

from nbformat import NotebookNode

from tests import predictions
from tests.lab.jupyterlab import Lesson, write_notebook
from tests.lab.reading import take_screenshot

NOTEBOOK = "predictions.ipynb"
MOST_TABS = 30
CELLS = {
    "predictions": (
        "import lessons\nfrom course_lib import predict, reveal, score\nlessons.__path__.append('.')"
    ),
    "predict-rows": 'predict("predictions-rows")',
    "reveal-rows": 'reveal("predictions-rows", (6 // 3, 4))',
    "predict-mean": 'predict("predictions-mean")',
    "reveal-mean": 'reveal("predictions-mean", 0.42799)',
    "score": 'score("predictions")',
}


def write_lesson(folder: Path) -> NotebookNode:
    """Writes a notebook with two predictions and, beside it, the lesson that asks them."""
    predictions.write_lesson(folder)
    return write_notebook(folder / NOTEBOOK, CELLS, "en")


def predict_and_reveal(lesson: Lesson, name: str) -> None:
    """Predicts with the keyboard alone, runs the cells that reveal, and asks for the score."""
    keys = lesson.page.keyboard
    run(lesson, "predictions", "predict-rows")
    tab_into(lesson, "predict-rows")
    keys.press("ArrowDown")
    kept(lesson, "predict-rows")
    take_screenshot(lesson, "predict-rows", name)
    run(lesson, "reveal-rows", "predict-mean")
    assert output(lesson, "reveal-rows") == (
        "What came out\n(2, 4)\n"
        "✓ You predicted (2, 4).\n\n"
        "6 rows over 3 devices are 2 each; the columns stay whole."
    )

    tab_into(lesson, "predict-mean")
    keys.type("0.148")  # no key of these may reach the notebook
    keys.press("Enter")
    kept(lesson, "predict-mean")
    run(lesson, "reveal-mean", "score")
    assert output(lesson, "reveal-mean") == (
        "What came out\n0.428\n✗ You predicted 0.148. That divides by the padded rows too.\n\n"
        "The padding weighs nothing."
    )
    assert output(lesson, "score") == "Predictions made: 2 of 3. Right: 1."
    take_screenshot(lesson, "score", f"{name}-score")

    run(lesson, "predict-mean")  # the choice is still there
    kept(lesson, "predict-mean")
    assert lesson.locate("predict-mean").locator("input").input_value() == "0.148"
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


def read_without_running(lesson: Lesson, name: str) -> None:
    """Reads a card that is stored in the notebook, whose cell did not run."""
    question, *answers = filter(None, output(lesson, "predict-rows").splitlines())
    assert question.startswith("The rows of a matrix")
    assert answers == ["(2, 2)", "(2, 4)", "(3, 4)"]
    take_screenshot(lesson, "predict-rows", name)
    assert lesson.problems == []


def output(lesson: Lesson, cell: str) -> str:
    """Returns what a cell shows below its code."""
    text: str = lesson.locate(cell).locator(".jp-OutputArea-output").inner_text()
    return text.strip()
