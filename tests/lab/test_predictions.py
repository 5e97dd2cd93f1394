"""Predictions in a real JupyterLab, by keyboard: the card, the cell that reveals, the score."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest

from tests.kernels import execute
from tests.lab.jupyterlab import Reader, environment, jupyterlab
from tests.lab.predicting import NOTEBOOK, predict_and_reveal, read_without_running, write_lesson
from tools.lesson.stored_outputs import normalised

STORED = "stored.ipynb"


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("lessons")
    executed = execute(write_lesson(folder), folder=folder)
    nbformat.write(normalised(executed), folder / STORED)
    state = tmp_path_factory.mktemp("state")
    trust = [sys.executable, "-m", "jupyter", "trust", folder / STORED]  # as `make lab` does
    subprocess.run(trust, env=environment(state), check=True, stdout=subprocess.DEVNULL)
    with jupyterlab(folder, state) as address:
        yield Reader(chromium, address, folder)


def test_a_reader_predicts_by_keyboard_and_sees_the_comparison(reader):
    reader.read(NOTEBOOK, predict_and_reveal, "predictions")


def test_a_card_whose_cell_did_not_run_can_be_read(reader):
    reader.read(STORED, read_without_running, "predictions-stored")
