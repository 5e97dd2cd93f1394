"""Predictions in a real JupyterLab: folded on opening, answered by keyboard, unfolded by running."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest

from tests import small_course
from tests.lab.jupyterlab import Lesson, Reader, environment, jupyterlab
from tests.lab.predicting import NOTEBOOK, output, predict_and_reveal, write_lesson

STORED = f"en/{small_course.NOTEBOOK}"


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with the lesson of the small course, executed, and one that is not."""
    course, state = small_course.copied(tmp_path_factory.mktemp("course")), tmp_path_factory.mktemp("state")
    small_course.execute(course)
    folder = course.root / "notebooks"
    write_lesson(folder)
    trust = [sys.executable, "-m", "jupyter", "trust", folder / STORED]  # as `make lab` does
    subprocess.run(trust, env=environment(state), check=True, stdout=subprocess.DEVNULL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", small_course.PATHS)
        with jupyterlab(folder, state) as address:
            yield Reader(chromium, address, folder)


def test_a_reader_predicts_by_keyboard_and_sees_the_comparison(reader):
    reader.read(NOTEBOOK, predict_and_reveal, "predictions")


def folded_cells(lesson: Lesson) -> list[str]:
    """Returns the ids of the cells whose outputs JupyterLab has folded."""
    return [cell for cell in lesson.cells if lesson.locate(cell).locator(".jp-OutputPlaceholder").count()]


def test_before_a_cell_runs_its_card_can_be_read_and_nothing_is_told(reader):
    def reading(lesson: Lesson) -> None:
        notebook = nbformat.read(reader.folder / STORED, 4)
        revealing = [cell.id for cell in notebook.cells if "reveal" in cell.metadata.get("tags", [])]
        assert folded_cells(lesson) == revealing
        assert len(revealing) == 4
        for cell in revealing:
            assert (
                lesson.locate(cell).locator(".jp-OutputPlaceholder").inner_text().strip() == "What came out"
            )
        assert lesson.locate("printed").locator(".jp-OutputArea-output").is_visible()
        question, *answers = filter(None, output(lesson, "predict-axes").splitlines())
        assert (question, answers) == ("How many rows and columns?", ["(2, 3)", "(3, 2)"])

        lesson.run_all()
        assert lesson.errors() == []
        assert folded_cells(lesson) == []
        for cell, measured in zip(revealing, ("4", "(2, 3)", "3", "no row"), strict=True):
            assert [line for line in output(lesson, cell).split("\n") if line][:2] == [
                "What came out",
                measured,
            ]

    reader.read(STORED, reading, "fixture")
