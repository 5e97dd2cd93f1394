"""A cluster's logs in a real JupyterLab, live; and nothing left of it, however its cell or kernel ends."""

from __future__ import annotations

import pytest

from tests.lab.clustering import NOTEBOOK, interrupt_restart_and_shut_down, write_files
from tests.lab.jupyterlab import Reader, jupyterlab


@pytest.mark.parametrize("language", ["en"])
def test_a_reader_watches_interrupts_restarts_and_shuts_down(chromium, tmp_path, language):
    folder, state = tmp_path / "lessons", tmp_path / "state"
    folder.mkdir()
    write_files(folder, language)
    with jupyterlab(folder, state) as address:
        Reader(chromium, address, folder).read(
            NOTEBOOK, interrupt_restart_and_shut_down, f"clusters-{language}"
        )
