"""The pictures of the READMEs, out of a real JupyterLab: `make pictures`.

An explorer beside what TensorFlow made, and a training while it runs, in each language.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from functools import partial
from pathlib import Path

from playwright.sync_api import expect

from tests.course import COURSE
from tests.lab.conftest import chromium_path
from tests.lab.jupyterlab import ROOT, RUN_SECONDS, Lesson, Reader, jupyterlab
from tests.lab.reading import EXPLORER, STOPPABLE, choose

FOLDER = ROOT / "docs" / "pictures"
OUTPUT = ".jp-Cell-outputArea"
UNDER_WAY = re.compile(r"(?<!\d)([6-9]\d|1[0-5]\d) (of|/) 180")  # the stored output says 180 of 180
TALL = {"width": 1280, "height": 1600}  # an explorer is seen whole


def explorer(lesson: Lesson, name: str) -> None:
    """Splits a tensor over both dimensions of a mesh, and makes the DTensor."""
    lesson.page.set_viewport_size(TALL)
    lesson.run_all()
    shown = lesson.locate(EXPLORER).locator(".explorer")
    choose(shown, axis=0, name="y")
    choose(shown, axis=1, name="x")
    shown.locator("button.press").dispatch_event("click")
    shown.locator(".panel").nth(2).locator(".device").last.wait_for()
    shown.screenshot(path=FOLDER / f"{name}.png")


def live_run(lesson: Lesson, name: str) -> None:
    """Takes a training while its curves are drawn."""
    lesson.start_all()
    output = lesson.locate(STOPPABLE).locator(OUTPUT)
    expect(output).to_contain_text(UNDER_WAY, timeout=RUN_SECONDS * 1000)
    output.screenshot(path=FOLDER / f"{name}.png")
    lesson.wait_for_all()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        notebooks, state = Path(folder, "notebooks"), Path(folder, "state")
        shutil.copytree(ROOT / "notebooks", notebooks)
        with jupyterlab(notebooks, state) as address:
            reader = Reader(chromium_path(), address, notebooks)
            for language in COURSE.languages:
                for topic, reading in (("mesh_and_layout", explorer), ("a_run", live_run)):
                    notebook = f"{language}/{COURSE.place(topic).notebook}"
                    name = f"{reading.__name__}-{language}"
                    reader.read(notebook, partial(reading, name=name), name)


if __name__ == "__main__":
    main()
