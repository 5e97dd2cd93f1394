"""The lessons with Google Colab's versions: every cell, the explorer, predictions, and Stop."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest

from tests.course import COURSE
from tests.kernels import execute, notebook_of
from tests.lab.conftest import chromium  # noqa: F401 - a fixture
from tests.lab.jupyterlab import ROOT, Reader, jupyterlab, write_notebook
from tests.lab.predicting import NOTEBOOK, predict_and_reveal, write_lesson
from tests.lab.reading import explore, stop_and_resume
from tests.lab.training import CELLS, train_stop_and_go_on
from tests.lab.training import NOTEBOOK as TRAINING_LAB
from tools.lesson.build import built_notebook
from tools.lesson.solutions import refusals

PROGRAMS = sorted((ROOT / "notebooks" / "plain").glob("*.py"))
# Lessons that print how versions differ.
VARYING = [
    lesson.topic for lesson in COURSE.lessons() if any("versions" in cell.tags for cell in lesson.cells)
]
# In a CI run a few lessons; once, `make colab` runs them all. Weekly all of them, in every language.
LESSONS = [
    pytest.param("en", (COURSE.topics[0], *VARYING), marks=pytest.mark.drill),
    *(pytest.param(language, COURSE.topics, marks=pytest.mark.drill_all) for language in COURSE.languages),
]


@pytest.fixture(scope="module")
def colab_python() -> str:
    """Makes or refreshes the environment and returns its Python."""
    subprocess.run([sys.executable, "-m", "tools.environments.colab"], cwd=ROOT, check=True)
    return str(ROOT / "build" / "colab-venv" / "bin" / "python")


@pytest.fixture(scope="module")
def reader(chromium, colab_python, tmp_path_factory) -> Iterator[Reader]:  # noqa: F811
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    for path in folder.glob("*/*.ipynb"):
        nbformat.write(without_outputs(path), path)
    with jupyterlab(folder, tmp_path_factory.mktemp("state"), colab_python) as address:
        yield Reader(chromium, address, folder)


def without_outputs(path: Path) -> nbformat.NotebookNode:
    """Reads a notebook without what is stored in it."""
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


@pytest.mark.drill_all
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_plain_program_runs(colab_python, program, tmp_path: Path):
    command = [colab_python, program, tmp_path / "folder"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.drill_all
@pytest.mark.parametrize(("topic", "reading"), [("a_run", stop_and_resume), ("mesh_and_layout", explore)])
def test_a_reader_runs_a_lesson(reader, topic, reading):
    reader.read(f"en/{COURSE.place(topic).notebook}", reading, f"colab-{reading.__name__}")


@pytest.mark.drill_all
def test_a_reader_predicts_by_keyboard_and_sees_the_comparison(reader):
    write_lesson(reader.folder)
    reader.read(NOTEBOOK, predict_and_reveal, "colab-predictions")


@pytest.mark.drill_all
def test_the_training_lab_trains_beside_cells_stops_and_goes_on(reader):
    write_notebook(reader.folder / TRAINING_LAB, CELLS, "en")
    reader.read(TRAINING_LAB, train_stop_and_go_on, "colab-training-lab")


@pytest.mark.drill
@pytest.mark.parametrize("gesture", ["click Stop", "interrupt"])
def test_the_reader_can_stop_a_cell_that_trains(colab_python, gesture):
    cells = (
        "from course_lib import live\nfrom records import training",
        "history = await live(training(40_000, seconds=0.01), steps=40_000)",
        "print(history.stopped, len(history.steps) < 40_000)",
    )
    notebook = execute(notebook_of(*cells), python=colab_python, folder=ROOT / "tests", gesture=gesture)
    assert notebook.cells[2].outputs[0].text == "True True\n"


# The longest test is the last: it takes two processors, which the other process has left by then.
@pytest.mark.parametrize(("language", "topics"), LESSONS)
def test_every_cell_runs_twice_and_every_check_takes_the_solution(colab_python, language, topics, tmp_path):
    notebooks = {
        topic: each_twice(built_notebook(COURSE, COURSE.lesson(topic), language, solved=True))
        for topic in reversed(topics)  # the last take longest
    }
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda each: execute(each, python=colab_python, folder=tmp_path), notebooks.values()))
    assert {name: faults for name, notebook in notebooks.items() if (faults := faults_of(notebook))} == {}


def each_twice(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Returns a notebook in which each code cell is run twice before the next one."""
    cells = []
    for cell in notebook.cells:
        again = [nbformat.v4.new_code_cell(cell.source)] if cell.cell_type == "code" else []
        cells += [cell, *again]
    return nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)


def faults_of(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns the errors of cells, the cells that did not run, and the checks that refuse the solution."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    errors = [out.evalue for cell in cells for out in cell.outputs if out.output_type == "error"]
    return [*errors, *(cell.id for cell in cells if not cell.execution_count), *refusals(notebook)]
