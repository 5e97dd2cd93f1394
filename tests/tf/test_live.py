"""Live training: what it collects and shows, that it can be stopped, and that it never hides an error."""

from __future__ import annotations

import asyncio
import base64

import pytest

from course_lib import CourseError, live
from course_lib.pictures.curves import Panels
from course_lib.watch.curves import curves
from tests.kernels import execute, notebook_of
from tests.records import history, training

FIRST = "import course_lib\ncourse_lib.setup()\nsaved = []\n"
FIRST += "from course_lib import live\nfrom tests.records import training"
LAST = "print(len(history.steps), saved, history.stopped)"
LONG = "history = await live(training(40_000, seconds=0.01, saved=saved), steps=40_000)"


def watch(records, *arguments, **options):
    return asyncio.run(live(records, *arguments, **options))


def test_it_returns_the_records_and_closes_what_trains():
    saved = []
    seen = watch(training(saved=saved), steps=120)
    assert seen == history(120)
    assert saved == [120]


@pytest.mark.parametrize("begin_after", [60, 0, 120])
def test_a_resumed_training_continues_the_curves_and_repeats_no_step(begin_after):
    before = history(70 if begin_after < 70 else 120)
    seen = watch(training(begin_after=begin_after), before, steps=120)
    assert seen == history(120)
    assert before == history(before.last_step)


def test_a_record_may_hold_tensors_and_more_than_is_drawn():
    seen = watch(
        iter([{"step": 1, "epoch": 1, "loss": Number(2), "accuracy": Number(1), "rate": 0}]), steps=1
    )
    assert seen.steps == [{"step": 1, "epoch": 1, "loss": 2.0, "accuracy": 1.0}]


class Number:
    def __init__(self, value):
        self.value = value

    def __float__(self):
        return float(self.value)


@pytest.mark.parametrize(
    ("records", "words"),
    [(None, "does not train"), (iter([1]), "lacks 'step'"), (iter([{"step": 1}]), "Allowed: step, epoch,")],
)
def test_what_cannot_be_watched_is_refused(records, words):
    with pytest.raises(CourseError, match=words):
        watch(records, steps=3)


WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


@pytest.fixture(scope="module")
def executed():
    trains = "history = await live(training(seconds=0.005, saved=saved), steps=120)"
    return execute(notebook_of(FIRST, trains, LAST))


def outputs(notebook, cell=1):
    return notebook.cells[cell].outputs


def states(notebook):
    return [model.state for model in notebook.metadata.widgets[WIDGET_STATE].state.values()]


def test_the_picture_is_drawn_from_the_final_numbers(executed):
    panels = Panels([""], 120)
    panels.show([curves(history(120))])
    stored = outputs(executed)[1].data["image/png"]
    assert base64.b64decode(stored) == panels.png()


def test_the_widgets_say_that_it_is_over_and_hold_no_time(executed):
    models = executed.metadata.widgets[WIDGET_STATE].state.values()
    states = {model.model_name: model.state for model in models}
    assert states["ButtonModel"].disabled
    assert states["IntProgressModel"].value == states["IntProgressModel"].max == 120
    assert states["HTMLModel"].value == "step 120 of 120, epoch 3"


@pytest.mark.parametrize("gesture", ["click Stop", "interrupt"])
def test_the_reader_can_stop_a_cell_that_trains(gesture):
    notebook = execute(
        notebook_of(FIRST, LONG, LAST, "import time; time.sleep(0.1); print('on')"), gesture=gesture
    )
    steps, closed_after, stopped = outputs(notebook, 2)[0].text.split()
    assert (f"[{steps}]", stopped) == (closed_after, "True")
    assert int(steps) < 40_000
    assert f"at step {steps}: train" in outputs(notebook)[1].metadata["image/png"]["alt"]
    shown = [state.value for state in states(notebook) if state._model_name == "HTMLModel"]
    assert shown == [f"Stopped after step {steps} of 40000."]
    assert outputs(notebook, 3)[0].text == "on\n"


def test_in_a_notebook_an_error_in_training_ends_the_cell_below_its_last_picture():
    notebook = notebook_of(FIRST, "history = await live(training(fail_at=50), steps=120)")
    notebook.cells[1].metadata.tags = ["raises-exception"]
    *shown, error = outputs(execute(notebook))
    assert (error.ename, error.evalue) == ("RuntimeError", "the disk is full")
    assert "at step 49: " in shown[1].metadata["image/png"]["alt"]
