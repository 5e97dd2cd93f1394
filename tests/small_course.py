"""The small course that the tools are tried on: one lesson, in two languages."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat

from tools.lesson.sources import Course
from tools.lesson.stored_outputs import normalised

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests" / "notebooks" / "fixtures" / "course"
LESSON, NOTEBOOK = "fixture", "00_fixture.ipynb"


def copied(folder: Path) -> Course:
    """Returns a copy of the course, not built."""
    return Course(shutil.copytree(SOURCES, folder, dirs_exist_ok=True))


def source_of(course: Course) -> Path:
    """Returns the path of the lesson's source."""
    return course.folder(LESSON) / "lesson.py"


def edit(path: Path, old: str, new: str) -> None:
    """Replaces a text in a file once."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def pretend_executed(course: Course) -> None:
    """Gives every code cell of the built notebooks an output, as an execution would."""
    html = nbformat.v4.new_output("display_data", {"text/html": "<p>4</p>", "text/plain": "4"})
    for path in (course.root / "notebooks").glob("*/*.ipynb"):
        notebook = nbformat.read(path, 4)
        for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
            cell.execution_count, cell.outputs = count, [html]
        nbformat.write(normalised(notebook), path)
