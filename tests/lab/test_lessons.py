"""The lessons in a real JupyterLab, in both languages: pictures, Stop, resumption, the explorer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.lab.jupyterlab import ROOT, Lesson, jupyterlab
from tests.lab.reading import explore, stop_and_resume


@pytest.fixture(scope="module")
def lessons(browser, tmp_path_factory) -> Iterator:
    """Opens a lesson, in a copy of the notebooks: what a reader does there is not kept."""
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("state")) as address:
        yield lambda path: Lesson(browser, address, folder, path)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_lesson_3_shows_pictures_stops_and_resumes(lessons, language):
    with lessons(f"{language}/03_data_parallel.ipynb") as lesson:
        stop_and_resume(lesson, f"{language}-03")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_explorer_of_lesson_1_follows_the_reader_and_meets_the_real_dtensor(lessons, language):
    with lessons(f"{language}/01_mesh_and_layout.ipynb") as lesson:
        explore(lesson, f"{language}-01")
