"""The lessons in a real JupyterLab, in Japanese: pictures, Stop, resumption, times, an explorer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.course import COURSE
from tests.lab.jupyterlab import ROOT, Reader, jupyterlab
from tests.lab.reading import explore, measure_twice, stop_and_resume


@pytest.fixture(scope="module")
def reader(chromium, tmp_path_factory) -> Iterator[Reader]:
    """Gives a reader with a copy of the notebooks: what happens there is not kept."""
    folder = shutil.copytree(ROOT / "notebooks", tmp_path_factory.mktemp("lessons") / "notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("state")) as address:
        yield Reader(chromium, address, folder)


@pytest.mark.parametrize(
    ("topic", "reading"),
    [
        ("mesh_and_layout", explore),
        pytest.param("a_run", stop_and_resume, marks=pytest.mark.drill_all),
        pytest.param("faster", measure_twice, marks=pytest.mark.drill_all),
    ],
)
def test_a_reader_runs_a_lesson(reader, topic, reading):
    reader.read(f"ja/{COURSE.place(topic).notebook}", reading, f"ja-{reading.__name__}")
