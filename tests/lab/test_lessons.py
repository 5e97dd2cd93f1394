"""The lessons in a real JupyterLab, in Japanese: pictures, Stop, resumption, times, an explorer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.course import COURSE, lesson_with
from tests.lab.jupyterlab import ROOT, Reader, jupyterlab
from tests.lab.reading import EXPLORER, STOPPABLE, explore, stop_resume_and_measure


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with a copy of the notebooks: what happens there is not kept."""
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("state")) as address:
        yield Reader(chromium, address, folder)


@pytest.mark.parametrize(
    ("cell", "reading"),
    [
        pytest.param(STOPPABLE, stop_resume_and_measure, marks=pytest.mark.drill_all),
        (EXPLORER, explore),
    ],
)
def test_a_reader_runs_a_lesson(reader, cell, reading):
    reader.read(f"ja/{COURSE.place(lesson_with(cell)).notebook}", reading, f"ja-{reading.__name__}")
