"""The lessons in a real JupyterLab, in every language: pictures, Stop, resumption, times, the explorers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.course import lesson_with
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


@pytest.mark.parametrize("language", ["ja"])  # `make drill-all` does these two in English
def test_a_run_shows_pictures_stops_and_resumes_and_steps_are_measured(reader, language):
    reader.read(f"{language}/{lesson_with(STOPPABLE)}.ipynb", stop_resume_and_measure, f"{language}-run")


@pytest.mark.parametrize("language", ["ja"])
def test_the_explorer_follows_the_reader_and_meets_the_real_dtensor(reader, language):
    reader.read(f"{language}/{lesson_with(EXPLORER)}.ipynb", explore, f"{language}-explore")


@pytest.mark.parametrize("language", ["ja"])
def test_the_chooser_follows_the_reader(reader, language):
    reader.read(f"{language}/{lesson_with(CHOOSER)}.ipynb", choose_a_strategy, f"{language}-strategies")


@pytest.mark.drill_all  # it takes minutes, and lesson 4 stops a training as well
def test_losses_are_scaled_steps_measured_and_a_training_on_replicas_stopped(reader):
    reader.read(f"en/{lesson_with(SCALING)}.ipynb", scale_measure_and_stop, "en-custom")


@pytest.mark.parametrize("language", ["ja"])
def test_workers_are_seen_live_interrupted_and_run_again(reader, language):
    reader.read(f"{language}/{lesson_with(WORKERS)}.ipynb", build_watch_and_interrupt, f"{language}-workers")
