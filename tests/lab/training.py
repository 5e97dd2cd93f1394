"""A notebook with a training lab, and what a reader does with it."""

from __future__ import annotations

from typing import Any

from tests.lab.jupyterlab import Lesson
from tests.lab.reading import take_screenshot

NOTEBOOK = "training_lab.ipynb"
LAB = "lab"
LINES, IDLE = ".panel path[stroke-width='2'][d]", "button[value=stop][aria-disabled]"
EPOCHS, STARTS = (f"input[data-path='[\"{name}\"]']" for name in ("epochs", "start"))
CELLS = {
    "language": """
import course_lib.syllabus
course_lib.setup(language="LANGUAGE", devices=8)
import numpy as np
from course_lib import models
from course_lib.data.examples import Examples
from course_lib.devices.dtensor import pack, to_numpy
from course_lib.specs.plan import data_parallel
TrainingLab = course_lib.syllabus.module("splitting_the_model.lab").TrainingLab
tf = course_lib.start_tensorflow()
random = np.random.default_rng(0)
features = random.standard_normal((640, 1200), np.float32)
examples = Examples(features, (features[:, 0] > 0).astype(np.int64))""",
    "lab": """
lab = TrainingLab(models.MLP, models.initial_values(), examples, examples)
lab""",
    "second": """
TrainingLab(models.MLP, models.initial_values(), examples, examples)""",
    "beside": """
rows = pack(np.ones((64, 64), "float32"), data_parallel(8).layout(["batch", "features"]))
total = sum(float(to_numpy(tf.reduce_sum(rows))) for _time in range(20))
print(total)""",
}


def train_stop_and_go_on(lesson: Lesson, name: str) -> None:
    """Trains, uses the devices beside it, stops it from a second lab, goes on in another scheme."""
    for cell in ("language", LAB):
        lesson.run_cell(cell)
    lab = lesson.locate(LAB).locator(".explorer")
    choose(lab, "model")
    fill(lab, "4000")
    lab.locator("button[value=run]").click()
    lab.locator(LINES).first.wait_for(state="attached")
    lesson.run_cell("beside")
    assert lesson.locate("beside").locator(".jp-OutputArea-output").inner_text().strip() == "81920.0"
    before = step(lesson)
    typing_is_left_alone(lesson, lab.locator(EPOCHS))
    take_screenshot(lesson, LAB, f"{name}-training")
    assert step(lesson) > before  # the cells have ended, and it still trains

    lesson.run_cell("second")
    second = lesson.locate("second").locator(".explorer")
    second.locator("button[value=run]").click()
    second.locator(".verdict", has_text="✗").wait_for()
    assert second.locator(".runs li").count() == 0
    second.locator("button[value=stop]").click()
    lab.locator(IDLE).wait_for(state="attached")
    stopped = step(lesson)
    assert before < stopped < 40_000

    lab.locator("fieldset").filter(has=lesson.page.locator(STARTS)).locator("label").last.click()
    choose(lab, "spatial")
    fill(lab, str(stopped // 10 + 2))
    lab.locator("button[value=run]").click()
    lab.locator(".runs li").nth(1).wait_for()
    lab.locator(IDLE).wait_for(state="attached")
    assert step(lesson) == 10 * (stopped // 10 + 2)
    assert lab.locator(LINES).count() == 4  # loss and accuracy of two runs
    take_screenshot(lesson, LAB, name)
    assert lesson.errors() == []


def survive_a_restart(lesson: Lesson, name: str) -> None:
    """Restarts the kernel: the lab says that nobody answers, until its cell runs again."""
    lesson.restart()
    lab = lesson.locate(LAB).locator(".explorer")
    lab.locator("button[value=run]").click()
    lab.locator(".late").wait_for()
    take_screenshot(lesson, LAB, f"{name}-restarted")
    for cell in ("language", LAB):
        lesson.run_cell(cell)
    lab.locator(IDLE).wait_for(state="attached")
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
