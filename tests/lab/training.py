"""A notebook with a training lab, and what a reader does with it."""

from __future__ import annotations

from typing import Any

from tests.lab.jupyterlab import Lesson
from tests.lab.reading import take_screenshot

NOTEBOOK = "97_training_lab.ipynb"
LAB = "lab"
CELLS = {
    "language": """
import course_lib
course_lib.setup(language="LANGUAGE", devices=8)
import numpy as np
from course_lib import models
from course_lib.dtensor import pack, to_numpy
from course_lib.specs.plan import data_parallel
from lessons.lesson_05_model_and_spatial.lab import TrainingLab
tf = course_lib.start_tensorflow()
random = np.random.default_rng(0)
features = random.standard_normal((640, 1200), np.float32)
examples = features, (features[:, 0] > 0).astype(int)""",
    "lab": """
lab = TrainingLab(models.MLP, models.initial_values(), examples, examples, folder="lab-checkpoints")
lab""",
    "second": """
TrainingLab(models.MLP, models.initial_values(), examples, examples, folder="second-lab-checkpoints")""",
    "beside": """
rows = pack(np.ones((64, 64), "float32"), data_parallel(8).layout(["batch", "features"]))
total = sum(float(to_numpy(tf.reduce_sum(rows))) for _time in range(20))
print(total)""",
}


def train_stop_and_go_on(lesson: Lesson, name: str) -> None:
    """Trains under one scheme, uses the devices beside it, stops, goes on in another scheme, restarts."""
    for cell in ("language", "lab"):
        lesson.run_cell(cell)
    choose(lesson, "model")
    fill(lesson, "epochs", "4000")
    press(lesson, "run")
    lines(lesson).first.wait_for(state="attached")
    lesson.run_cell("beside")
    assert lesson.locate("beside").locator(".jp-OutputArea-output").inner_text().strip() == "81920.0"
    before = step(lesson)
    typing_is_left_alone(lesson)
    take_screenshot(lesson, LAB, f"{name}-training")
    lesson.page.wait_for_timeout(500)
    assert step(lesson) > before  # the cells have ended, and it still trains
    a_second_lab_stops_it(lesson, f"{name}-second")
    idle(lesson)
    stopped = step(lesson)
    assert before < stopped < 40_000

    lab(lesson).locator("fieldset").filter(has=lesson.page.locator("input[data-path='[\"start\"]']")).locator(
        "label"
    ).last.click()
    choose(lesson, "spatial")
    fill(lesson, "epochs", str(stopped // 10 + 2))
    press(lesson, "run")
    lab(lesson).locator(".runs li").nth(1).wait_for()
    idle(lesson)
    assert step(lesson) == 10 * (stopped // 10 + 2)
    assert lines(lesson).count() == 4  # loss and accuracy of two runs
    take_screenshot(lesson, LAB, name)
    assert lesson.errors() == []


def survive_a_restart(lesson: Lesson, name: str) -> None:
    """Restarts the kernel: the lab says that nobody answers, and its cell offers the checkpoints again."""
    lesson.restart()
    lab(lesson).locator("button[value=run]").click()
    lab(lesson).locator(".late").wait_for()
    take_screenshot(lesson, LAB, f"{name}-restarted")
    for cell in ("language", "lab"):
        lesson.run_cell(cell)
    lab(lesson).locator("input[data-path='[\"start\"]']").nth(1).wait_for(state="attached")
    assert lesson.problems == []


def a_second_lab_stops_it(lesson: Lesson, name: str) -> None:
    """Makes a second lab while the first trains: it says so, trains nothing, and its Stop stops the first."""
    lesson.run_cell("second")
    second = lesson.locate("second").locator(".explorer")
    second.locator("button[value=run]").click()
    second.locator(".verdict", has_text="✗").wait_for()
    assert second.locator(".runs li").count() == 0
    take_screenshot(lesson, "second", name)
    second.locator("button[value=stop]").click()


def lab(lesson: Lesson) -> Any:
    return lesson.locate(LAB).locator(".explorer")


def lines(lesson: Lesson) -> Any:
    return lab(lesson).locator(".panel path[stroke-width='2'][d]")


def choose(lesson: Lesson, scheme: str) -> None:
    option = f"input[data-path='[\"scheme\"]'][data-value='\"{scheme}\"']"
    lab(lesson).locator(option).click(force=True)
    lab(lesson).locator(f"{option}[checked]").wait_for(state="attached")


def fill(lesson: Lesson, name: str, value: str) -> None:
    field = lab(lesson).locator(f"input[data-path='[\"{name}\"]']")
    field.fill(value)
    field.press("Enter")
    lab(lesson).locator(f"input[data-path='[\"{name}\"]'][value='{value}']").wait_for(state="attached")


def typing_is_left_alone(lesson: Lesson) -> None:
    """Types half a number while the lab shows one step after the other."""
    field = lab(lesson).locator("input[data-path='[\"epochs\"]']")
    field.click()
    field.press("End")
    lesson.page.keyboard.type("7")
    lesson.page.wait_for_timeout(1000)
    assert field.input_value() == "40007"
    field.press("Backspace")
    field.press("Enter")


def press(lesson: Lesson, name: str) -> None:
    lab(lesson).locator(f"button[value={name}]").click()


def idle(lesson: Lesson) -> None:
    """Waits until nothing trains."""
    lab(lesson).locator("button[value=stop][aria-disabled]").wait_for(state="attached")


def step(lesson: Lesson) -> int:
    return int(lesson.printed("print(lab.runs[-1].step)"))
