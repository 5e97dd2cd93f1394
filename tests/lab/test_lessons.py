"""The lessons in a real JupyterLab, in every language: pictures, Stop, resumption, the explorer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.lab.jupyterlab import ROOT, Reader, jupyterlab
from tests.lab.reading import explore, stop_and_resume
from tools.lesson.sources import Course


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with a copy of the notebooks: what happens there is not kept."""
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("state")) as address:
        yield Reader(chromium, address, folder)


@pytest.mark.parametrize("language", Course(ROOT).languages)
def test_lesson_3_shows_pictures_stops_and_resumes(reader, language):
    reader.read(f"{language}/03_data_parallel.ipynb", stop_and_resume, f"{language}-03")


@pytest.mark.parametrize("language", Course(ROOT).languages)
def test_the_explorer_of_lesson_1_follows_the_reader_and_meets_the_real_dtensor(reader, language):
    reader.read(f"{language}/01_mesh_and_layout.ipynb", explore, f"{language}-01")
