"""The lessons in a real JupyterLab, in every language: pictures, Stop, resumption, the explorer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.lab.jupyterlab import ROOT, Reader, jupyterlab
from tests.lab.reading import EXPLORER, STOPPABLE, explore, stop_and_resume
from tests.lessons import COURSE, lesson_with


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with a copy of the notebooks: what happens there is not kept."""
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("state")) as address:
        yield Reader(chromium, address, folder)


@pytest.mark.parametrize("language", COURSE.languages)
def test_a_run_shows_pictures_stops_and_resumes(reader, language):
    reader.read(f"{language}/{lesson_with(STOPPABLE)}.ipynb", stop_and_resume, f"{language}-run")


@pytest.mark.parametrize("language", COURSE.languages)
def test_the_explorer_follows_the_reader_and_meets_the_real_dtensor(reader, language):
    reader.read(f"{language}/{lesson_with(EXPLORER)}.ipynb", explore, f"{language}-explore")
