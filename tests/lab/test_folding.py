"""What a prediction reveals, in a real JupyterLab: folded on opening, unfolded by running."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.lab.jupyterlab import ROOT, Lesson, Reader, jupyterlab
from tests.lab.reading import take_screenshot
from tools.checks.output_rules import is_folded, line_left
from tools.lesson.build import build
from tools.lesson.sources import Course

FIXTURES = ROOT / "tests" / "notebooks" / "fixtures"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9"\nheight="9"/>'
# Folded outputs of every kind: what JupyterLab leaves of them is what `line_left` says.
KINDS = {
    "html": [new_output("display_data", {"text/plain": "4", "text/html": "\n\nWhat came out\n<p>4</p>"})],
    "markup": [new_output("display_data", {"text/plain": "4", "text/html": "<p>4</p>"})],
    "picture": [new_output("display_data", {"text/plain": "a picture", "image/svg+xml": SVG})],
    "result": [new_output("execute_result", {"text/plain": "4\n5"}, execution_count=1)],
    "two": [new_output("display_data", {"text/plain": "4"}), new_output("display_data", {"text/html": "5"})],
    "printed": [new_output("stream", text="\n4 rows\n5 columns\n")],
    "warned": [new_output("stream", name="stderr", text="4 rows\n")],
    "raised": [new_output("error", ename="ValueError", evalue="4", traceback=["4"])],
}


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with the fixture's lesson, executed, and a notebook with every kind of output."""
    root = tmp_path_factory.mktemp("course")
    course = Course(shutil.copytree(FIXTURES / "course", root, dirs_exist_ok=True))
    list(build(course))
    metadata = {"jupyter": {"outputs_hidden": True}}
    kinds = [new_code_cell("4", id=kind, outputs=shown, metadata=metadata) for kind, shown in KINDS.items()]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}  # or JupyterLab asks which
    nbformat.write(new_notebook(cells=kinds, metadata=kernel), root / "notebooks" / "kinds.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{FIXTURES}:{ROOT}")
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


def test_what_jupyterlab_leaves_of_a_folded_output_is_what_the_rules_look_at(reader):
    def reading(lesson: Lesson, name: str) -> None:
        cells = nbformat.read(reader.folder / "kinds.ipynb", 4).cells
        assert all(is_folded(cell) for cell in cells)
        assert {cell.id: left(lesson, cell.id) for cell in cells} == {
            cell.id: " ".join(line_left(cell).split()) for cell in cells
        }
        assert lesson.problems == []

    reader.read("kinds.ipynb", reading, "kinds")
