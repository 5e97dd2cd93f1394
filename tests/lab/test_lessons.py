"""Lessons in a real JupyterLab: pictures, Stop, resumption, an explorer, processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.course import lesson_with
from tests.lab.clustering import WORKERS, watch_and_interrupt
from tests.lab.jupyterlab import ROOT, Reader, jupyterlab
from tests.lab.reading import EXPLORER, STOPPABLE, explore, stop_and_resume


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with a copy of the notebooks: what happens there is not kept."""
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("state")) as address:
        yield Reader(chromium, address, folder)


@pytest.mark.parametrize(
    ("cell", "reading"),
    [
        pytest.param(STOPPABLE, stop_and_resume, marks=pytest.mark.drill_all),
        (EXPLORER, explore),
        pytest.param(WORKERS, watch_and_interrupt, marks=pytest.mark.drill_all),
    ],
)
def test_a_reader_runs_a_lesson(reader, cell, reading):
    reader.read(f"ja/{lesson_with(cell)}.ipynb", reading, f"ja-{reading.__name__}")
