"""What a prediction reveals, in a real JupyterLab: folded on opening, unfolded by running."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest

from tests import small_course
from tests.lab.jupyterlab import ROOT, Lesson, Reader, jupyterlab
from tests.lab.reading import take_screenshot
from tools.lesson.build import build


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with the lesson of the small course, executed."""
    root = tmp_path_factory.mktemp("course")
    list(build(small_course.copied(root)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{small_course.SOURCES}:{ROOT}")
        # In a process of its own: the book's browser keeps an event loop running in this one.
        command = [sys.executable, "-m", "tools.lesson.execute", "fixture"]
        subprocess.run(command, cwd=root, check=True)
        with jupyterlab(root / "notebooks", tmp_path_factory.mktemp("state")) as address:
            yield Reader(chromium, address, root / "notebooks")


def folded_cells(lesson: Lesson) -> list[str]:
    """Returns the ids of the cells whose outputs JupyterLab has folded."""
    return [cell for cell in lesson.cells if lesson.locate(cell).locator(".jp-OutputPlaceholder").count()]


def left(lesson: Lesson, cell: str) -> str:
    """Returns what JupyterLab leaves of a folded cell to read."""
    text: str = lesson.locate(cell).locator(".jp-OutputPlaceholder").inner_text()
    return text.strip()


def test_nothing_is_told_before_the_cell_runs(reader):
    def reading(lesson: Lesson, name: str) -> None:
        notebook = nbformat.read(reader.folder / "en" / "00_fixture.ipynb", 4)
        revealing = [cell.id for cell in notebook.cells if "reveal" in cell.metadata.get("tags", [])]
        assert folded_cells(lesson) == revealing
        assert len(revealing) == 4
        take_screenshot(lesson, revealing[0], f"{name}-folded")
        assert {left(lesson, cell) for cell in revealing} == {"What came out"}
        assert lesson.locate("printed").locator(".jp-OutputArea-output").is_visible()

        lesson.run_all()
        assert lesson.errors() == []
        assert folded_cells(lesson) == []
        take_screenshot(lesson, revealing[0], f"{name}-unfolded")
        for cell, measured in zip(revealing, ("4", "(2, 3)", "3", "0"), strict=True):
            shown = lesson.locate(cell).locator(".jp-OutputArea-output")
            assert shown.inner_text().split("\n")[0] == "What came out"
            assert shown.locator("pre").first.inner_text() == measured

    reader.read("en/00_fixture.ipynb", reading, "fixture")
