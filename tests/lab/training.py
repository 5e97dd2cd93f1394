"""A notebook with a training lab, and what a reader does with it."""

from __future__ import annotations

from typing import Any

from tests.lab.jupyterlab import ROOT, Lesson

NOTEBOOK = "training_lab.ipynb"
LAB = "lab"
CURVES, IDLE = "img", "button[value=stop][aria-disabled]"
EPOCHS, STARTS = (f"input[data-path='[\"{name}\"]']" for name in ("epochs", "start"))
CELLS = {
    "language": f"""
import sys
import course_lib.syllabus
course_lib.setup(language="LANGUAGE", devices=8)
TrainingLab = course_lib.syllabus.module("any_mesh.lab").TrainingLab
sys.path.append({str(ROOT / "notebooks" / "plain")!r})
import any_mesh as lesson
SIZES = dict(batch=64, features=1200, hidden=48, classes=2)""",
    "lab": """
subject = dict(meshes=lesson.meshes, splits=lesson.splits, axes=lesson.axes, sizes=SIZES)
lab = TrainingLab(lesson.train, "runs", num_examples=len(lesson.train_y), **subject)
lab""",
    "beside": """
import tempfile, time
before = lab.runs[-1].step
records = list(lesson.train(lesson.LAYOUTS["data"], tempfile.mkdtemp(), 20))
print(len(records), lab.runs[-1].step - before)""",
}
EPOCH = 20  # steps


def train_stop_and_go_on(lesson: Lesson) -> None:
    """Trains, uses the devices beside it, stops it, and goes on in another scheme."""
    for cell in ("language", LAB):
        lesson.run_cell(cell)
    lab = lesson.locate(LAB).locator(".explorer")
    choose(lab, "model")
    fill(lab, "4000")
    lab.locator("button[value=run]").click()
    lab.locator(CURVES).first.wait_for(state="attached")
    lesson.run_cell("beside")
    assert lesson.locate("beside").locator(".jp-OutputArea-output").inner_text().strip() == "20 0"
    before = step(lesson)
    typing_is_left_alone(lesson, lab.locator(EPOCHS))
    assert step(lesson) > before  # the cells have ended, and it still trains

    lab.locator("button[value=stop]").click()
    lab.locator(IDLE).wait_for(state="attached")
    stopped = step(lesson)
    assert before < stopped < 4000 * EPOCH

    lab.locator("fieldset").filter(has=lesson.page.locator(STARTS)).locator("label").last.click()
    choose(lab, "spatial")
    fill(lab, str(stopped // EPOCH + 2))
    lab.locator("button[value=run]").click()
    lab.locator(".runs li").nth(1).wait_for()
    lab.locator(IDLE).wait_for(state="attached")
    assert step(lesson) == EPOCH * (stopped // EPOCH + 2)
    assert lesson.errors() == []


def survive_a_restart(lesson: Lesson) -> None:
    """Restarts the kernel: the lab says that nobody answers, until its cell runs again with the runs."""
    lesson.restart()
    lab = lesson.locate(LAB).locator(".explorer")
    lab.locator("button[value=run]").click()
    lab.locator(".late").wait_for()
    for cell in ("language", LAB):
        lesson.run_cell(cell)
    lab.locator(IDLE).wait_for(state="attached")
    assert lab.locator(".runs li").count() == lab.locator(STARTS).count() - 1 == 2
    assert lesson.problems == []


def choose(lab: Any, scheme: str) -> None:
    option = f"input[data-path='[\"scheme\"]'][data-value='\"{scheme}\"']"
    lab.locator(option).click(force=True)
    lab.locator(f"{option}[checked]").wait_for(state="attached")


def fill(lab: Any, epochs: str) -> None:
    lab.locator(EPOCHS).fill(epochs)
    lab.locator(EPOCHS).press("Enter")
    lab.locator(f"{EPOCHS}[value='{epochs}']").wait_for(state="attached")


def typing_is_left_alone(lesson: Lesson, field: Any) -> None:
    """Types half a number while the lab shows one step after the other."""
    field.click()
    field.press("End")
    lesson.page.keyboard.type("7")
    lesson.page.wait_for_timeout(1000)
    assert field.input_value() == "40007"
    field.press("Backspace")
    field.press("Enter")


def step(lesson: Lesson) -> int:
    return int(lesson.printed("print(lab.runs[-1].step)"))
