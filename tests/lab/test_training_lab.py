"""The training lab in a real JupyterLab: curves while cells run, Stop, going on, a restarted kernel."""

from __future__ import annotations

from tests.lab.jupyterlab import Reader, jupyterlab, write_notebook
from tests.lab.training import CELLS, NOTEBOOK, survive_a_restart, train_stop_and_go_on


def test_a_reader_trains_stops_goes_on_and_restarts(chromium, tmp_path):
    folder, state = tmp_path / "lessons", tmp_path / "state"
    folder.mkdir()
    write_notebook(folder / NOTEBOOK, CELLS, "ja")
    with jupyterlab(folder, state) as address:

        def reading(lesson):
            train_stop_and_go_on(lesson)
            survive_a_restart(lesson)

        Reader(chromium, address, folder).read(NOTEBOOK, reading, "training-lab-ja")
