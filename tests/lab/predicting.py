"""A small lesson with predictions, and what a reader with a keyboard does in it."""

from __future__ import annotations

from pathlib import Path

import nbformat

from tests.lab.jupyterlab import Lesson
from tests.lab.reading import take_screenshot

NOTEBOOK = "98_predictions.ipynb"
PREDICTIONS = '''
from course_lib.exercises.predict import Option, Question, prediction


@prediction("98-rows", right=(2, 4))
def rows():
    wrong = [Option((2, 2), "That splits `y` too."), Option((3, 4), "3 devices, not rows.")]
    return Question("The rows are split over `x`. What does one device hold?", [Option((2, 4), "6 / 3."), *wrong])


@prediction("98-mean", right=0.428)
def mean():
    options = [Option(0.428, "The padding weighs nothing."), Option(0.148, "That counts the padding.")]
    return Question("What is the mean of the losses?", options, field=True, otherwise="Add up the losses.")
'''
CELLS = {
    "predictions": "import predictions_98\nfrom course_lib.exercises import predict, reveal, score",
    "predict-rows": 'predict("98-rows")',
    "reveal-rows": 'reveal("98-rows", (6 // 3, 4))',
    "predict-mean": 'predict("98-mean")',
    "reveal-mean": 'reveal("98-mean", 0.42799)',
    "score": 'score("98")',
}


def write_lesson(folder: Path) -> None:
    """Writes a notebook with two predictions, and the module that declares them."""
    (folder / "predictions_98.py").write_text(PREDICTIONS, "utf-8")
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in CELLS.items()]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}  # or JupyterLab asks which
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / NOTEBOOK)


def run_all(lesson: Lesson, name: str) -> None:
    """Runs every cell with nothing answered."""
    lesson.run_all()
    take_screenshot(lesson, "predict-rows", name)
    assert lesson.errors() == []
    assert output(lesson, "reveal-rows") == "(2, 4)"
    assert output(lesson, "reveal-mean") == "0.428"
    assert output(lesson, "score") == "You made no prediction in this lesson."


def output(lesson: Lesson, cell: str) -> str:
    """Returns what a cell shows below its code."""
    text: str = lesson.locate(cell).locator(".jp-OutputArea-output").inner_text()
    return text.strip()
