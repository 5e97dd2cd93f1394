"""The lessons in a real JupyterLab, in every language: pictures, Stop, resumption, times, the explorers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.course import COURSE, lesson_with
from tests.lab.clustering import WORKERS, build_watch_and_interrupt
from tests.lab.jupyterlab import ROOT, Reader, jupyterlab
from tests.lab.reading import (
    CHOOSER,
    EXPLORER,
    SCALING,
    STOPPABLE,
    choose_a_strategy,
    explore,
    scale_measure_and_stop,
    stop_resume_and_measure,
)


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
        pytest.param(CHOOSER, choose_a_strategy, marks=pytest.mark.drill_all),
        pytest.param(SCALING, scale_measure_and_stop, marks=pytest.mark.drill_all),  # it takes minutes
        pytest.param(WORKERS, build_watch_and_interrupt, marks=pytest.mark.drill_all),
    ],
)
def test_a_reader_runs_a_lesson(reader, cell, reading):
    reader.read(f"ja/{COURSE.place(lesson_with(cell)).notebook}", reading, f"ja-{reading.__name__}")
