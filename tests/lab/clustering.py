"""Clusters in notebooks: a small one, and what a reader does while processes run, here and in the lesson."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab.jupyterlab import Lesson, write_notebook
from tests.lab.reading import take_screenshot
from tests.unit.clusters import HAS_A_CHILD, WRITES_ITS_ID, eventually, ids, left

NOTEBOOK = "96_clusters.ipynb"
# The names of cells: in the small notebook, and in the lesson.
SETUP, ENDLESS, SHORT = "setup", "endless", "short"
BUILDER, WORKERS = "builder", "reveal-equal"
SAYS = """
print("W0000 as much as TensorFlow has to say of a machine without a GPU; " * 4, file=sys.stderr, flush=True)
for step in range(int(sys.argv[2])):
    print(f"course: step {step}", flush=True)
    time.sleep(0.1)
"""
RUNS = """
with Cluster(["program.py", "ids", "STEPS"], {"worker": 2}) as cluster:
    report = cluster.wait()
report"""
CELLS = {
    SETUP: """
import course_lib
course_lib.setup(language="LANGUAGE", devices=2)
from lessons.lesson_11_many_processes.cluster import Cluster""",
    ENDLESS: RUNS.replace("STEPS", "6000"),
    SHORT: RUNS.replace("STEPS", "3"),
}
GUARDS = "print([process._guard.poll() is not None for process in cluster._processes.values()])"
PLACE = (
    "print([each for each in Out.values() if type(each).__name__ == 'ClusterExplorer'][-1].place.tf_config)"
)


def write_files(folder: Path, language: str) -> None:
    """Writes the small notebook, its program, and the folder for the ids of what that starts."""
    (folder / "ids").mkdir()
    (folder / "program.py").write_text(WRITES_ITS_ID + HAS_A_CHILD + SAYS)
    write_notebook(folder / NOTEBOOK, CELLS, language)


def interrupt_restart_and_shut_down(lesson: Lesson, name: str) -> None:
    """Ends a cell that waits for a cluster in each way that JupyterLab has: nothing is ever left of it."""
    started = lesson.folder / "ids"
    lesson.run_cell(SETUP)
    begin(lesson, started)
    columns = live(lesson, ENDLESS, "step 3")
    columns.filter(has_text="W0000").nth(1).wait_for()
    assert_side_by_side(columns)
    take_screenshot(lesson, ENDLESS, f"{name}-live")
    lesson.interrupt()
    lesson.locate(ENDLESS).get_by_text("KeyboardInterrupt").first.wait_for()
    assert eventually(lambda: left(started) == [])
    assert columns.count() == 0  # what was live is gone, the error stays
    runs_to_its_end(lesson, started)

    begin(lesson, started)
    lesson.restart()
    assert eventually(lambda: left(started) == [])
    lesson.run_cell(SETUP)
    runs_to_its_end(lesson, started)
    take_screenshot(lesson, SHORT, f"{name}-report")

    begin(lesson, started)
    lesson.shut_down()
    assert eventually(lambda: left(started) == [])
    assert lesson.problems == []


def build_watch_and_interrupt(lesson: Lesson, name: str) -> None:
    """Runs the lesson up to its first cluster, builds TF_CONFIG, interrupts the workers, runs them again."""
    before = lesson.cells[: lesson.cells.index(WORKERS)]
    for cell in before:
        lesson.run_cell(cell)
    build(lesson, name)
    lesson.start_cell(WORKERS)
    columns = live(lesson, WORKERS, "2 replicas")
    assert_side_by_side(columns)
    take_screenshot(lesson, WORKERS, f"{name}-live")
    lesson.interrupt()
    lesson.locate(WORKERS).get_by_text("KeyboardInterrupt").first.wait_for()
    assert lesson.printed(GUARDS).strip() == "[True, True]"  # they have ended
    lesson.run_cell(WORKERS)
    take_screenshot(lesson, WORKERS, f"{name}-again")
    assert columns.count() == 0
    assert lesson.locate(WORKERS).locator("pre").last.inner_text() == "0"  # losses that differ
    assert lesson.problems == []


def build(lesson: Lesson, name: str) -> None:
    """Chooses in the builder: Python, the picture and the text follow; a mistake is explained."""
    builder = lesson.locate(BUILDER).locator(".explorer")
    for question, value in (("servers", 0), ("task", "worker 2")):
        choose(builder, question, value)
    told = json.loads(builder.locator(".listing pre").inner_text())
    assert told["task"] == {"type": "worker", "index": 2}
    assert "ps" not in told["cluster"]
    assert json.loads(lesson.printed(PLACE)) == told
    choose(builder, "mistake", "port taken")
    builder.locator(".refusal", has_text="worker 2").wait_for()
    take_screenshot(lesson, BUILDER, f"{name}-builder")


def choose(builder: Any, question: str, value: object) -> None:
    """Clicks an option, by what it stands for, and waits until Python has answered."""
    option = f"input[data-path='[\"{question}\"]'][data-value='{json.dumps(value)}']"
    builder.locator(option).dispatch_event("click")
    builder.locator(f"{option}[checked]").wait_for(state="attached")


def begin(lesson: Lesson, started: Path) -> None:
    """Starts the cell that does not end, and waits until all of its processes run."""
    for each in started.iterdir():
        each.unlink()
    lesson.start_cell(ENDLESS)
    assert eventually(lambda: len(ids(started)) == 4)  # two tasks, and one that each of them started


def runs_to_its_end(lesson: Lesson, started: Path) -> None:
    """Runs the cell that ends, whose report stays and whose processes do not."""
    lesson.run_cell(SHORT)
    report = lesson.locate(SHORT).locator(".jp-OutputArea-output").last.inner_text()
    assert [line.split() for line in report.splitlines()[2:]] == [
        ["step", str(step)] * 2 for step in range(3)
    ]
    assert eventually(lambda: left(started) == [])


def live(lesson: Lesson, cell: str, words: str) -> Any:
    """Returns the columns that a cell shows while it runs, once each of two has these words."""
    columns = lesson.locate(cell).locator("div[style*=flex] > div")
    columns.filter(has_text=words).nth(1).wait_for()
    return columns


def assert_side_by_side(columns: Any) -> None:
    boxes: Sequence[dict[str, float]] = [each.bounding_box() for each in columns.all()]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
