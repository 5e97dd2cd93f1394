"""The small course that tools, book and JupyterLab are tried on: one lesson, in two languages."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

import lessons
from course_lib.exercises import questions
from tests.course import have_lessons
from tools.lesson.build import build
from tools.lesson.sources import Course
from tools.lesson.stored_outputs import normalised

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests" / "notebooks" / "fixtures" / "course"
PATHS = f"{SOURCES}:{ROOT}"  # for its kernels: its lesson before those of the course
LESSON, NOTEBOOK = "fixture", "00_fixture.ipynb"
HTML = {"text/html": "<p>4</p>", "text/plain": "4"}


def copied(folder: Path) -> Course:
    """Returns a copy of the course, not built."""
    return Course(shutil.copytree(SOURCES, folder, dirs_exist_ok=True))


@contextlib.contextmanager
def among_lessons() -> Iterator[None]:
    """Has the lesson among those of the course, with no prediction made before or afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        have_lessons(patch, *map(Path, lessons.__path__), SOURCES / "lessons")
        questions.choices.clear()
        questions._cards.cache_clear()
        yield
    questions.choices.clear()
    questions._cards.cache_clear()


def source_of(course: Course) -> Path:
    """Returns the path of the lesson's source."""
    return course.folder(LESSON) / "lesson.py"


def edit(path: Path, old: str, new: str) -> None:
    """Replaces a text in a file once."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def pretend_executed(course: Course, shown: dict[str, str] = HTML) -> None:
    """Gives every code cell of the built notebooks an output, as an execution would."""
    output = nbformat.v4.new_output("display_data", shown)
    for path in (course.root / "notebooks").glob("*/*.ipynb"):
        notebook = nbformat.read(path, 4)
        for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
            cell.execution_count, cell.outputs = count, [output]
        nbformat.write(normalised(notebook), path)


def execute(course: Course) -> None:
    """Builds and executes the lesson, in a process without the event loop that a browser may keep running."""
    list(build(course, (LESSON,)))
    command = [sys.executable, "-m", "tools.lesson.execute", LESSON]
    subprocess.run(command, cwd=course.root, env={**os.environ, "PYTHONPATH": PATHS}, check=True)
